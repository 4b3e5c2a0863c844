//! From a ResourceGraphDefinition object to what the compiler takes.

use plinth_api::{Object, rgd::RgdSpec};
use plinth_engine::{Diagnostic, graph::Definition, naming::keys};
use serde_json::Value;

/// Reads an object; the diagnostic says what an author has to change.
///
/// An object without `spec` passes kro's CRD (kro.md 1.4), so that it gets here: it is refused, not a reason to panic.
pub fn read(object: &Object) -> Result<Definition, Diagnostic> {
    if object.spec().is_null() {
        return Err(Diagnostic::error("spec", "spec is missing").with_hint("add spec.schema and spec.resources"));
    }
    let spec: RgdSpec =
        serde_json::from_value(object.spec().clone()).map_err(|error| Diagnostic::error("spec", error.to_string()))?;
    Ok(Definition {
        name: object.name().to_owned(),
        uid: object.uid().unwrap_or_default().to_owned(),
        group: object.gvk().map(|gvk| gvk.group).unwrap_or_default(),
        spec,
        source: None,
    })
}

/// Whether its author permits breaking changes of the generated CRD.
pub fn allows_breaking_changes(object: &Object) -> bool {
    object.annotation(keys::ALLOW_BREAKING_CHANGES) == Some("true")
}

/// Whether the part that a graph is compiled from is the same.
pub fn same_input(a: &Object, b: &Object) -> bool {
    let input = |object: &Object| -> (Value, Option<String>) { (object.spec().clone(), object.uid().map(str::to_owned)) };
    input(a) == input(b)
}

#[cfg(test)]
mod tests {
    use serde_json::json;

    use super::*;

    fn rgd(spec: Value) -> Object {
        let metadata = json!({"name": "r", "uid": "u"});
        Object::from_value(
            json!({"apiVersion": "kro.run/v1alpha1", "kind": "ResourceGraphDefinition", "metadata": metadata, "spec": spec}),
        )
        .unwrap()
    }

    #[test]
    fn a_definition_keeps_its_identity() {
        let found = read(&rgd(json!({"schema": {"apiVersion": "v1alpha1", "kind": "App"}}))).unwrap();
        assert_eq!((found.name.as_str(), found.uid.as_str(), found.group.as_str()), ("r", "u", "kro.run"));
        assert_eq!(found.spec.schema.kind, "App");
    }

    #[test]
    fn bad_definitions_are_diagnosed() {
        for (spec, words) in [
            (Value::Null, "spec is missing"),
            (json!({}), "schema"),
            (json!({"schema": {"apiVersion": "v1", "kind": "App"}, "resource": []}), "resource"),
            (json!({"schema": {"apiVersion": "v1", "kind": "App"}, "resources": [{"id": 3}]}), "string"),
        ] {
            let error = read(&rgd(spec)).unwrap_err();
            assert!(error.message.contains(words), "{error}");
        }
    }
}
