use std::{collections::VecDeque, time::Duration};

use plinth_api::GroupVersionKind;
use serde_json::{Value, json};
use tokio::{sync::mpsc, time::timeout};

use super::*;
use crate::{
    fake::{self, Log, Reply, discovery, status},
    watch::Change,
};

const MAPS: &str = "/api/v1/configmaps";

/// A server with ConfigMaps and no CRDs, whose lists and watches are scripted.
struct Script {
    lists: Mutex<VecDeque<Reply>>,
    watches: Mutex<VecDeque<Reply>>,
}

struct World {
    hub: Arc<Watches>,
    cluster: Arc<Cluster>,
    log: Log,
    notices: mpsc::UnboundedReceiver<Notice>,
}

fn map(name: &str, version: &str) -> Value {
    json!({"metadata": {"name": name, "namespace": "ns", "resourceVersion": version, "managedFields": [{"manager": "m"}]}})
}

fn list(version: &str, items: &[Value]) -> Reply {
    Reply::Json(200, json!({"metadata": {"resourceVersion": version}, "items": items}))
}

fn event(kind: &str, object: &Value) -> Value {
    json!({"type": kind, "object": object})
}

fn lines(events: Vec<Value>) -> (Reply, mpsc::UnboundedSender<Value>) {
    let (sender, receiver) = mpsc::unbounded_channel();
    for event in events {
        sender.send(event).unwrap();
    }
    (Reply::Lines(receiver), sender)
}

fn owner() -> Owner {
    Owner { role: "test", key: key("owner") }
}

fn watch_key() -> WatchKey {
    WatchKey { cluster: ClusterKey::host(), gvk: GroupVersionKind::new("", "v1", "ConfigMap") }
}

fn key(name: &str) -> ObjectKey {
    ObjectKey { cluster: ClusterKey::host(), gvk: watch_key().gvk, namespace: Some("ns".into()), name: name.into() }
}

fn world(lists: Vec<Reply>, watches: Vec<Reply>) -> World {
    let script = Script { lists: Mutex::new(lists.into()), watches: Mutex::new(watches.into()) };
    let (cluster, log) = fake::cluster(move |seen| {
        if let Some(reply) = discovery(&seen.path) {
            return reply;
        }
        let queue = if seen.is_watch() { &script.watches } else { &script.lists };
        let scripted = (seen.path == MAPS).then(|| queue.lock().unwrap().pop_front()).flatten();
        scripted.unwrap_or_else(|| status(503, "ServiceUnavailable", "x"))
    });
    let hub = Watches::new(Settings::default());
    let (sender, notices) = mpsc::unbounded_channel();
    hub.route("test", Arc::new(move |_: &Owner, notice: &Notice| sender.send(notice.clone()).unwrap()));
    World { hub, cluster, log, notices }
}

impl World {
    fn start(&self) {
        self.hub.engage(Arc::clone(&self.cluster));
        self.hub.declare(&owner(), WatchSet::all_of(ClusterKey::host(), watch_key().gvk));
    }

    async fn next(&mut self) -> String {
        let notice = timeout(Duration::from_mins(5), self.notices.recv()).await.expect("a notice").unwrap();
        match notice {
            Notice::Synced(_) => "synced".into(),
            Notice::Lost(_) => "lost".into(),
            Notice::Refused(_) => "refused".into(),
            Notice::Changed(Change { key, before: None, .. }) => format!("+{}", key.name),
            Notice::Changed(Change { key, after: None, .. }) => format!("-{}", key.name),
            Notice::Changed(Change { key, .. }) => format!("~{}", key.name),
        }
    }

    async fn all(&mut self, count: usize) -> Vec<String> {
        let mut all = Vec::new();
        for _ in 0..count {
            all.push(self.next().await);
        }
        all
    }

    fn requests(&self) -> Vec<String> {
        fake::lines(&self.log).into_iter().filter(|line| line.contains(MAPS)).collect()
    }
}

#[tokio::test(start_paused = true)]
async fn a_watch_lists_then_follows_and_goes_on_where_it_was() {
    let (first, sender) = lines(vec![event("ADDED", &map("b", "11")), event("BOOKMARK", &map("", "15"))]);
    let (second, _open) = lines(vec![event("DELETED", &map("a", "16"))]);
    let mut world = world(vec![list("10", &[map("a", "9")])], vec![first, second]);
    world.start();
    assert_eq!(world.all(3).await, ["+a", "synced", "+b"]);
    drop(sender);
    assert_eq!(world.next().await, "-a");
    let requests = world.requests();
    assert!(requests[1].contains("resourceVersion=10&allowWatchBookmarks=true"), "{requests:?}");
    assert!(requests[2].contains("resourceVersion=15"), "a bookmark moves the start: {requests:?}");
    assert_eq!(requests.len(), 3);
    let seen = world.hub.get(&key("b")).unwrap();
    assert_eq!(seen.at(&["metadata", "managedFields"]), None);
    assert_eq!(world.hub.look(&key("a")), Look::Absent);
}

#[tokio::test(start_paused = true)]
async fn a_version_that_is_too_old_is_listed_again_without_a_pause() {
    let gone = json!({"kind": "Status", "code": 410, "reason": "Expired", "message": "too old"});
    let (first, _sender) = lines(vec![event("ERROR", &gone)]);
    let (second, _open) = lines(vec![]);
    let mut world = world(vec![list("10", &[map("a", "9"), map("b", "9")]), list("20", &[map("b", "9")])], vec![first, second]);
    world.start();
    assert_eq!(world.all(3).await, ["+a", "+b", "synced"]);
    let began = tokio::time::Instant::now();
    assert_eq!(world.all(2).await, ["-a", "synced"], "only the difference is told");
    assert_eq!(began.elapsed(), Duration::ZERO);
}

#[tokio::test(start_paused = true)]
async fn failures_are_tried_again_with_growing_delays_and_shown() {
    let (open, _sender) = lines(vec![]);
    let busy = || status(503, "ServiceUnavailable", "x");
    let mut world = world(vec![busy(), busy(), list("10", &[map("a", "9")])], vec![open]);
    let began = tokio::time::Instant::now();
    world.start();
    tokio::time::sleep(Duration::from_millis(100)).await;
    let Some(WatchState::Failing { attempt: 1, synced: false, error, .. }) = world.hub.state(&watch_key()) else {
        panic!("{:?}", world.hub.state(&watch_key()))
    };
    assert!(matches!(error, ReadError::Unavailable(_)));
    assert_eq!(world.all(2).await, ["+a", "synced"]);
    let waited = began.elapsed();
    assert!(waited >= Duration::from_millis(600) && waited < Duration::from_millis(800), "{waited:?}");
}

#[tokio::test(start_paused = true)]
async fn a_watch_that_ends_at_once_is_not_opened_in_a_hot_loop() {
    let ended = || {
        let (reply, sender) = lines(vec![]);
        drop(sender);
        reply
    };
    let (open, _sender) = lines(vec![event("ADDED", &map("b", "11"))]);
    let mut world = world(vec![list("10", &[])], vec![ended(), ended(), open]);
    let began = tokio::time::Instant::now();
    world.start();
    assert_eq!(world.all(2).await, ["synced", "+b"]);
    assert!(began.elapsed() >= Duration::from_millis(400), "{:?}", began.elapsed());
    assert_eq!(world.requests().len(), 4, "and goes on without another list");
}

#[tokio::test(start_paused = true)]
async fn a_cluster_that_is_taken_out_deletes_nothing() {
    let (open, _sender) = lines(vec![]);
    let (again, _second) = lines(vec![]);
    let mut world = world(vec![list("10", &[map("a", "9")]), list("12", &[map("a", "9")])], vec![open, again]);
    world.start();
    assert_eq!(world.all(2).await, ["+a", "synced"]);
    world.hub.disengage(&ClusterKey::host());
    assert_eq!(world.next().await, "lost");
    assert_eq!(world.hub.look(&key("a")), Look::Unknown);
    world.hub.engage(Arc::clone(&world.cluster));
    assert_eq!(world.all(2).await, ["+a", "synced"]);
}

#[tokio::test(start_paused = true)]
async fn a_watch_nobody_wants_is_stopped() {
    let (open, sender) = lines(vec![]);
    let mut world = world(vec![list("10", &[])], vec![open]);
    world.start();
    world.hub.until_synced(&[watch_key()]).await;
    assert_eq!(world.next().await, "synced");
    world.hub.forget(&owner());
    tokio::time::sleep(Duration::from_millis(1)).await;
    assert!(sender.is_closed(), "the connection is given up");
    assert_eq!(world.hub.state(&watch_key()), None);
}

/// A kind appears: the parked watch starts, with no request for it in between.
#[tokio::test(start_paused = true)]
async fn a_kind_that_is_not_served_parks_its_watch() {
    const CRDS: &str = "/apis/apiextensions.k8s.io/v1/customresourcedefinitions";
    let (crds, receiver) = mpsc::unbounded_channel();
    let receiver = Mutex::new(Some(receiver));
    let (cluster, log) = fake::cluster(move |seen| match seen.path.as_str() {
        CRDS if seen.is_watch() => receiver.lock().unwrap().take().map_or_else(|| status(503, "", "x"), Reply::Lines),
        CRDS => list("1", &[]),
        "/apis/x.io/v1/things" if seen.is_watch() => Reply::Lines(mpsc::unbounded_channel().1),
        "/apis/x.io/v1/things" => list("5", &[map("a", "4")]),
        _ => Reply::Text(404, "404 page not found"),
    });
    let hub = Watches::new(Settings::default());
    hub.engage(cluster);
    let gvk = GroupVersionKind::new("x.io", "v1", "Thing");
    let watch = WatchKey { cluster: ClusterKey::host(), gvk: gvk.clone() };
    hub.declare(&owner(), WatchSet::all_of(ClusterKey::host(), gvk));
    hub.until_synced(std::slice::from_ref(&watch)).await;
    assert_eq!(hub.state(&watch), Some(WatchState::Parked));
    tokio::time::sleep(Duration::from_secs(200)).await;
    let asked = fake::lines(&log).iter().filter(|line| line.contains("x.io/v1")).count();
    assert_eq!(asked, 1, "one look, and no polling");
    let crd = json!({
        "metadata": {"name": "things.x.io", "resourceVersion": "2"},
        "spec": {"group": "x.io", "scope": "Namespaced", "names": {"kind": "Thing", "plural": "things"},
                 "versions": [{"name": "v1", "served": true, "schema": {"openAPIV3Schema": {"type": "object"}}}]},
        "status": {"conditions": [{"type": "Established", "status": "True"}]},
    });
    crds.send(event("ADDED", &crd)).unwrap();
    let object = ObjectKey { gvk: watch.gvk.clone(), ..key("a") };
    while !matches!(hub.look(&object), Look::Present(_)) {
        tokio::time::sleep(Duration::from_millis(1)).await;
    }
}
