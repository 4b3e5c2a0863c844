use proptest::prelude::*;

use super::*;
use crate::{embedded::filter::Filter, selector::Selector};

fn resource() -> Resource {
    Resource { group: "x.io".into(), plural: "things".into() }
}

fn place(name: &str) -> Place {
    Place { resource: resource(), cluster: ClusterKey::host(), namespace: Some("ns".into()), name: name.into() }
}

fn stamp() -> Stamp {
    Stamp { now: "2026-01-01T00:00:00.7Z".parse().unwrap(), uid: "u".into(), generation: true }
}

fn thing(name: &str, spec: &Value) -> Object {
    Object::from_value(json!({"kind": "Thing", "metadata": {"name": name, "namespace": "ns"}, "spec": spec})).unwrap()
}

fn with(object: &Object, path: &[&str], value: Value) -> Object {
    let mut whole = object.clone().into_value();
    let mut place = &mut whole;
    for name in path {
        place = &mut place[*name];
    }
    *place = value;
    Object::from_value(whole).unwrap()
}

fn meta<'a>(object: &'a Object, field: &str) -> Option<&'a Value> {
    object.at(&["metadata", field])
}

fn there(left: Left) -> Arc<Object> {
    match left {
        Left::There(object) => object,
        Left::Gone(object) => panic!("gone: {object:?}"),
    }
}

const ANY: Precondition = Precondition { uid: None, version: None };

#[test]
fn versions_and_generations_move_as_in_kubernetes() {
    let mut store = Store::new(100);
    let created = store.create(&place("a"), thing("a", &json!({"n": 1})), &stamp()).unwrap();
    assert_eq!(meta(&created, "creationTimestamp"), Some(&json!("2026-01-01T00:00:00Z")));
    assert_eq!((meta(&created, "generation"), meta(&created, "resourceVersion")), (Some(&json!(1)), Some(&json!("2"))));
    assert_eq!(store.create(&place("a"), thing("a", &json!({})), &stamp()), Err(Refusal::Exists));

    let same = there(store.update(&place("a"), thing("a", &json!({"n": 1})), Part::Main, &ANY).unwrap());
    assert_eq!((&same, store.version()), (&created, 2), "what changes nothing makes no version");
    let status = with(&created, &["status"], json!({"ok": true}));
    let judged = there(store.update(&place("a"), status.clone(), Part::Status, &ANY).unwrap());
    assert_eq!((meta(&judged, "generation"), judged.status()), (Some(&json!(1)), &json!({"ok": true})));
    let labelled =
        there(store.update(&place("a"), with(&judged, &["metadata", "labels"], json!({"a": "b"})), Part::Main, &ANY).unwrap());
    assert_eq!(meta(&labelled, "generation"), Some(&json!(1)));
    let changed = there(store.update(&place("a"), thing("a", &json!({"n": 2})), Part::Main, &ANY).unwrap());
    assert_eq!(
        (meta(&changed, "generation"), changed.status()),
        (Some(&json!(2)), &json!({"ok": true})),
        "an update keeps the status"
    );
    let sneaky = with(&with(&changed, &["spec"], json!({"n": 3})), &["status"], json!({"ok": false}));
    let judged = there(store.update(&place("a"), sneaky, Part::Status, &ANY).unwrap());
    assert_eq!((judged.spec(), judged.status()), (&json!({"n": 2}), &json!({"ok": false})), "a status write keeps the spec");
}

#[test]
fn preconditions_guard_updates_and_deletions() {
    let mut store = Store::new(100);
    let old = store.create(&place("a"), thing("a", &json!({"n": 1})), &stamp()).unwrap();
    there(store.update(&place("a"), thing("a", &json!({"n": 2})), Part::Main, &ANY).unwrap());
    let version = meta(&old, "resourceVersion").and_then(Value::as_str).map(str::to_owned);
    let stale = store.update(&place("a"), thing("a", &json!({"n": 3})), Part::Main, &Precondition { version, uid: None });
    assert!(matches!(stale, Err(Refusal::Conflict { field: "resourceVersion", .. })));
    let other = Precondition { uid: Some("other".into()), version: None };
    assert!(matches!(store.delete(&place("a"), &other, stamp().now), Err(Refusal::Conflict { field: "UID", .. })));
    assert_eq!(store.delete(&place("b"), &ANY, stamp().now), Err(Refusal::NotFound));
}

#[test]
fn finalizers_hold_an_object_until_the_last_is_gone() {
    let mut store = Store::new(100);
    let held = with(&thing("a", &json!({})), &["metadata", "finalizers"], json!(["x", "y"]));
    store.create(&place("a"), held, &stamp()).unwrap();
    let marked = there(store.delete(&place("a"), &ANY, stamp().now).unwrap());
    assert!(marked.is_terminating());
    assert_eq!(meta(&marked, "generation"), Some(&json!(2)));
    let again = there(store.delete(&place("a"), &ANY, stamp().now).unwrap());
    assert_eq!(again, marked, "a second deletion changes nothing");
    let one = with(&marked, &["metadata", "finalizers"], json!(["y"]));
    let one = with(&one, &["metadata", "deletionTimestamp"], Value::Null);
    let one = there(store.update(&place("a"), one, Part::Main, &ANY).unwrap());
    assert!(one.is_terminating(), "a deletion cannot be taken back");
    let none = with(&one, &["metadata", "finalizers"], json!([]));
    assert!(matches!(store.update(&place("a"), none, Part::Main, &ANY).unwrap(), Left::Gone(_)));
    assert_eq!(store.get(&place("a")), None);
    let events = store.events(&resource(), &Filter::default(), 1).unwrap();
    let kinds: Vec<EventKind> = events.iter().map(|event| event.kind).collect();
    assert_eq!(kinds, [EventKind::Added, EventKind::Modified, EventKind::Modified, EventKind::Deleted]);
    let last = events.last().unwrap();
    assert_eq!(meta(&last.object, "resourceVersion"), Some(&json!(last.version.to_string())));
}

#[test]
fn a_history_has_an_end() {
    let mut store = Store::new(2);
    for name in ["a", "b", "c"] {
        store.create(&place(name), thing(name, &json!({})), &stamp()).unwrap();
    }
    assert_eq!(store.events(&resource(), &Filter::default(), 1), Err(Expired { asked: 1, oldest: 2 }));
    assert_eq!(store.events(&resource(), &Filter::default(), 2).unwrap().len(), 2);
}

#[test]
fn the_pages_of_one_list_agree_whatever_happens_in_between() {
    let mut store = Store::new(100);
    for name in ["a", "b", "c", "d"] {
        store.create(&place(name), thing(name, &json!({})), &stamp()).unwrap();
    }
    let first = store.page(&resource(), &Filter::default(), None, 2).unwrap();
    let (next, remaining) = first.rest.clone().unwrap();
    assert_eq!((next.name.as_str(), remaining), ("b", 2));
    store.delete(&place("c"), &ANY, stamp().now).unwrap();
    store.create(&place("bb"), thing("bb", &json!({})), &stamp()).unwrap();
    there(store.update(&place("d"), thing("d", &json!({"n": 1})), Part::Main, &ANY).unwrap());
    let second = store.page(&resource(), &Filter::default(), Some((first.version, &next)), 9).unwrap();
    let names: Vec<&str> = second.items.iter().map(|(place, _)| place.name.as_str()).collect();
    assert_eq!((names, second.rest), (vec!["c", "d"], None));
    assert_eq!(second.items[1].1.spec(), &json!({}), "as of the first page");
    let elsewhere = Filter::of(&ClusterKey("other".into()));
    assert!(store.page(&resource(), &elsewhere, None, 9).unwrap().items.is_empty());
}

#[derive(Clone, Debug)]
enum Move {
    Create(u8, bool),
    Label(u8, bool),
    Spec(u8, u8),
    Delete(u8),
    Release(u8),
}

fn moves() -> impl Strategy<Value = Vec<Move>> {
    let name = || 0..4_u8;
    let step = prop_oneof![
        (name(), any::<bool>()).prop_map(|(name, held)| Move::Create(name, held)),
        (name(), any::<bool>()).prop_map(|(name, on)| Move::Label(name, on)),
        (name(), 0..3_u8).prop_map(|(name, n)| Move::Spec(name, n)),
        name().prop_map(Move::Delete),
        name().prop_map(Move::Release),
    ];
    prop::collection::vec(step, 0..40)
}

fn play(store: &mut Store, step: &Move) {
    let change = |store: &mut Store, name: &u8, path: &[&str], value: Value| {
        let place = place(&name.to_string());
        if let Some(old) = store.get(&place) {
            let _ = store.update(&place, with(&old, path, value), Part::Main, &ANY);
        }
    };
    match step {
        Move::Create(name, held) => {
            let object = thing(&name.to_string(), &json!({}));
            let object = if *held { with(&object, &["metadata", "finalizers"], json!(["x"])) } else { object };
            let _ = store.create(&place(&name.to_string()), object, &stamp());
        }
        Move::Label(name, on) => change(store, name, &["metadata", "labels"], if *on { json!({"on": "yes"}) } else { json!({}) }),
        Move::Spec(name, n) => change(store, name, &["spec"], json!({"n": n})),
        Move::Delete(name) => drop(store.delete(&place(&name.to_string()), &ANY, stamp().now)),
        Move::Release(name) => change(store, name, &["metadata", "finalizers"], json!([])),
    }
}

proptest! {
    /// The contract of list and watch: a list at any version, and the events since, give the list of now.
    #[test]
    fn a_list_and_its_events_give_the_next_list(moves in moves(), cut in 0..40_usize, selector in prop_oneof![Just(""), Just("on"), Just("!on")]) {
        let filter = Filter { labels: Selector::parse(selector).unwrap(), ..Filter::default() };
        let mut store = Store::new(1000);
        let cut = cut.min(moves.len());
        moves[..cut].iter().for_each(|step| play(&mut store, step));
        let then = store.page(&resource(), &filter, None, 100).unwrap();
        moves[cut..].iter().for_each(|step| play(&mut store, step));
        let mut rows: BTreeMap<Place, Arc<Object>> = then.items.iter().cloned().collect();
        for event in store.events(&resource(), &filter, then.version).unwrap() {
            let there = rows.contains_key(&event.place);
            prop_assert_eq!(there, event.kind != EventKind::Added, "{:?}", event);
            prop_assert_eq!(meta(&event.object, "resourceVersion"), Some(&json!(event.version.to_string())));
            match event.kind {
                EventKind::Deleted => { rows.remove(&event.place); }
                EventKind::Added | EventKind::Modified => { rows.insert(event.place, event.object); }
            }
        }
        let now: BTreeMap<Place, Arc<Object>> = store.page(&resource(), &filter, None, 100).unwrap().items.into_iter().collect();
        prop_assert_eq!(&rows, &now);
        // And the list of then can still be made.
        let start = Place { name: String::new(), ..place("") };
        let again = store.page(&resource(), &filter, Some((then.version, &start)), 100).unwrap();
        prop_assert_eq!(again.items, then.items);
    }
}
