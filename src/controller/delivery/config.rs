//! Which configuration a delivery object works with: its own, or what its parent hands down (ocm.md section 16). Pure.

use base64::{Engine, engine::general_purpose::STANDARD};
use plinth_api::{
    Object,
    delivery::{GROUP, OcmConfigRef, VERSION},
};
use serde_json::{Value, json};

/// An entry of `spec.ocmConfig`, resolved as far as that goes without other objects.
#[derive(Clone, Debug, PartialEq)]
pub enum Source {
    /// A Secret or ConfigMap, as it goes into `status.effectiveOCMConfig`.
    Data(Value),
    /// A delivery object whose propagated entries are taken over.
    Inherited {
        /// `Repository`, `Component`, `Resource` or `Replication`.
        kind: String,
        /// Its name.
        name: String,
        /// Its namespace.
        namespace: String,
        /// Whether this object hands them down in turn.
        propagate: bool,
    },
}

/// Reads the entries of an object in `namespace`.
pub fn sources(entries: &[OcmConfigRef], namespace: &str) -> Vec<Source> {
    entries.iter().map(|entry| source(entry, namespace)).collect()
}

fn source(entry: &OcmConfigRef, namespace: &str) -> Source {
    let namespace = entry.namespace.clone().filter(|own| !own.is_empty()).unwrap_or_else(|| namespace.to_owned());
    let propagate = entry.policy.as_deref() != Some("DoNotPropagate");
    match entry.kind.as_str() {
        "Secret" | "ConfigMap" => Source::Data(json!({
            "apiVersion": "v1", "kind": entry.kind, "name": entry.name, "namespace": namespace, "policy": policy(propagate),
        })),
        kind => Source::Inherited { kind: kind.to_owned(), name: entry.name.clone(), namespace, propagate },
    }
}

fn policy(propagate: bool) -> &'static str {
    if propagate { "Propagate" } else { "DoNotPropagate" }
}

/// What `parent` hands down: the entries of its `status.effectiveOCMConfig` that are meant to be.
pub fn handed_down(parent: &Object) -> Vec<Value> {
    let entries = parent.status().get("effectiveOCMConfig").and_then(Value::as_array);
    let passed = |entry: &&Value| entry.get("policy").and_then(Value::as_str) != Some("DoNotPropagate");
    entries.map(|entries| entries.iter().filter(passed).cloned().collect()).unwrap_or_default()
}

/// Entries taken over from an object that `spec.ocmConfig` names.
pub fn inherited(from: &Object, propagate: bool) -> Vec<Value> {
    let mut entries = handed_down(from);
    for entry in &mut entries {
        entry["policy"] = policy(propagate).into();
    }
    entries
}

/// Adds entries, each object once, in order of first mention.
pub fn merge(into: &mut Vec<Value>, entries: Vec<Value>) {
    let id = |entry: &Value| (entry["kind"].clone(), entry["namespace"].clone(), entry["name"].clone());
    for entry in entries {
        if !into.iter().any(|have| id(have) == id(&entry)) {
            into.push(entry);
        }
    }
}

/// `status.effectiveOCMConfig` of an object as it is.
pub fn effective(object: &Object) -> Vec<Value> {
    object.status().get("effectiveOCMConfig").and_then(Value::as_array).cloned().unwrap_or_default()
}

/// Texts of `.ocmconfig` and `.dockerconfigjson` in a Secret or ConfigMap. The error never has a value in it.
pub fn texts(object: &Object) -> Result<(Option<String>, Option<String>), String> {
    let is_secret = object.0.get("kind").and_then(Value::as_str) == Some("Secret");
    let field = |name: &str| -> Result<Option<String>, String> {
        let Some(text) = object.at(&["data", name]).and_then(Value::as_str) else { return Ok(None) };
        if !is_secret {
            return Ok(Some(text.to_owned()));
        }
        let bytes = STANDARD.decode(text).map_err(|_| format!("data[{name:?}] is not base64"))?;
        String::from_utf8(bytes).map(Some).map_err(|_| format!("data[{name:?}] is not text"))
    };
    let (ocm, docker) = (field(".ocmconfig")?, if is_secret { field(".dockerconfigjson")? } else { None });
    match (&ocm, &docker) {
        (None, None) => Err("has neither .ocmconfig nor .dockerconfigjson".to_owned()),
        _ => Ok((ocm, docker)),
    }
}

/// `apiVersion` of delivery kinds.
pub fn api_version() -> String {
    format!("{GROUP}/{VERSION}")
}

#[cfg(test)]
mod tests {
    use super::*;

    fn entry(kind: &str, name: &str, namespace: Option<&str>, policy: Option<&str>) -> OcmConfigRef {
        let text = |text: Option<&str>| text.map(str::to_owned);
        OcmConfigRef { kind: kind.into(), name: name.into(), namespace: text(namespace), policy: text(policy) }
    }

    #[test]
    fn entries_get_the_namespace_of_their_object() {
        let found =
            sources(&[entry("Secret", "s", None, None), entry("ConfigMap", "c", Some("other"), Some("DoNotPropagate"))], "ns");
        let expected = [
            json!({"apiVersion": "v1", "kind": "Secret", "name": "s", "namespace": "ns", "policy": "Propagate"}),
            json!({"apiVersion": "v1", "kind": "ConfigMap", "name": "c", "namespace": "other", "policy": "DoNotPropagate"}),
        ];
        assert_eq!(found, expected.map(Source::Data));
    }

    #[test]
    fn only_what_is_propagated_is_handed_down() {
        let parent = Object::from_value(json!({"status": {"effectiveOCMConfig": [
            {"kind": "Secret", "name": "a", "namespace": "n", "policy": "Propagate"},
            {"kind": "Secret", "name": "b", "namespace": "n", "policy": "DoNotPropagate"}]}}))
        .unwrap();
        assert_eq!(handed_down(&parent).len(), 1);
        assert_eq!(inherited(&parent, false)[0]["policy"], "DoNotPropagate");
        assert_eq!(handed_down(&Object::default()), Vec::<Value>::new());
    }

    #[test]
    fn an_object_counts_once() {
        let one = json!({"kind": "Secret", "name": "a", "namespace": "n", "policy": "Propagate"});
        let mut all = vec![one.clone()];
        merge(&mut all, vec![one.clone(), json!({"kind": "Secret", "name": "a", "namespace": "m"})]);
        assert_eq!(all.len(), 2);
    }

    #[test]
    fn configuration_is_read_and_errors_keep_secrets() {
        let secret = |data: Value| Object::from_value(json!({"kind": "Secret", "data": data})).unwrap();
        assert_eq!(texts(&secret(json!({".dockerconfigjson": "e30="}))), Ok((None, Some("{}".to_owned()))));
        let map = Object::from_value(json!({"kind": "ConfigMap", "data": {".ocmconfig": "type: x"}})).unwrap();
        assert_eq!(texts(&map), Ok((Some("type: x".to_owned()), None)));
        let error = texts(&secret(json!({".ocmconfig": "s3cr3t!"}))).unwrap_err();
        assert!(!error.contains("s3cr3t"), "{error}");
        assert!(texts(&secret(json!({}))).is_err());
    }
}
