//! Kill -9 of the controller at random moments, while everything that it keeps changes.
//!
//! One child's name follows the value, so that each change leaves one behind, and some instances are deleted. What there is to be is
//! known at the end, to the object: whatever is there beside it is an orphan or a double.

use std::{
    collections::BTreeMap,
    time::{Duration, Instant},
};

use futures::future;
use kube::{
    Api, Client,
    api::{DeleteParams, DynamicObject, ListParams, Patch, PatchParams},
};
use plinth_bootstrap::rights;
use plinth_support::AuditObject;
use serde_json::{Value, json};
use tokio::task::JoinHandle;
use tokio_util::sync::CancellationToken;

use crate::{
    charted::apply_chart,
    in_cluster::{ACCOUNT, Pod, Stage},
    kill::Moments,
    watch::{established, resource},
};

const INSTANCES: usize = 50;
/// These are deleted while the load is on, once they have changed a few times.
const DELETED: std::ops::Range<usize> = 45..50;
/// The longest life of a controller that is killed.
const LIFE: Duration = Duration::from_secs(8);
/// Longer than it takes on a busy machine.
const LIMIT: Duration = Duration::from_mins(2);

/// What an instance was last asked for; `None` for one that is deleted.
type Asked = BTreeMap<usize, Option<u64>>;

#[tokio::test(flavor = "multi_thread")]
async fn show_05_load() {
    let kills: usize = std::env::var("PLINTH_KILLS").map_or(5, |count| count.parse().unwrap());
    let stage = Stage::set().await;
    let client = stage.world.client().await;
    prepare(&stage, &client).await;
    let mut asked: Asked = (0..INSTANCES).map(|index| (index, Some(0))).collect();
    future::join_all(asked.keys().map(|index| ask(&client, *index, 0))).await;
    // What is killed has something to lose.
    let first = stage.start_pod(&client).await;
    until_as_asked(&client, &asked).await;
    end(&client, first).await;

    let (audit, mut moments, mut changes) = (stage.audit().from_now().unwrap(), Moments::new(), 0);
    for life in 0..kills {
        changes += killed(&stage, &client, &mut asked, life, LIFE.mul_f64(moments.next())).await;
    }
    let last = stage.start_pod(&client).await;
    let began = Instant::now();
    until_as_asked(&client, &asked).await;
    let converged = began.elapsed();
    let writes = audit.writes_by(ACCOUNT).unwrap().len();
    let again = repeated(&stage, &client, last).await;
    assert!(again.is_empty(), "written again, though nothing changed: {again:?}");
    until_as_asked(&client, &asked).await;
    eprintln!(
        "SHOW 05 load {kills} kills (PLINTH_SEED={}) while {INSTANCES} instances changed {changes} times and {} were deleted: as asked {} ms \
         after the last start, 0 orphans, 0 doubles, {writes} writes, {} repeated by the one that followed",
        moments.seed,
        asked.values().filter(|value| value.is_none()).count(),
        converged.as_millis(),
        again.len(),
    );
}

/// A controller starts, and is killed; the instances change meanwhile. Those that change get fewer with each life.
async fn killed(stage: &Stage, client: &Client, asked: &mut Asked, life: usize, moment: Duration) -> u64 {
    let stop = CancellationToken::new();
    let changing = change(client.clone(), asked.clone(), life, stop.clone());
    let pod = stage.start_pod(client).await;
    tokio::time::sleep(moment).await;
    end(client, pod).await;
    stop.cancel();
    let changes;
    (*asked, changes) = changing.await.unwrap();
    eprintln!("life {life} ended after {} ms, {changes} changes", moment.as_millis());
    changes
}

/// Kills it with signal 9. Another one need not wait until the Lease of the dead is old.
async fn end(client: &Client, pod: Pod) {
    drop(pod);
    // What it sent last may still be on its way through the server.
    tokio::time::sleep(Duration::from_millis(300)).await;
    let leases = resource("coordination.k8s.io", "v1", "Lease", "leases");
    let leases = Api::<DynamicObject>::namespaced_with(client.clone(), rights::NAMESPACE, &leases);
    // One that was killed early has none.
    let _none = leases.delete(rights::NAME, &DeleteParams::default()).await;
}

/// Changes instances until it is told to stop; gives what they were asked for last, and how many changes that were.
fn change(client: Client, mut asked: Asked, life: usize, stop: CancellationToken) -> JoinHandle<(Asked, u64)> {
    tokio::spawn(async move {
        let mut changes = 0;
        while !stop.is_cancelled() {
            for (index, value) in asked.iter_mut().filter(|(index, _)| *index % 5 >= life % 5) {
                let Some(last) = *value else { continue };
                let is_last = DELETED.contains(index) && last > 5;
                *value = (!is_last).then_some(last + 1);
                match *value {
                    Some(value) => ask(&client, *index, value).await,
                    None => drop(instances(&client).delete(&named(*index), &DeleteParams::default()).await.unwrap()),
                }
                changes += 1;
            }
        }
        (asked, changes)
    })
}

/// Another one that follows when nothing changes any more has nothing to write: the journal proves all of it.
async fn repeated(stage: &Stage, client: &Client, last: Pod) -> Vec<String> {
    // The journal is written a moment after what it tells of.
    tokio::time::sleep(Duration::from_secs(3)).await;
    end(client, last).await;
    let audit = stage.audit().from_now().unwrap();
    let mut follower = stage.start_pod(client).await;
    follower.until_ready().await;
    // Time for what should not happen.
    tokio::time::sleep(Duration::from_secs(3)).await;
    let is_child = |object: &AuditObject| object.resource == "configmaps" && object.namespace == "default";
    let writes = audit.writes_by(ACCOUNT).unwrap().into_iter().filter_map(|event| event.object);
    writes.filter(is_child).map(|object| object.name).collect()
}

/// The manifests, the right to do what the definition asks for, and the definition.
async fn prepare(stage: &Stage, client: &Client) {
    apply_chart(stage);
    let binding = json!({"apiVersion": "rbac.authorization.k8s.io/v1", "kind": "ClusterRoleBinding", "metadata": {"name": "load"},
        "roleRef": {"apiGroup": "rbac.authorization.k8s.io", "kind": "ClusterRole", "name": "cluster-admin"},
        "subjects": [{"kind": "ServiceAccount", "name": rights::NAME, "namespace": rights::NAMESPACE}]});
    let kind = resource("rbac.authorization.k8s.io", "v1", "ClusterRoleBinding", "clusterrolebindings");
    apply(&Api::all_with(client.clone(), &kind), binding).await;
    let child = |id: &str, name: &str, value: &str| {
        let metadata = json!({"name": format!("${{schema.metadata.name}}-{name}")});
        json!({"id": id, "template": {"apiVersion": "v1", "kind": "ConfigMap", "metadata": metadata, "data": {"value": value}}})
    };
    let schema = json!({"group": "load.test", "apiVersion": "v1", "kind": "Load", "spec": {"value": "integer"}});
    let resources = [
        child("first", "first", "${string(schema.spec.value)}"),
        child("second", "second", "${first.data.value}"),
        child("moving", "${string(schema.spec.value % 3)}", "${second.data.value}"),
    ];
    let definition = json!({"apiVersion": "kro.run/v1alpha1", "kind": "ResourceGraphDefinition", "metadata": {"name": "load"},
        "spec": {"schema": schema, "resources": resources}});
    let kind = resource("kro.run", "v1alpha1", "ResourceGraphDefinition", "resourcegraphdefinitions");
    apply(&Api::all_with(client.clone(), &kind), definition).await;
    let pod = stage.start_pod(client).await;
    established(client.clone(), "loads.load.test").await.unwrap();
    end(client, pod).await;
}

async fn apply(api: &Api<DynamicObject>, object: Value) {
    let name = object["metadata"]["name"].as_str().unwrap().to_owned();
    api.patch(&name, &PatchParams::apply("test"), &Patch::Apply(object)).await.unwrap();
}

async fn ask(client: &Client, index: usize, value: u64) {
    let object =
        json!({"apiVersion": "load.test/v1", "kind": "Load", "metadata": {"name": named(index)}, "spec": {"value": value}});
    apply(&instances(client), object).await;
}

fn named(index: usize) -> String {
    format!("load-{index}")
}

fn instances(client: &Client) -> Api<DynamicObject> {
    Api::default_namespaced_with(client.clone(), &resource("load.test", "v1", "Load", "loads"))
}

/// Names of all children with their values, as they are to be.
fn wanted(asked: &Asked) -> BTreeMap<String, String> {
    let children = |(index, value): (&usize, &Option<u64>)| {
        let (name, value) = (named(*index), (*value)?);
        let names = [format!("{name}-first"), format!("{name}-second"), format!("{name}-{}", value % 3)];
        Some(names.map(|child| (child, value.to_string())))
    };
    asked.iter().filter_map(children).flatten().collect()
}

/// The same as they are: everything that is labelled as a child.
async fn children(client: &Client) -> BTreeMap<String, String> {
    let maps = Api::<DynamicObject>::default_namespaced_with(client.clone(), &resource("", "v1", "ConfigMap", "configmaps"));
    let found = maps.list(&ListParams::default().labels("kro.run/node-id")).await.unwrap();
    let told =
        |map: DynamicObject| (map.metadata.name.unwrap(), map.data["data"]["value"].as_str().unwrap_or_default().to_owned());
    found.items.into_iter().map(told).collect()
}

/// Waits until what there is is what there is to be, neither more nor less.
async fn until_as_asked(client: &Client, asked: &Asked) {
    let (began, wanted) = (Instant::now(), wanted(asked));
    let of_instances = asked.values().flatten().count();
    loop {
        let there = children(client).await;
        let left = instances(client).list(&ListParams::default()).await.unwrap().items.len();
        if there == wanted && left == of_instances {
            return;
        }
        let differs = || {
            let lacks: Vec<_> = wanted.iter().filter(|(name, value)| there.get(*name) != Some(value)).collect();
            let too_much: Vec<_> = there.keys().filter(|name| !wanted.contains_key(*name)).collect();
            format!("{left} of {of_instances} instances, lacks {lacks:?}, too much {too_much:?}")
        };
        assert!(began.elapsed() < LIMIT, "{}", differs());
        tokio::time::sleep(Duration::from_millis(200)).await;
    }
}
