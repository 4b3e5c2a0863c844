//! What is printed is what `docs/schema/event.v1.json` says.

#[expect(unreachable_pub, reason = "the file is a public module where it lives")]
#[path = "../../../../tests/support/json_schema.rs"]
mod json_schema;

use std::{fs, path::Path};

use jiff::Timestamp;
use serde_json::{Value, json};

use super::line;
use crate::event::Event;
use json_schema::check;

/// One event of every kind, with every optional part, as JSON. That they decode shows that the schema's reader and ours agree.
fn specimens() -> Vec<Value> {
    let key = json!({"cluster": "host", "group": "example.dev", "version": "v1", "kind": "Db", "namespace": "n", "name": "x"});
    let subject = json!({"key": key, "node": "db", "parent": key, "plane": "consumer"});
    let gvk = json!({"group": "example.dev", "version": "v1", "kind": "Db"});
    let reference = json!({"name": "example.dev/c", "version": "1.0.0"});
    let change = json!({"subject": subject, "action": "create", "by": "loop", "digest": "d", "resourceVersion": "1", "fields": ["spec"], "note": "n"});
    let plan = json!({
        "apiVersion": "plinth.dev/v1alpha1", "kind": "Plan", "platform": "p", "source": "s", "distribution": reference, "cluster": "c",
        "inputs": "i", "stages": [{"id": 1, "title": "t", "changes": [change], "until": "u"}],
        "deferred": [{"subject": subject, "node": "db", "missing": [gvk], "expectedFrom": "e"}],
        "unverified": ["signatures"],
        "rights": {
            "cluster": [{"apiGroups": ["g"], "resources": ["r"], "resourceNames": ["n"], "verbs": ["get"]},
                {"nonResourceURLs": ["/metrics"], "verbs": ["get"]}],
            "namespaces": {"n": [{"apiGroups": [""], "resources": ["pods"], "verbs": ["get"]}]},
            "lifts": [{"role": "ClusterRole r", "binding": "ClusterRoleBinding b", "rgd": "x", "subjects": ["ServiceAccount n/s"]}],
            "open": ["o"],
        },
    });
    let cause = json!({"subject": subject, "reason": "R", "message": "m"});
    let wait = json!({"subject": subject, "health": "Waiting", "message": "m", "forMs": 1});
    let mut kinds = vec![
        json!({"kind": "RunStarted", "verb": "up", "platform": "p", "source": "s", "cluster": "c", "resumed": "r0"}),
        json!({"kind": "Resolved", "root": reference, "components": [reference]}),
        json!({"kind": "CheckFinished", "id": "permissions", "verdict": "warned", "message": "m", "hint": "h"}),
        json!({"kind": "Planned", "plan": plan}),
        json!({"kind": "Approved", "by": "question"}),
        json!({"kind": "StageStarted", "stage": 1, "title": "t"}),
        json!({"kind": "ChangeApplied", "subject": subject, "action": "create", "digest": "d", "generation": 1, "result": "r", "uid": "u"}),
        json!({"kind": "ChangeDeferred", "subject": subject, "missing": [gvk], "expectedFrom": "e"}),
        json!({"kind": "SchemaServed", "gvk": gvk}),
        json!({"kind": "HealthChanged", "subject": subject, "health": "Failed", "reason": "R", "message": "m", "causes": [cause]}),
        json!({"kind": "Retry", "what": "w", "message": "m", "attempt": 1, "nextInMs": 1500}),
        json!({"kind": "Heartbeat", "stage": 1, "ready": 1, "total": 2, "longest": [wait]}),
        json!({"kind": "StageFinished", "stage": 1, "outcome": "done"}),
        json!({"kind": "Warning", "subject": subject, "reason": "R", "message": "m"}),
        json!({"kind": "RunFinished", "outcome": "failed", "message": "m", "hint": "h"}),
    ];
    let reasons = [
        json!({"why": "proven", "digest": "d", "generation": 1}),
        json!({"why": "unchanged"}),
        json!({"why": "notIncluded"}),
        json!({"why": "gone"}),
        json!({"why": "foreign", "owner": "helm"}),
    ];
    kinds.extend(reasons.iter().map(|reason| json!({"kind": "ChangeSkipped", "subject": subject, "reason": reason})));
    for kind in &mut kinds {
        let head = json!({"v": 1, "run": "r1", "seq": 1, "at": Timestamp::UNIX_EPOCH});
        kind.as_object_mut().unwrap().extend(head.as_object().unwrap().clone());
    }
    kinds
}

fn schema() -> Value {
    let path = Path::new(env!("CARGO_MANIFEST_DIR")).join("../../docs/schema/event.v1.json");
    serde_json::from_str(&fs::read_to_string(path).unwrap()).unwrap()
}

fn of_kind<'a>(schema: &'a Value, kind: &str) -> Option<&'a Value> {
    schema["oneOf"].as_array()?.iter().find(|one| one["properties"]["kind"]["const"] == kind)
}

#[test]
fn what_is_printed_is_what_the_schema_says() {
    let schema = schema();
    let mut kinds = std::collections::BTreeSet::new();
    for specimen in specimens() {
        let event: Event = serde_json::from_value(specimen.clone()).unwrap_or_else(|error| panic!("{specimen}: {error}"));
        let printed: Value = serde_json::from_str(&line(&event).unwrap()).unwrap();
        assert_eq!(printed, specimen, "what is printed is what was read");
        let kind = printed["kind"].as_str().unwrap();
        let of_kind = of_kind(&schema, kind).unwrap_or_else(|| panic!("the schema lacks {kind}"));
        check(of_kind, &schema, &printed, kind).unwrap();
        kinds.insert(kind.to_owned());
    }
    assert_eq!(kinds.len(), schema["oneOf"].as_array().unwrap().len(), "a kind of the schema is never printed");
}

#[test]
fn the_check_finds_what_does_not_fit() {
    let schema = schema();
    let approved = of_kind(&schema, "Approved").unwrap();
    let good = json!({"v": 1, "run": "r", "seq": 1, "at": "t", "kind": "Approved", "by": "x"});
    assert_eq!(check(approved, &schema, &good, ""), Ok(()));
    for (field, value) in [("v", json!(2)), ("by", json!(1)), ("more", json!("x")), ("kind", json!("Other"))] {
        let mut bad = good.clone();
        bad[field] = value;
        assert!(check(approved, &schema, &bad, "").is_err(), "{bad}");
    }
}
