mod mishaps;

use std::sync::Arc;

use plinth_api::{GroupVersionKind, ObjectKey};
use plinth_engine::{
    health::{Health, judge},
    ports::{Clock, Query, Reader},
};
use plinth_run::memory::SteppedClock;
use serde_json::{Value, json};

use super::*;
use crate::{Cluster, embedded::Options};

/// A control plane whose time stands still until a test steps it.
struct Stage {
    embedded: Embedded,
    actors: Actors,
    clock: SteppedClock,
}

impl Stage {
    fn new(scenario: &str) -> Self {
        Self::with(scenario, Arc::new(AnyImage))
    }

    fn with(scenario: &str, images: Arc<dyn ImageCatalog>) -> Self {
        let head = "apiVersion: plinth.dev/v1alpha1\nkind: Scenario\nmetadata: {name: x}\nspec: ";
        let scenario = Scenario::parse(&format!("{head}{scenario}\n")).unwrap();
        let clock = SteppedClock::at("2026-01-01T00:00:00Z".parse().unwrap());
        let embedded = Embedded::new(&Options { clock: Arc::new(clock.clone()), ..Options::default() });
        let actors = embedded.actors(Acting { scenario, images, pace: 1.0 });
        Self { embedded, actors, clock }
    }

    fn step(&mut self, milliseconds: u64) -> Outlook {
        self.clock.step(Duration::from_millis(milliseconds));
        self.actors.step()
    }

    /// Steps from one due time to the next until nothing moves.
    fn settle(&mut self) {
        for _ in 0..100 {
            let outlook = self.actors.step();
            let Some(next) = outlook.next.filter(|_| outlook.moves) else { return };
            self.clock.step(Duration::try_from(next.duration_since(self.clock.now())).unwrap_or_default());
        }
        panic!("it never settles");
    }

    fn tell(&self, method: &str, path: &str, body: &Value) -> (u16, Value) {
        let call = super::super::api::state::Call {
            method: method.parse().unwrap(),
            content_type: if method == "PATCH" { "application/merge-patch+json" } else { "application/json" }.to_owned(),
            ..super::super::api::state::Call::internal(path.to_owned(), body, self.clock.now())
        };
        match self.embedded.shared.with(|state| state.handle(&call)) {
            super::super::api::state::Reply::Json(code, value) => (code, value),
            super::super::api::state::Reply::Object(code, object) => (code, object.into_value()),
            super::super::api::state::Reply::List(list) => (200, serde_json::to_value(list).unwrap()),
            other => (other.code(), Value::Null),
        }
    }

    fn make(&self, path: &str, body: &Value) -> Value {
        let (code, made) = self.tell("POST", path, body);
        assert_eq!(code, 201, "{made}");
        made
    }

    fn get(&self, path: &str) -> Value {
        self.tell("GET", path, &Value::Null).1
    }

    /// The objects with their types, which the items of a list lack.
    fn list(&self, path: &str) -> Vec<Value> {
        let list = self.get(path);
        let items = list["items"].as_array().into_iter().flatten();
        items.map(|item| self.get(&format!("{path}/{}", item["metadata"]["name"].as_str().unwrap()))).collect()
    }

    fn events(&self) -> Vec<String> {
        let text = |event: &Value| format!("{}: {}", event["reason"].as_str().unwrap(), event["message"].as_str().unwrap());
        self.list("/api/v1/namespaces/default/events").iter().map(text).collect()
    }
}

const DEPLOYMENTS: &str = "/apis/apps/v1/namespaces/default/deployments";
const PODS: &str = "/api/v1/namespaces/default/pods";

fn workload(kind: &str, image: &str, more: &Value) -> Value {
    let labels = json!({"app": "web"});
    let mut object = json!({
        "apiVersion": "apps/v1", "kind": kind, "metadata": {"name": "web"},
        "spec": {"selector": {"matchLabels": labels}, "template": {
            "metadata": {"labels": labels}, "spec": {"containers": [{"name": "c", "image": image}]}}},
    });
    for (field, value) in more.as_object().into_iter().flatten() {
        object["spec"][field] = value.clone();
    }
    object
}

fn conditions(object: &Value) -> Vec<String> {
    let list = object["status"]["conditions"].as_array().cloned().unwrap_or_default();
    let text = |one: &Value| {
        format!("{}={} {}", one["type"].as_str().unwrap(), one["status"].as_str().unwrap(), one["reason"].as_str().unwrap_or("-"))
    };
    list.iter().map(text).collect()
}

fn health(object: &Value) -> Health {
    judge(&Object::from_value(object.clone()).unwrap()).health
}

#[test]
fn a_deployment_becomes_available_in_its_time() {
    let mut stage =
        Stage::new("{rules: [{when: {apiVersion: apps/v1, kind: Deployment, name: web}, after: 3s, available: true}]}");
    stage.make(DEPLOYMENTS, &workload("Deployment", "web:1", &json!({"replicas": 2})));
    let outlook = stage.step(0);
    assert!(outlook.moves && outlook.next == Some("2026-01-01T00:00:03Z".parse().unwrap()), "{outlook:?}");
    let object = stage.get(&format!("{DEPLOYMENTS}/web"));
    assert_eq!(conditions(&object), ["Available=False MinimumReplicasUnavailable", "Progressing=True ReplicaSetUpdated"]);
    assert_eq!((&object["status"]["replicas"], &object["status"]["unavailableReplicas"]), (&json!(2), &json!(2)));
    assert_eq!(health(&object), Health::InProgress);
    let set = stage.list("/apis/apps/v1/namespaces/default/replicasets").remove(0);
    assert_eq!(set["metadata"]["ownerReferences"][0]["kind"], "Deployment");
    let pod = stage.list(PODS).remove(0);
    assert_eq!(pod["metadata"]["ownerReferences"][0]["name"], set["metadata"]["name"]);
    assert_eq!(pod["status"]["containerStatuses"][0]["state"]["waiting"]["reason"], "ContainerCreating");

    stage.step(2900);
    assert_eq!(health(&stage.get(&format!("{DEPLOYMENTS}/web"))), Health::InProgress);
    let outlook = stage.step(100);
    assert!(!outlook.moves, "{outlook:?}");
    let object = stage.get(&format!("{DEPLOYMENTS}/web"));
    assert_eq!(conditions(&object), ["Available=True MinimumReplicasAvailable", "Progressing=True NewReplicaSetAvailable"]);
    assert_eq!((health(&object), &object["status"]["readyReplicas"]), (Health::Current, &json!(2)));
    assert_eq!(object["status"]["conditions"][0]["lastTransitionTime"], "2026-01-01T00:00:03Z");
    let pods = stage.list(PODS);
    assert!(pods.len() == 2 && pods.iter().all(|pod| health(pod) == Health::Current && pod["status"]["podIP"].is_string()));
    for told in [
        "ScalingReplicaSet: Scaled up replica set web-",
        "Scheduled: Successfully assigned default/web-",
        "Started: Started container c",
    ] {
        assert!(stage.events().iter().any(|event| event.starts_with(told)), "{:#?}", stage.events());
    }
}

#[test]
fn another_image_rolls_out_and_deletion_leaves_nothing() {
    let mut stage = Stage::new("{}");
    stage.make(DEPLOYMENTS, &workload("Deployment", "web:1", &json!({"replicas": 3})));
    stage.settle();
    let change = json!({"spec": {"template": {"spec": {"containers": [{"name": "c", "image": "web:2"}]}}}});
    stage.tell("PATCH", &format!("{DEPLOYMENTS}/web"), &change);
    stage.step(0);
    assert_eq!(stage.list(PODS).len(), 6, "the old ones stay until the new ones are available");
    stage.settle();
    let images: Vec<Value> = stage.list(PODS).iter().map(|pod| pod["spec"]["containers"][0]["image"].clone()).collect();
    assert_eq!(images, ["web:2", "web:2", "web:2"]);
    let object = stage.get(&format!("{DEPLOYMENTS}/web"));
    assert_eq!(object["metadata"]["annotations"]["deployment.kubernetes.io/revision"], "2");
    assert_eq!(health(&object), Health::Current);
    stage.tell("PATCH", &format!("{DEPLOYMENTS}/web"), &json!({"spec": {"replicas": 1}}));
    stage.settle();
    assert_eq!(stage.list(PODS).len(), 1);
    stage.tell("DELETE", &format!("{DEPLOYMENTS}/web"), &Value::Null);
    stage.settle();
    assert!(stage.list(PODS).is_empty() && stage.list("/apis/apps/v1/namespaces/default/replicasets").is_empty());
}

#[test]
fn an_image_that_is_not_there_is_named() {
    let mut stage = Stage::with("{}", Arc::new(ImageList::new(["r.example/web:1"])));
    stage.make(DEPLOYMENTS, &workload("Deployment", "r.example/web:2", &json!({})));
    stage.step(0);
    stage.step(200);
    let pod = stage.list(PODS).remove(0);
    assert_eq!(pod["status"]["containerStatuses"][0]["state"]["waiting"]["reason"], "ErrImagePull");
    let outlook = stage.step(200);
    assert!(!outlook.moves, "nothing will come of waiting: {outlook:?}");
    let pod = stage.list(PODS).remove(0);
    let waiting = &pod["status"]["containerStatuses"][0]["state"]["waiting"];
    assert_eq!((&waiting["reason"], &pod["status"]["phase"]), (&json!("ImagePullBackOff"), &json!("Pending")));
    assert!(waiting["message"].as_str().unwrap().contains("r.example/web:2"), "{waiting}");
    assert_eq!(health(&pod), Health::Failed);
    assert!(conditions(&pod).contains(&"Ready=False ContainersNotReady".to_owned()), "{:?}", conditions(&pod));
    let events = stage.events();
    for told in
        ["Failed: Failed to pull image \"r.example/web:2\"", "Failed: Error: ErrImagePull", "BackOff: Back-off pulling image"]
    {
        assert!(events.iter().any(|event| event.starts_with(told)), "{events:#?}");
    }
    stage.step(600_000);
    let object = stage.get(&format!("{DEPLOYMENTS}/web"));
    assert!(conditions(&object).contains(&"Progressing=False ProgressDeadlineExceeded".to_owned()), "{:?}", conditions(&object));
}

#[test]
fn init_containers_come_first() {
    let mut stage = Stage::with("{}", Arc::new(ImageList::new(["web:1"])));
    let mut object = workload("Deployment", "web:1", &json!({}));
    object["spec"]["template"]["spec"]["initContainers"] = json!([{"name": "i", "image": "init:1"}]);
    stage.make(DEPLOYMENTS, &object);
    stage.settle();
    let status = stage.list(PODS).remove(0)["status"].clone();
    assert_eq!(status["initContainerStatuses"][0]["state"]["waiting"]["reason"], "ImagePullBackOff");
    assert_eq!(status["containerStatuses"][0]["state"]["waiting"]["reason"], "PodInitializing");
}

#[test]
fn the_other_workloads_act() {
    let mut stage = Stage::new("{}");
    let apps = "/apis/apps/v1/namespaces/default";
    let claims = json!([{"metadata": {"name": "data"}, "spec": {"accessModes": ["ReadWriteOnce"], "resources": {"requests": {"storage": "1Gi"}}}}]);
    let more = json!({"replicas": 2, "serviceName": "web", "volumeClaimTemplates": claims});
    stage.make(&format!("{apps}/statefulsets"), &workload("StatefulSet", "web:1", &more));
    stage.step(0);
    assert_eq!(stage.list(PODS).len(), 1, "one after the other");
    stage.settle();
    let names: Vec<Value> = stage.list(PODS).iter().map(|pod| pod["metadata"]["name"].clone()).collect();
    assert_eq!(names, ["web-0", "web-1"]);
    assert_eq!(health(&stage.get(&format!("{apps}/statefulsets/web"))), Health::Current);
    let claims = stage.list("/api/v1/namespaces/default/persistentvolumeclaims");
    assert!(claims.len() == 2 && claims.iter().all(|claim| claim["status"]["phase"] == "Bound"), "{claims:?}");

    stage.make(&format!("{apps}/daemonsets"), &workload("DaemonSet", "web:1", &json!({})));
    let template = json!({"spec": {"restartPolicy": "Never", "containers": [{"name": "c", "image": "i"}]}});
    let job = json!({"apiVersion": "batch/v1", "kind": "Job", "metadata": {"name": "once"}, "spec": {"completions": 2, "template": template}});
    stage.make("/apis/batch/v1/namespaces/default/jobs", &job);
    let ports = json!([{"port": 80}]);
    let service = json!({"apiVersion": "v1", "kind": "Service", "metadata": {"name": "web"}, "spec": {"type": "LoadBalancer", "ports": ports}});
    stage.make("/api/v1/namespaces/default/services", &service);
    stage.settle();
    assert_eq!(health(&stage.get(&format!("{apps}/daemonsets/web"))), Health::Current);
    let job = stage.get("/apis/batch/v1/namespaces/default/jobs/once");
    assert_eq!((health(&job), &job["status"]["succeeded"]), (Health::Current, &json!(2)), "{job:#}");
    let service = stage.get("/api/v1/namespaces/default/services/web");
    assert!(service["status"]["loadBalancer"]["ingress"][0]["ip"].is_string() && health(&service) == Health::Current);
    assert_eq!(health(&stage.get("/api/v1/nodes/embedded")), Health::Current);
}

#[test]
fn a_pod_waits_for_what_it_names() {
    let mut stage = Stage::new("{}");
    let mut object = workload("Deployment", "web:1", &json!({}));
    object["spec"]["template"]["spec"]["serviceAccountName"] = json!("worker");
    object["spec"]["template"]["spec"]["volumes"] = json!([{"name": "v", "secret": {"secretName": "tls"}}]);
    object["spec"]["template"]["spec"]["containers"][0]["envFrom"] = json!([{"configMapRef": {"name": "settings"}}]);
    stage.make(DEPLOYMENTS, &object);
    stage.settle();
    assert!(stage.list(PODS).is_empty());
    let deployment = stage.get(&format!("{DEPLOYMENTS}/web"));
    assert!(conditions(&deployment).contains(&"ReplicaFailure=True FailedCreate".to_owned()), "{:?}", conditions(&deployment));

    stage.make("/api/v1/namespaces/default/serviceaccounts", &json!({"metadata": {"name": "worker"}}));
    stage.settle();
    assert!(stage.events().iter().any(|event| event.starts_with("FailedMount:") && event.contains("secret \"tls\" not found")));
    stage.make("/api/v1/namespaces/default/secrets", &json!({"metadata": {"name": "tls"}}));
    stage.settle();
    let pod = stage.list(PODS).remove(0);
    let waiting = &pod["status"]["containerStatuses"][0]["state"]["waiting"];
    assert_eq!(
        (&waiting["reason"], &waiting["message"]),
        (&json!("CreateContainerConfigError"), &json!("configmap \"settings\" not found"))
    );
    stage.make("/api/v1/namespaces/default/configmaps", &json!({"metadata": {"name": "settings"}}));
    stage.settle();
    let deployment = stage.get(&format!("{DEPLOYMENTS}/web"));
    assert_eq!((health(&deployment), conditions(&deployment).len()), (Health::Current, 2), "{deployment:#}");
}

#[test]
fn a_pod_waits_for_the_keys_that_it_names() {
    let secrets = "/api/v1/namespaces/default/secrets";
    let key = |kind: &str, name: &str, key: &str| json!({"name": "A", "valueFrom": {kind: {"name": name, "key": key}}});
    let shown = |source: Value| json!({"volumes": [source]});
    let missing = "MountVolume.SetUp failed for volume \"v\" : references non-existent";
    for (volume, env, said) in [
        (json!({}), key("secretKeyRef", "s", "b"), "couldn't find key b in Secret default/s".to_owned()),
        (json!({}), key("configMapKeyRef", "c", "b"), "couldn't find key b in ConfigMap default/c".to_owned()),
        (
            shown(json!({"name": "v", "secret": {"secretName": "s", "items": [{"key": "b", "path": "b"}]}})),
            json!({"name": "A"}),
            format!("{missing} secret key: b"),
        ),
        (
            shown(json!({"name": "v", "configMap": {"name": "c", "items": [{"key": "b", "path": "b"}]}})),
            json!({"name": "A"}),
            format!("{missing} config key: b"),
        ),
    ] {
        let mut stage = Stage::new("{}");
        stage.make(secrets, &json!({"metadata": {"name": "s"}, "stringData": {"a": "1"}}));
        stage.make("/api/v1/namespaces/default/configmaps", &json!({"metadata": {"name": "c"}, "data": {"a": "1"}}));
        let mut object = workload("Deployment", "web:1", &json!({}));
        let spec = &mut object["spec"]["template"]["spec"];
        spec["containers"][0]["env"] = json!([env]);
        spec["volumes"] = volume["volumes"].clone();
        stage.make(DEPLOYMENTS, &object);
        stage.settle();
        assert!(stage.events().iter().any(|event| event.contains(&said)), "{said}: {:?}", stage.events());
        assert_eq!(health(&stage.get(&format!("{DEPLOYMENTS}/web"))), Health::InProgress, "{said}");
        for (path, kind) in [("secrets/s", "data"), ("configmaps/c", "data")] {
            let (code, _) = stage.tell("PATCH", &format!("/api/v1/namespaces/default/{path}"), &json!({kind: {"b": "Yg=="}}));
            assert_eq!(code, 200);
        }
        stage.settle();
        assert_eq!(health(&stage.get(&format!("{DEPLOYMENTS}/web"))), Health::Current, "{said}");
    }
}

const THINGS: &str = "{apiVersion: apiextensions.k8s.io/v1, kind: CustomResourceDefinition, metadata: {name: things.x.test}, spec: {group: x.test, \
    scope: Namespaced, names: {kind: Thing, plural: things}, versions: [{name: v1, served: true, storage: true, subresources: {status: {}}, \
    schema: {openAPIV3Schema: {type: object, x-kubernetes-preserve-unknown-fields: true}}}]}}";

#[test]
fn rules_register_and_report() {
    let rules = format!(
        "{{rules: [{{when: {{apiVersion: apps/v1, kind: Deployment, name: web, state: Available}}, after: 1s, register: [{THINGS}, \
         {{apiVersion: x.test/v1, kind: Thing, metadata: {{name: first}}}}]}}, \
         {{when: {{apiVersion: x.test/v1, kind: Thing}}, after: 500ms, status: {{phase: Ready}}}}]}}"
    );
    let mut stage = Stage::new(&rules);
    stage.make(DEPLOYMENTS, &workload("Deployment", "web:1", &json!({})));
    stage.step(0);
    stage.step(200);
    assert_eq!(stage.tell("GET", "/apis/x.test/v1/namespaces/default/things", &Value::Null).0, 404);
    stage.step(1000);
    assert_eq!(stage.list("/apis/x.test/v1/namespaces/default/things").len(), 1);
    stage.settle();
    let thing = stage.get("/apis/x.test/v1/namespaces/default/things/first");
    assert_eq!((&thing["status"]["phase"], &thing["status"]["observedGeneration"]), (&json!("Ready"), &json!(1)));
}

#[tokio::test]
async fn rules_make_faults() {
    let mut stage = Stage::new(
        "{rules: [{after: 1s, away: 5s}, {after: 10s, conflicts: {every: 3, times: 1}}, {after: 20s, expire: {apiVersion: v1, kind: ConfigMap}}]}",
    );
    let cluster = Cluster::with_client(plinth_api::ClusterKey::host(), stage.embedded.client());
    stage.actors.step();
    assert!(cluster.identity().await.is_ok());
    stage.step(1000);
    let away = cluster.identity().await.unwrap_err();
    assert!(away.to_string().contains("the API server is away"), "{away}");
    stage.step(5000);
    assert!(cluster.identity().await.is_ok());

    stage.step(4000);
    let key = ObjectKey {
        cluster: plinth_api::ClusterKey::host(),
        gvk: GroupVersionKind::new("", "v1", "ConfigMap"),
        namespace: Some("default".into()),
        name: "a".into(),
    };
    let object = Object::from_value(json!({"apiVersion": "v1", "kind": "ConfigMap", "metadata": {"name": "a"}})).unwrap();
    let apply = plinth_engine::ports::Apply { key, object, manager: "m".into(), force: true, subresource: None };
    let mut refused = Vec::new();
    for index in 0..7 {
        if plinth_engine::ports::Applier::apply(&*cluster, &apply).await.is_err() {
            refused.push(index);
        }
    }
    assert_eq!(refused, [2], "the third write, once");

    let list = stage.get("/api/v1/namespaces/default/configmaps");
    let from = list["metadata"]["resourceVersion"].as_str().unwrap();
    stage.step(10_000);
    let params = kube::api::WatchParams::default();
    let api: kube::Api<k8s_openapi::api::core::v1::ConfigMap> = kube::Api::default_namespaced(stage.embedded.client());
    let mut watch = std::pin::pin!(api.watch(&params, from).await.unwrap());
    let first = futures::StreamExt::next(&mut watch).await.unwrap().unwrap();
    assert!(matches!(&first, kube::api::WatchEvent::Error(status) if status.code == 410), "{first:?}");
    let query = Query {
        cluster: plinth_api::ClusterKey::host(),
        gvk: GroupVersionKind::new("", "v1", "ConfigMap"),
        namespace: None,
        selector: String::new(),
    };
    assert_eq!(cluster.list(&query).await.unwrap().len(), 1);
}

#[test]
fn the_same_steps_give_the_same_history() {
    let history = || {
        let mut stage =
            Stage::new("{rules: [{when: {apiVersion: v1, kind: Pod, state: Ready}, after: 1s, status: {note: seen}}]}");
        stage.make(DEPLOYMENTS, &workload("Deployment", "web:1", &json!({"replicas": 3})));
        stage.make("/apis/apps/v1/namespaces/default/daemonsets", &workload("DaemonSet", "web:1", &json!({})));
        stage.settle();
        stage.embedded.shared.with(|state| state.store.changes(0).into_iter().map(|(_, _, after)| after).collect::<Vec<_>>())
    };
    assert_eq!(history(), history());
}

#[tokio::test(start_paused = true)]
async fn at_work_it_steps_by_itself() {
    let embedded = Embedded::new(&Options::default());
    let at_work = embedded.act(Acting { pace: 0.1, ..Acting::default() });
    let api: kube::Api<k8s_openapi::api::apps::v1::Deployment> = kube::Api::default_namespaced(embedded.client());
    let object = serde_json::from_value(workload("Deployment", "web:1", &json!({}))).unwrap();
    api.create(&kube::api::PostParams::default(), &object).await.unwrap();
    for _ in 0..500 {
        tokio::time::sleep(Duration::from_millis(10)).await;
        // The clock of the machine goes on by itself, that of tokio jumps.
        std::thread::sleep(Duration::from_millis(2));
        let status = api.get("web").await.unwrap().status.unwrap_or_default();
        if status.available_replicas == Some(1) {
            assert!(!at_work.outlook().moves);
            return;
        }
    }
    panic!("it did not become available");
}
