use plinth_api::{ClusterKey, GroupVersionKind};
use serde_json::json;

use super::*;

fn key(kind: &str, name: &str) -> ObjectKey {
    ObjectKey {
        cluster: ClusterKey::host(),
        gvk: GroupVersionKind::new("x.test", "v1", kind),
        namespace: Some("n".into()),
        name: name.into(),
    }
}

fn verdict(id: &str, state: NodeState, waits_for: Option<WaitsFor>) -> NodeVerdict {
    NodeVerdict { id: id.into(), state, objects: vec![key("Child", id)], waits_for, message: format!("{id} says so") }
}

fn run(
    nodes: Vec<NodeVerdict>,
    state: InstanceState,
    causes: BTreeMap<ObjectKey, Vec<Cause>>,
    told: &mut Told,
) -> (Vec<EventKind>, Vec<Cause>) {
    let ready = nodes.iter().all(|node| node.state == NodeState::Ready) && causes.is_empty();
    let decision = Decision { nodes, state, ready, ..Decision::default() };
    let instance = key("App", "a");
    let kinds = BTreeSet::from([GroupKind { group: "x.test".into(), kind: "Inner".into() }]);
    let known = causes.keys().cloned().collect();
    let context = Context { instance: &instance, instance_kinds: &kinds, known: &known, causes: &causes };
    tell(&decision, &Observation::default(), &context, told)
}

fn messages(causes: &[Cause]) -> Vec<&str> {
    causes.iter().map(|cause| cause.message.as_str()).collect()
}

#[test]
fn causes_lead_to_the_root() {
    let missing = GroupVersionKind::new("late.test", "v1", "Thing");
    let nodes = vec![
        verdict("a", NodeState::Deferred, Some(WaitsFor::Kind(missing.clone()))),
        verdict("b", NodeState::Pending, Some(WaitsFor::Node("a".into()))),
        verdict("c", NodeState::Pending, Some(WaitsFor::Field { node: "b".into(), path: "b.status.x".into() })),
    ];
    let (events, causes) = run(nodes, InstanceState::InProgress, BTreeMap::new(), &mut Told::default());
    assert_eq!(messages(&causes), ["a says so", "Thing.late.test/v1 is not served yet"]);
    let of_c = events.iter().find_map(|event| match event {
        EventKind::HealthChanged { subject, causes, health, .. } if subject.key.name == "c" => Some((*health, causes.clone())),
        _ => None,
    });
    let (health, causes) = of_c.unwrap();
    assert_eq!(health, Health::Waiting);
    assert_eq!(messages(&causes), ["b says so", "a says so", "Thing.late.test/v1 is not served yet"]);
    assert!(
        events
            .iter()
            .any(|event| matches!(event, EventKind::ChangeDeferred { missing: kinds, .. } if *kinds == [missing.clone()]))
    );
}

#[test]
fn an_instance_is_deferred_only_where_nothing_but_a_kind_is_in_the_way() {
    let deferred =
        || verdict("late", NodeState::Deferred, Some(WaitsFor::Kind(GroupVersionKind::new("late.test", "v1", "Thing"))));
    let of = |first: NodeState| {
        let nodes = vec![verdict("a", first, None), deferred()];
        let (events, _) = run(nodes, InstanceState::InProgress, BTreeMap::new(), &mut Told::default());
        events.into_iter().find_map(|event| match event {
            EventKind::HealthChanged { subject, health, reason, .. } if subject.parent.is_none() => Some((health, reason)),
            _ => None,
        })
    };
    assert_eq!(of(NodeState::Ready), Some((Health::Waiting, "Deferred".to_owned())));
    // Its `readyWhen` is not true yet: that is progress, and no kind is to blame.
    assert_eq!(of(NodeState::Unready), Some((Health::InProgress, "InProgress".to_owned())));
}

#[test]
fn the_same_is_not_told_twice() {
    let mut told = Told::default();
    let nodes = || vec![verdict("a", NodeState::Skipped, None), verdict("b", NodeState::Ready, None)];
    let (first, _) = run(nodes(), InstanceState::Active, BTreeMap::new(), &mut told);
    assert_eq!(first.len(), 3, "{first:?}");
    assert_eq!(run(nodes(), InstanceState::Active, BTreeMap::new(), &mut told).0, []);
    let (then, _) = run(vec![verdict("b", NodeState::Failed, None)], InstanceState::Error, BTreeMap::new(), &mut told);
    assert_eq!(then.len(), 2);
}

#[test]
fn what_is_not_asked_for_any_more_is_told_once_all_is_settled() {
    let mut told = Told::default();
    run(vec![verdict("a", NodeState::Failed, None)], InstanceState::Error, BTreeMap::new(), &mut told);
    let gone = |events: &[EventKind]| {
        let is_gone = |event: &&EventKind| matches!(event, EventKind::HealthChanged { health: Health::NotFound, .. });
        events.iter().filter(is_gone).count()
    };
    let pending = vec![verdict("b", NodeState::Pending, None)];
    assert_eq!(gone(&run(pending, InstanceState::InProgress, BTreeMap::new(), &mut told).0), 0);
    let ready = || vec![verdict("b", NodeState::Ready, None)];
    assert_eq!(gone(&run(ready(), InstanceState::Active, BTreeMap::new(), &mut told).0), 1);
    assert_eq!(gone(&run(ready(), InstanceState::Active, BTreeMap::new(), &mut told).0), 0);
}

#[test]
fn waiting_in_a_circle_ends() {
    let nodes = vec![
        verdict("a", NodeState::Pending, Some(WaitsFor::Node("b".into()))),
        verdict("b", NodeState::Pending, Some(WaitsFor::Node("a".into()))),
    ];
    let (_, causes) = run(nodes, InstanceState::InProgress, BTreeMap::new(), &mut Told::default());
    assert_eq!(messages(&causes), ["a says so", "b says so"]);
}

#[test]
fn an_unready_child_instance_explains_its_parent() {
    let deep = Cause { subject: None, reason: "NotServed".into(), message: "deep".into() };
    let mut node = verdict("inner", NodeState::Ready, None);
    node.objects = vec![key("Inner", "i")];
    let causes = BTreeMap::from([(key("Inner", "i"), vec![deep])]);
    let (events, causes) = run(vec![node], InstanceState::Active, causes, &mut Told::default());
    assert_eq!(messages(&causes), ["Inner.x.test/n/i is not ready", "deep"]);
    let last = events.last().unwrap();
    assert!(matches!(last, EventKind::HealthChanged { health: Health::InProgress, .. }), "{last:?}");
}

/// The answer to the write of a child got lost, and the loop knows the child by then.
#[test]
fn nothing_is_told_of_a_child_that_tells_of_itself() {
    let inner = || {
        let mut node = verdict("inner", NodeState::Failed, None);
        node.objects = vec![key("Inner", "i")];
        vec![node]
    };
    let of_inner = |events: &[EventKind]| {
        let is_inner = |event: &&EventKind| matches!(event, EventKind::HealthChanged { subject, .. } if subject.key.name == "i");
        events.iter().filter(is_inner).count()
    };
    let mut told = Told::default();
    let unknown = run(inner(), InstanceState::Error, BTreeMap::new(), &mut told);
    assert_eq!(of_inner(&unknown.0), 1, "nobody else tells of what is not there");
    let known = BTreeMap::from([(key("Inner", "i"), Vec::new())]);
    assert_eq!(of_inner(&run(inner(), InstanceState::Error, known, &mut told).0), 0);
    assert_eq!(of_inner(&run(inner(), InstanceState::Error, BTreeMap::new(), &mut told).0), 1, "it is gone again");
}

#[test]
fn the_objects_own_words_come_first() {
    let stuck = Object::from_value(json!({"status": {"conditions": [
        {"type": "Ready", "status": "False", "reason": "NoRoute", "message": "no route"}]}}));
    let node = verdict("a", NodeState::Unready, None);
    let (_, reason, message) = judged(&node, stuck.as_ref());
    assert_eq!((reason.as_str(), message.as_str()), ("NoRoute", "no route"));
    assert_eq!(judged(&node, None).2, "a says so");
}
