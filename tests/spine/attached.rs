//! `plinth attach` from a machine on which nothing runs: it follows the controller's run by the cluster's journal.

use k8s_openapi::api::{
    core::v1::ConfigMap,
    rbac::v1::{Role, RoleBinding},
};
use kube::{
    Api, Client,
    api::{Patch, PatchParams},
};
use plinth_bootstrap::rights;
use plinth_run::{EventKind, Health, Outcome, Verb};
use plinth_support::{ApiServer, AuditEvent, Identity};
use serde_json::json;
use tempfile::TempDir;

use crate::{
    in_cluster::{Stage, healed, holder},
    lacking::until,
    looks::silent_server,
    plinth::{Run, events, plinth},
};

/// A child that [`healed`] deletes.
const CHILD: &str = "openmcp-operator-scheduler-config";

fn attach(stage: &Stage, who: Identity) -> Run {
    Run::start(&["attach", "-o", "json", "--kubeconfig", &stage.world.server.kubeconfig(who).display().to_string()])
}

fn told(run: &Run) -> Vec<EventKind> {
    events(run.stdout().as_bytes())
}

fn begins(event: &EventKind) -> bool {
    matches!(event, EventKind::RunStarted { verb: Verb::Controller, .. })
}

fn creates(event: &EventKind) -> bool {
    matches!(event, EventKind::ChangeApplied { subject, .. } if subject.key.name == CHILD)
}

/// Lets `limited` see the two objects that the controller's run is followed by, and nothing else.
async fn let_follow(client: &Client) {
    let rule = |group: &str, resource: &str, name: &str| json!({"apiGroups": [group], "resources": [resource], "resourceNames": [name], "verbs": ["list", "watch"]});
    let group = "rbac.authorization.k8s.io";
    let rules = [rule("", "configmaps", rights::JOURNAL), rule("coordination.k8s.io", "leases", rights::NAME)];
    let role = json!({"apiVersion": format!("{group}/v1"), "kind": "Role", "metadata": {"name": "followers"}, "rules": rules});
    let binding = json!({"apiVersion": format!("{group}/v1"), "kind": "RoleBinding", "metadata": {"name": "followers"},
        "roleRef": {"apiGroup": group, "kind": "Role", "name": "followers"},
        "subjects": [{"apiGroup": group, "kind": "User", "name": "limited"}]});
    let by = PatchParams::apply("tests");
    let (roles, bindings) = (
        Api::<Role>::namespaced(client.clone(), rights::NAMESPACE),
        Api::<RoleBinding>::namespaced(client.clone(), rights::NAMESPACE),
    );
    roles.patch("followers", &by, &Patch::Apply(role)).await.unwrap();
    bindings.patch("followers", &by, &Patch::Apply(binding)).await.unwrap();
}

#[tokio::test(flavor = "multi_thread")]
async fn show_06_attach() {
    let (stage, client, leader, _) = Stage::handed_over().await;
    let refused = attach(&stage, Identity::Limited).finish().await.with_code(4);
    assert!(
        refused.stderr.contains("is not permitted") && refused.stderr.contains("list and watch of configmaps/plinth-journal"),
        "{}",
        refused.stderr
    );
    let_follow(&client).await;

    let attached = attach(&stage, Identity::Limited);
    until("the run", || told(&attached).iter().any(begins)).await;
    let healthy = |event: &EventKind| matches!(event, EventKind::HealthChanged { health: Health::Current, .. });
    until("its objects", || told(&attached).iter().any(healthy)).await;
    let before = told(&attached).into_iter().filter(creates).count();
    healed(&client).await;
    until("what the controller does", || told(&attached).iter().filter(|event| creates(event)).count() > before).await;
    leader.run.signal("-TERM");
    let ended = attached.finish().await.with_code(130);
    assert_eq!(ended.outcome(), Outcome::Interrupted);
    assert!(ended.stderr.contains("leads; it renewed its Lease"), "{}", ended.stderr);

    assert_each_is_watched_once(&stage.audit().events().unwrap());
    eprintln!(
        "SHOW 06 attach {} events of the controller's run, by 2 lists and 2 watches of one object each",
        ended.events().len()
    );

    let over = attach(&stage, Identity::Limited).finish().await.with_code(4);
    assert!(over.stderr.contains("no run goes on") && over.stderr.contains("none leads"), "{}", over.stderr);
    let other = ["attach", "--platform", "other", "--kubeconfig", &stage.world.kubeconfig()];
    let other = plinth(&other).await.with_code(4);
    assert!(other.stderr.contains("keeps the platform default, not other"), "{}", other.stderr);
}

/// One list and one watch of each object by its name; the log has a watch's begin and end.
fn assert_each_is_watched_once(events: &[AuditEvent]) {
    let asked = |verb: &str, resource: &str| -> Vec<&str> {
        let by_name =
            |event: &&AuditEvent| event.uri.contains(resource) && event.uri.contains("fieldSelector=metadata.name%3Dplinth");
        let of = events.iter().filter(|event| event.user == "limited" && event.code == 200 && event.verb == verb);
        of.filter(by_name).map(|event| event.uri.as_str()).collect()
    };
    for resource in ["/plinth-system/configmaps?", "/plinth-system/leases?"] {
        let mut watches = asked("watch", resource);
        watches.dedup();
        let lists = asked("list", resource);
        assert!(lists.len() == 1 && watches.len() == 1, "{lists:#?} {watches:#?}");
    }
    let gets = events.iter().filter(|event| event.user == "limited" && event.verb == "get" && event.object.is_some()).count();
    assert_eq!(gets, 0, "nothing is polled");
}

/// Whoever comes late sees the state, hears what is missing, sees a leader die and the next one go on.
#[tokio::test(flavor = "multi_thread")]
async fn attach_goes_on_with_the_next_leader() {
    let (stage, client, leader, _) = Stage::handed_over().await;
    healed(&client).await;
    let maps = Api::<ConfigMap>::namespaced(client.clone(), rights::NAMESPACE);
    let first = holder(&client).await;
    // The journal is written a moment after what it tells of.
    until_kept(&maps).await;
    drop(leader);
    let cut = json!({"data": {"events.jsonl": ""}});
    maps.patch(rights::JOURNAL, &PatchParams::default(), &Patch::Merge(cut)).await.unwrap();

    let attached = attach(&stage, Identity::Admin);
    until("the run", || told(&attached).iter().any(begins)).await;
    until("the child, though its event was not kept", || told(&attached).iter().any(creates)).await;
    assert!(attached.stderr().contains("events not kept in the cluster"), "{}", attached.stderr());
    until("the leader's death", || attached.stderr().contains(&format!("{first} has not renewed its Lease"))).await;
    let mut next = stage.start_pod(&client).await;
    next.until_ready().await;
    until("the next leader", || attached.stderr().contains("leads now")).await;
    until("its run", || told(&attached).iter().filter(|event| begins(event)).count() == 2).await;
    attached.signal("-INT");
    let left = attached.finish().await.with_code(130);
    assert!(left.stderr.contains("the run itself goes on"), "{}", left.stderr);
    assert!(next.run.is_running());
}

/// Waits until the journal tells of the child.
async fn until_kept(maps: &Api<ConfigMap>) {
    for _ in 0..200 {
        let kept = maps.get(rights::JOURNAL).await.unwrap().data.unwrap_or_default();
        if events(kept["events.jsonl"].as_bytes()).iter().any(creates) {
            return;
        }
        tokio::time::sleep(std::time::Duration::from_millis(50)).await;
    }
    panic!("the journal never tells of {CHILD}");
}

#[tokio::test(flavor = "multi_thread")]
async fn attach_says_why_there_is_nothing_to_follow() {
    let server = tokio::task::spawn_blocking(ApiServer::start).await.unwrap().unwrap();
    let kubeconfig = server.kubeconfig(Identity::Admin).display().to_string();
    let none = plinth(&["attach", "--kubeconfig", &kubeconfig]).await.with_code(4);
    assert!(none.stderr.contains("no run goes on") && none.stderr.contains("no controller has a journal on"), "{}", none.stderr);
    assert!(none.stderr.contains("hint: plinth dash"), "{}", none.stderr);
    let file = plinth(&["attach", "--journal", "/nowhere", "--kubeconfig", &kubeconfig]).await.with_code(4);
    assert!(!file.stderr.contains("controller"), "who names a file means the file: {}", file.stderr);

    let folder = TempDir::new().unwrap();
    let (listener, away) = silent_server(folder.path());
    drop(listener);
    let away = plinth(&["attach", "--kubeconfig", &away]).await.with_code(3);
    assert!(away.stderr.contains("read the controller's journal on http://127.0.0.1"), "{}", away.stderr);
    assert!(away.stderr.contains("--context choose a cluster"), "{}", away.stderr);
}
