//! Kubernetes events about an instance's conditions, as kro writes them behind its gate `InstanceConditionEvents`. Pure.

use jiff::Timestamp;
use plinth_api::{GroupVersionKind, Object, ObjectKey};
use serde_json::{Value, json};
use sha2::{Digest, Sha256};

use crate::conditions::seconds;

/// Field manager of events.
pub(super) const MANAGER: &str = "plinth.dev/events";

/// Conditions that changed from one status to another: type, old status (`none` for a new one), new status, reason.
fn transitions(before: &Value, after: &Value) -> Vec<(String, String, String, String)> {
    let text = |condition: &Value, field: &str| condition[field].as_str().unwrap_or_default().to_owned();
    let list = |status: &Value| status["conditions"].as_array().cloned().unwrap_or_default();
    let old = list(before);
    let changed = list(after).into_iter().filter_map(|now| {
        let kind = text(&now, "type");
        let was = old.iter().find(|condition| condition["type"] == kind.as_str());
        let was = was.map_or_else(|| "none".to_owned(), |was| text(was, "status"));
        let is = text(&now, "status");
        (was != is).then(|| (kind, was, is, text(&now, "reason")))
    });
    changed.collect()
}

/// One event for each transition between two statuses of an instance.
pub(super) fn of(instance: &Object, plural: &str, key: &ObjectKey, after: &Value, now: Timestamp) -> Vec<(ObjectKey, Object)> {
    let namespace = key.namespace.clone().unwrap_or_else(|| "default".to_owned());
    let time = seconds(now).to_string();
    let event = |(kind, was, is, reason): (String, String, String, String)| {
        let message = format!("{was} -> {is}: {reason}");
        let salt = format!("{}/{kind}/{message}/{time}", instance.uid().unwrap_or_default());
        let name = format!("{}.{}", key.name, &crate::hex(&Sha256::digest(salt))[..16]);
        let at = ObjectKey {
            cluster: key.cluster.clone(),
            gvk: GroupVersionKind::new("", "v1", "Event"),
            namespace: Some(namespace.clone()),
            name: name.clone(),
        };
        let object = json!({
            "apiVersion": "v1",
            "kind": "Event",
            "metadata": {"name": name, "namespace": namespace},
            "involvedObject": {"apiVersion": key.gvk.api_version(), "kind": key.gvk.kind, "name": key.name, "namespace": key.namespace,
                "uid": instance.uid()},
            "type": if is == "True" { "Normal" } else { "Warning" },
            "reason": kind,
            "message": message,
            "source": {"component": format!("kro/{plural}.{}-controller", key.gvk.group)},
            "firstTimestamp": time,
            "lastTimestamp": time,
            "count": 1,
        });
        Some((at, Object::from_value(object)?))
    };
    transitions(instance.status(), after).into_iter().filter_map(event).collect()
}

#[cfg(test)]
mod tests {
    use plinth_api::ClusterKey;

    use super::*;

    #[test]
    fn each_transition_is_an_event_in_kros_words() {
        let status = |managed: &str, ready: &str| {
            json!({"conditions": [{"type": "InstanceManaged", "status": managed, "reason": "Managed"},
                {"type": "Ready", "status": ready, "reason": "NotReady"}]})
        };
        let instance =
            json!({"apiVersion": "x.test/v1", "kind": "App", "metadata": {"name": "one", "namespace": "n", "uid": "u"}});
        let mut instance = Object::from_value(instance).unwrap();
        let key = instance.key(&ClusterKey::host()).unwrap();
        let said = |instance: &Object, after: &Value| -> Vec<String> {
            let events = of(instance, "apps", &key, after, Timestamp::UNIX_EPOCH);
            events.iter().map(|(_, event)| format!("{} {} {}", event.0["type"], event.0["reason"], event.0["message"])).collect()
        };
        let first = said(&instance, &status("True", "False"));
        assert_eq!(
            first,
            ["\"Normal\" \"InstanceManaged\" \"none -> True: Managed\"", "\"Warning\" \"Ready\" \"none -> False: NotReady\""]
        );
        instance.0.insert("status".into(), status("True", "False"));
        assert_eq!(said(&instance, &status("True", "True")), ["\"Normal\" \"Ready\" \"False -> True: NotReady\""]);
        assert_eq!(said(&instance, &status("True", "False")), Vec::<String>::new());
        let (_, event) = of(&instance, "apps", &key, &status("True", "True"), Timestamp::UNIX_EPOCH).remove(0);
        assert_eq!(event.0["source"]["component"], "kro/apps.x.test-controller");
    }
}
