use jiff::SignedDuration;
use plinth_cluster::{
    Cluster,
    embedded::{Embedded, Options},
};
use plinth_engine::ports::{Applier, Apply};
use plinth_run::RunState;
use serde_json::json;
use tokio::time::timeout;

use super::*;

const PLATFORM: &str = "sample";
/// Longer than anything takes on a busy machine.
const LIMIT: Duration = Duration::from_mins(1);

/// A cluster with the kinds of a platform, and a namespace of it.
async fn cluster() -> (Embedded, Arc<Cluster>) {
    let embedded = Embedded::new(&Options::default());
    let cluster = embedded.cluster(&ClusterKey::host());
    for crd in plinth_api::crds::platform() {
        create(&cluster, crd).await;
    }
    create(&cluster, namespace("one")).await;
    (embedded, cluster)
}

async fn create(cluster: &Cluster, object: Object) -> Object {
    let key = object.key(&ClusterKey::host()).unwrap();
    cluster.create(&key, &object).await.unwrap()
}

fn namespace(name: &str) -> Object {
    let metadata = json!({"name": name, "labels": {keys::PLATFORM: PLATFORM}});
    Object::from_value(json!({"apiVersion": "v1", "kind": "Namespace", "metadata": metadata})).unwrap()
}

/// A follower with everything that it told.
struct Told {
    follower: Follower,
    events: Vec<Event>,
}

impl Told {
    fn of(cluster: &Arc<Cluster>) -> Self {
        let mut follower = Follower::new(Host(Arc::clone(cluster), "the cluster".to_owned()), PLATFORM);
        let events = vec![follower.begin(PLATFORM, "https://c.test")];
        Self { follower, events }
    }

    async fn until(&mut self, what: &str, is_so: impl Fn(&Self) -> bool) {
        let told = async {
            while !is_so(self) {
                let more = self.follower.next().await;
                self.events.extend(more);
            }
        };
        assert!(timeout(LIMIT, told).await.is_ok(), "{what} was never told: {:#?}", self.events);
    }

    fn state(&self) -> RunState {
        RunState::replay(&self.events)
    }

    fn knows(&self, name: &str) -> bool {
        self.state().subjects.values().any(|known| known.subject.key.name == name && known.standing().is_some())
    }

    fn deletions(&self) -> usize {
        let deletes = |event: &&Event| matches!(event.kind, EventKind::ChangeApplied { .. });
        self.events.iter().filter(deletes).count()
    }
}

/// The server is away when the person asks for everything anew: nothing is called deleted, and it goes on by itself.
#[tokio::test]
async fn what_was_known_stays_while_the_server_is_away() {
    let (embedded, cluster) = cluster().await;
    let mut told = Told::of(&cluster);
    told.until("the namespace", |told| told.knows("one")).await;
    let known = told.state().summary();

    embedded.fault(|faults| faults.set_away(true));
    told.until("the loss", |told| told.follower.lost().is_some()).await;
    told.follower.refresh();
    // It is asked in vain for some time.
    let _quiet = timeout(Duration::from_secs(3), told.until("anything", |_| false)).await;
    let lost = told.follower.lost().expect("the server is still away").clone();
    assert!(lost.why.contains("the API server is away"), "{lost:?}");
    assert_eq!((told.deletions(), told.state().summary()), (0, known));

    embedded.fault(|faults| faults.set_away(false));
    create(&cluster, namespace("two")).await;
    told.until("what is new", |told| told.knows("two")).await;
    assert_eq!((told.follower.lost(), told.deletions()), (None, 0));
    let answers: Vec<CheckVerdict> = told
        .events
        .iter()
        .filter_map(|event| match &event.kind {
            EventKind::CheckFinished { verdict, .. } => Some(*verdict),
            _ => None,
        })
        .collect();
    assert_eq!(answers, [CheckVerdict::Warned, CheckVerdict::Passed]);
}

/// Ages are those of the objects: whoever begins to look is not when they began to be.
#[tokio::test]
async fn what_was_there_before_is_as_old_as_it_says() {
    let (_embedded, cluster) = cluster().await;
    let made = "2026-01-02T03:04:05Z";
    let repository = json!({"apiVersion": "delivery.ocm.software/v1alpha1", "kind": "Repository",
        "metadata": {"name": "r", "namespace": "default", "labels": {keys::PLATFORM: PLATFORM}},
        "spec": {"interval": "1m", "repositorySpec": {}}});
    let repository = create(&cluster, Object::from_value(repository).unwrap()).await;
    let key = repository.key(&ClusterKey::host()).unwrap();
    let condition = json!({"type": "Ready", "status": "True", "reason": "R", "message": "", "lastTransitionTime": made});
    let status = json!({"apiVersion": "delivery.ocm.software/v1alpha1", "kind": "Repository",
        "metadata": {"name": "r", "namespace": "default"}, "status": {"conditions": [condition]}});
    let object = Object::from_value(status).unwrap();
    let (manager, subresource) = ("tests".to_owned(), Some("status"));
    cluster.apply(&Apply { key: key.clone(), object, manager, force: true, subresource }).await.unwrap();

    let mut told = Told::of(&cluster);
    told.until("the repository", |told| told.knows("r")).await;
    let state = told.state();
    assert_eq!(state.subjects[&key].since, made.parse().unwrap());
    let started = state.started.unwrap();
    assert!(state.elapsed() >= SignedDuration::ZERO && state.now >= Some(started));
}
