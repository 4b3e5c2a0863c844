//! Two recordings held against each other, after taking out what no two servers have alike.

use plinth_engine::{
    cel::{Activation, Evaluated, Expression, Limits, evaluate},
    naming::keys,
};
use serde_json::{Map, Value, json};

use super::Recorded;

/// The values that are ours (contracts 11), with kro's in their place; the fourth are the field managers.
const IDENTITY: [(&str, &str); 3] = [
    ("app.kubernetes.io/managed-by", "kro"),
    ("kro.run/kro-version", "v0.9.4"),
    ("applyset.kubernetes.io/tooling", "kro/v0.9.4"),
];

/// What the server chooses or counts.
const VOLATILE: [&str; 6] = ["uid", "resourceVersion", "creationTimestamp", "managedFields", "generation", "selfLink"];

/// The first difference; `None` where there is none. `but` is a field of the instance that is not looked at.
pub(super) fn difference(ours: &Recorded, kro: &Recorded, but: &[&str]) -> Option<String> {
    let (ours, kro) = (plain(ours, but), plain(kro, but));
    first(&ours, &kro, "")
}

fn plain(recorded: &Recorded, but: &[&str]) -> Value {
    let uid = recorded.instance.pointer("/metadata/uid").and_then(Value::as_str).unwrap_or("no uid").to_owned();
    let seeded = seeded(&uid);
    let hide = |text: String| text.replace(&uid, "<uid:instance>").replace(&seeded, "<seeded by uid:instance>");
    let text = |value: &Value| {
        let text = hide(value.to_string());
        // A Job's selector has the Job's own.
        let own = value.pointer("/metadata/uid").and_then(Value::as_str).unwrap_or("no uid");
        let text = text.replace(own, "<uid:own>");
        let text = if recorded.definition_uid.is_empty() { text } else { text.replace(&recorded.definition_uid, "<uid:rgd>") };
        serde_json::from_str::<Value>(&text).unwrap_or_default()
    };
    let children: Map<String, Value> =
        recorded.children.iter().map(|(key, child)| (hide(key.clone()), object(text(child)))).collect();
    let mut instance = object(text(&recorded.instance));
    if let [way @ .., last] = but
        && let Some(Value::Object(place)) = way.iter().try_fold(&mut instance, |here, name| here.get_mut(*name))
    {
        place.remove(*last);
    }
    json!({"definition": recorded.definition, "instance": instance, "children": children})
}

/// What definitions of the corpus make of the instance's UID, which no two servers give alike.
fn seeded(uid: &str) -> String {
    let expression = Expression::parse("random.seededString(10, uid)").expect("it is an expression");
    match evaluate(&expression, &Activation::new().with("uid", json!(uid), None), &Limits::default()) {
        Ok(Evaluated::Value(Value::String(text))) => text,
        other => panic!("random.seededString gives text, and not {other:?}"),
    }
}

fn object(mut value: Value) -> Value {
    let managers = managers(&value);
    if let Some(Value::Object(metadata)) = value.get_mut("metadata") {
        VOLATILE.iter().for_each(|field| drop(metadata.remove(*field)));
        for list in ["labels", "annotations"] {
            let Some(Value::Object(map)) = metadata.get_mut(list) else { continue };
            for (key, theirs) in IDENTITY {
                if let Some(value) = map.get_mut(key) {
                    *value = json!(theirs);
                }
            }
        }
        // An instance's empty inventory comes with its labels here, with kro in a request and by a manager of its own.
        if metadata.get("labels").is_some_and(|labels| labels.get(keys::INSTANCE_ID).is_some()) {
            metadata.insert("managers".to_owned(), managers);
        }
    }
    if let Some(status) = value.get_mut("status") {
        without_times(status);
    }
    if let Some(Value::Object(spec)) = value.get_mut("spec") {
        // Given out by the server.
        ["clusterIP", "clusterIPs", "healthCheckNodePort"].iter().for_each(|field| drop(spec.remove(*field)));
        for port in spec.get_mut("ports").and_then(Value::as_array_mut).into_iter().flatten() {
            if let Some(port) = port.as_object_mut() {
                port.remove("nodePort");
            }
        }
    }
    value
}

/// Who wrote, with kro's names in the place of ours.
fn managers(object: &Value) -> Value {
    let entries = object.pointer("/metadata/managedFields").and_then(Value::as_array).into_iter().flatten();
    let mut names: Vec<String> = entries
        .filter_map(|entry| entry["manager"].as_str())
        .filter_map(|name| match name {
            "plinth.dev/applyset" | "kro.run/applyset" => Some("kro.run/applyset"),
            "plinth.dev/labeller" | "kro.run/labeller" => Some("kro.run/labeller"),
            "plinth.dev/applyset-parent" | "kro.run/applyset-parent" => Some("kro.run/applyset-parent"),
            _ => None,
        })
        .map(str::to_owned)
        .collect();
    names.sort();
    names.dedup();
    json!(names)
}

/// Times differ, and so do the words for what is not as it should be.
fn without_times(status: &mut Value) {
    match status {
        Value::Object(map) => {
            let unmet = map.contains_key("type") && map.get("status").is_some_and(|status| status != "True");
            for field in ["lastTransitionTime", "lastUpdateTime", "lastHeartbeatTime"] {
                map.remove(field);
            }
            if unmet {
                map.remove("message");
            }
            map.values_mut().for_each(without_times);
        }
        Value::Array(list) => {
            list.iter_mut().for_each(without_times);
            if list.iter().all(|entry| entry.get("type").is_some()) {
                list.sort_by(|a, b| a["type"].as_str().cmp(&b["type"].as_str()));
            }
        }
        _ => {}
    }
}

fn first(ours: &Value, kro: &Value, path: &str) -> Option<String> {
    match (ours, kro) {
        (Value::Object(ours), Value::Object(kro)) => {
            let names: std::collections::BTreeSet<&String> = ours.keys().chain(kro.keys()).collect();
            names.into_iter().find_map(|name| {
                let none = Value::Null;
                first(ours.get(name).unwrap_or(&none), kro.get(name).unwrap_or(&none), &format!("{path}.{name}"))
            })
        }
        (Value::Array(ours), Value::Array(kro)) if ours.len() == kro.len() => {
            ours.iter().zip(kro).enumerate().find_map(|(index, (ours, kro))| first(ours, kro, &format!("{path}[{index}]")))
        }
        (Value::Number(a), Value::Number(b)) if a.as_f64() == b.as_f64() => None,
        (ours, kro) if ours == kro => None,
        (ours, kro) => Some(format!("{path}: ours {}, kro {}", short(ours), short(kro))),
    }
}

fn short(value: &Value) -> String {
    let text = value.to_string();
    if text.chars().count() <= 300 { text } else { text.chars().take(300).collect::<String>() + "…" }
}
