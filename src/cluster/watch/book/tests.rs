use std::time::Duration;

use plinth_api::{ClusterKey, GroupVersionKind};
use plinth_engine::ports::ReadError;
use proptest::prelude::*;
use serde_json::json;

use super::*;

fn watch() -> WatchKey {
    WatchKey { cluster: ClusterKey::host(), gvk: GroupVersionKind::new("", "v1", "ConfigMap") }
}

fn key(name: &str) -> ObjectKey {
    watch().object(Some("ns".into()), name.into())
}

fn owner(name: &str) -> Owner {
    Owner { role: "test", key: key(name) }
}

fn object(name: &str, version: u64, labels: &serde_json::Value) -> Object {
    let metadata = json!({"name": name, "namespace": "ns", "resourceVersion": version.to_string(), "labels": labels});
    Object::from_value(json!({"metadata": metadata})).unwrap()
}

fn query(namespace: Option<&str>, selector: &str) -> Query {
    Query { cluster: ClusterKey::host(), gvk: watch().gvk, namespace: namespace.map(str::to_owned), selector: selector.into() }
}

fn objects(names: &[&str]) -> WatchSet {
    WatchSet { objects: names.iter().map(|name| key(name)).collect(), lists: BTreeSet::new() }
}

fn lists(queries: &[Query]) -> WatchSet {
    WatchSet { objects: BTreeSet::new(), lists: queries.iter().cloned().collect() }
}

/// Who is told, and what: `name +key`, `~` for a change, `-` for a deletion, `!` for synced.
fn told(notices: &[(Owner, Notice)]) -> Vec<String> {
    let text = |notice: &Notice| match notice {
        Notice::Synced(_) => "!".to_owned(),
        Notice::Lost(_) => "?".to_owned(),
        Notice::Refused(_) => "#".to_owned(),
        Notice::Changed(Change { key, before, after }) => {
            let sign = match (before, after) {
                (None, _) => '+',
                (_, None) => '-',
                _ => '~',
            };
            format!("{sign}{}", key.name)
        }
    };
    notices.iter().map(|(owner, notice)| format!("{} {}", owner.key.name, text(notice))).collect()
}

#[test]
fn a_watch_lives_as_long_as_somebody_names_it() {
    let mut book = Book::default();
    assert_eq!(book.declare(&owner("a"), objects(&["x"])).started, [watch()]);
    assert_eq!(book.declare(&owner("b"), lists(&[query(None, "")])), Turnover::default());
    assert_eq!(book.declare(&owner("a"), WatchSet::default()), Turnover::default());
    assert_eq!(book.declare(&owner("b"), objects(&["y"])), Turnover::default(), "a swap does not stop the watch");
    assert_eq!(book.declare(&owner("b"), WatchSet::default()).ended, [watch()]);
    assert_eq!(book.look(&key("x")), Look::Unwatched);
}

#[test]
fn changes_go_to_those_whose_set_they_touch() {
    let mut book = Book::default();
    book.declare(&owner("byname"), objects(&["x"]));
    book.declare(&owner("bylabel"), lists(&[query(Some("ns"), "app=a")]));
    book.declare(&owner("elsewhere"), lists(&[query(Some("other"), "")]));
    let first = Step::Reset(vec![object("x", 1, &json!({})), object("y", 1, &json!({"app": "a"}))]);
    let synced = ["bylabel !", "byname !", "elsewhere !"];
    assert_eq!(told(&book.take(&watch(), first)), [["byname +x", "bylabel +y"].as_slice(), synced.as_slice()].concat());
    let apply = |book: &mut Book, object| told(&book.take(&watch(), Step::Applied(object)));
    assert_eq!(apply(&mut book, object("x", 2, &json!({"app": "a"}))), ["bylabel ~x", "byname ~x"]);
    assert_eq!(apply(&mut book, object("x", 2, &json!({"app": "a"}))), [""; 0], "the same version is no change");
    assert_eq!(apply(&mut book, object("y", 3, &json!({}))), ["bylabel ~y"], "leaving a selection is a change of it");
    assert_eq!(apply(&mut book, object("y", 4, &json!({}))), [""; 0]);
    assert_eq!(told(&book.take(&watch(), Step::Deleted(object("x", 5, &json!({}))))), ["bylabel -x", "byname -x"]);
}

#[test]
fn a_list_after_a_gap_tells_the_difference_alone() {
    let mut book = Book::default();
    book.declare(&owner("o"), lists(&[query(None, "")]));
    let all = |versions: &[(&str, u64)]| {
        Step::Reset(versions.iter().map(|(name, version)| object(name, *version, &json!({}))).collect())
    };
    book.take(&watch(), all(&[("a", 1), ("b", 1), ("c", 1)]));
    assert_eq!(told(&book.take(&watch(), all(&[("b", 1), ("c", 2), ("d", 3)]))), ["o -a", "o ~c", "o +d", "o !"]);
}

#[test]
fn what_is_not_permitted_is_told_once_and_so_is_its_end() {
    let failing = |error: ReadError, synced| WatchState::Failing { error, attempt: 1, next: Duration::ZERO, synced };
    let refused = |synced| failing(ReadError::Forbidden { missing: Box::default(), message: "no".into() }, synced);
    let mut book = Book::default();
    book.declare(&owner("o"), objects(&["x"]));
    assert_eq!(told(&book.fail(&watch(), failing(ReadError::Unavailable("down".into()), false))), [""; 0]);
    assert_eq!(told(&book.fail(&watch(), refused(false))), ["o #"]);
    assert_eq!(told(&book.fail(&watch(), refused(false))), [""; 0]);
    assert_eq!(told(&book.take(&watch(), Step::Reset(Vec::new()))), ["o !"]);
    assert_eq!(told(&book.fail(&watch(), refused(true))), ["o #"]);
    assert_eq!(told(&book.take(&watch(), Step::Opened)), ["o !"], "it goes on without a list");
    assert_eq!(told(&book.take(&watch(), Step::Opened)), [""; 0]);
}

#[test]
fn unknown_is_not_absent() {
    let mut book = Book::default();
    book.declare(&owner("o"), objects(&["x"]));
    assert_eq!(book.look(&key("x")), Look::Unknown);
    assert_eq!(book.list(&query(None, "")), None);
    book.take(&watch(), Step::Reset(Vec::new()));
    assert_eq!(book.look(&key("x")), Look::Absent);
    book.take(&watch(), Step::Applied(object("x", 1, &json!({}))));
    assert!(matches!(book.look(&key("x")), Look::Present(_)));
    assert_eq!(told(&book.lose(&watch())), ["o ?"], "a cluster that leaves deletes nothing");
    assert_eq!(book.look(&key("x")), Look::Unknown);
    book.take(&watch(), Step::Reset(vec![object("x", 1, &json!({}))]));
    assert_eq!(told(&book.gone(&watch())), ["o -x"], "a kind that is not served any more has no objects");
    assert_eq!(book.look(&key("x")), Look::Absent);
}

#[test]
fn a_failing_watch_keeps_what_it_knew() {
    let mut book = Book::default();
    book.declare(&owner("o"), objects(&["x"]));
    let failing = |synced| WatchState::Failing {
        error: plinth_engine::ports::ReadError::Unavailable("away".into()),
        attempt: 1,
        next: std::time::Duration::ZERO,
        synced,
    };
    book.set_state(&watch(), failing(false));
    assert_eq!(book.look(&key("x")), Look::Unknown);
    book.take(&watch(), Step::Opened);
    assert_eq!(book.look(&key("x")), Look::Unknown, "an open watch that never listed knows nothing");
    book.take(&watch(), Step::Reset(vec![object("x", 1, &json!({}))]));
    book.set_state(&watch(), failing(true));
    assert!(matches!(book.look(&key("x")), Look::Present(_)));
    book.take(&watch(), Step::Opened);
    assert_eq!(book.state(&watch()), Some(WatchState::Synced));
}

#[test]
fn a_status_change_is_told_apart() {
    let change = |before: serde_json::Value, after: serde_json::Value| {
        let object = |value| Some(Arc::new(Object::from_value(value).unwrap()));
        Change { key: key("x"), before: object(before), after: object(after) }.is_more_than_status()
    };
    let base = json!({"metadata": {"generation": 1, "resourceVersion": "1"}, "status": {"a": 1}});
    assert!(!change(base.clone(), json!({"metadata": {"generation": 1, "resourceVersion": "2"}, "status": {"a": 2}})));
    assert!(change(base.clone(), json!({"metadata": {"generation": 2}})));
    assert!(change(base.clone(), json!({"metadata": {"generation": 1, "labels": {"a": "b"}}})));
    assert!(change(base, json!({"metadata": {"generation": 1, "deletionTimestamp": "x"}})));
    assert!(change(json!({"data": {"a": "1"}}), json!({"data": {"a": "2"}})), "kinds without a generation count whole");
}

#[derive(Clone, Debug)]
enum Move {
    Declare(u8, Vec<u8>, bool),
    Apply(u8, u64, bool),
    Delete(u8),
    Reset(Vec<u8>),
}

fn moves() -> impl Strategy<Value = Vec<Move>> {
    let declare =
        (0..3_u8, prop::collection::vec(0..4_u8, 0..3), any::<bool>()).prop_map(|(o, keys, label)| Move::Declare(o, keys, label));
    let apply = (0..4_u8, 0..5_u64, any::<bool>()).prop_map(|(name, version, label)| Move::Apply(name, version, label));
    let delete = (0..4_u8).prop_map(Move::Delete);
    let reset = prop::collection::vec(0..4_u8, 0..4).prop_map(Move::Reset);
    prop::collection::vec(prop_oneof![declare, apply, delete, reset], 0..40)
}

proptest! {
    /// After any moves, the index holds what a plain map would, and a watch exists exactly while somebody declares it.
    #[test]
    fn the_book_agrees_with_a_plain_map(moves in moves()) {
        let mut book = Book::default();
        let mut sets: BTreeMap<u8, WatchSet> = BTreeMap::new();
        let mut model: BTreeMap<u8, Object> = BTreeMap::new();
        let named = |name: u8, version, label: bool| {
            object(&name.to_string(), version, &if label { json!({"app": "a"}) } else { json!({}) })
        };
        for step in moves {
            let watched = sets.values().any(|set| !set.is_empty());
            match step {
                Move::Declare(who, keys, label) => {
                    let mut set = objects(&keys.iter().map(ToString::to_string).collect::<Vec<_>>().iter().map(String::as_str).collect::<Vec<_>>());
                    if label { set.lists.insert(query(None, "app=a")); }
                    let turnover = book.declare(&owner(&who.to_string()), set.clone());
                    sets.insert(who, set);
                    let now = sets.values().any(|set| !set.is_empty());
                    prop_assert_eq!(turnover.started.len(), usize::from(!watched && now));
                    prop_assert_eq!(turnover.ended.len(), usize::from(watched && !now));
                    if !now { model.clear(); }
                }
                Move::Apply(name, version, label) if watched => {
                    let new = named(name, version, label);
                    if model.get(&name).and_then(|old| super::version(old)) != super::version(&new) { model.insert(name, new.clone()); }
                    book.take(&watch(), Step::Applied(new));
                }
                Move::Delete(name) if watched => {
                    model.remove(&name);
                    book.take(&watch(), Step::Deleted(named(name, 0, false)));
                }
                Move::Reset(names) if watched => {
                    let all: BTreeMap<u8, Object> = names.iter().map(|name| (*name, named(*name, 9, true))).collect();
                    book.take(&watch(), Step::Reset(all.values().cloned().collect()));
                    model = all;
                }
                _ => {}
            }
            for name in 0..4_u8 {
                let seen = match book.look(&key(&name.to_string())) { Look::Present(object) => Some((*object).clone()), _ => None };
                prop_assert_eq!(seen.as_ref(), model.get(&name));
            }
        }
    }
}
