//! From a ResourceGraphDefinition object to what the compiler takes.

use plinth_api::{GroupVersionKind, Object};
use plinth_engine::{Diagnostic, graph::Definition, naming::keys};

/// Reads an object; the diagnostics say what an author has to change.
///
/// An object without `spec` passes kro's CRD (kro.md 1.4), so that it gets here: it is refused, not a reason to panic.
pub fn read(object: &Object) -> Result<Definition, Vec<Diagnostic>> {
    if object.spec().is_null() {
        return Err(vec![Diagnostic::error("spec", "spec is missing").with_hint("add spec.schema and spec.resources")]);
    }
    Definition::from_object(object)
}

/// The kind that it defines.
pub fn kind(definition: &Definition) -> GroupVersionKind {
    let schema = &definition.spec.schema;
    GroupVersionKind::new(schema.group.as_str(), schema.api_version.as_str(), schema.kind.as_str())
}

/// Whether its author permits breaking changes of the generated CRD.
pub fn allows_breaking_changes(object: &Object) -> bool {
    object.annotation(keys::ALLOW_BREAKING_CHANGES) == Some("true")
}

#[cfg(test)]
mod tests {
    use serde_json::{Value, json};

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
            (json!({"schema": {"apiVersion": "v1"}, "resources": []}), "spec.schema.kind"),
        ] {
            let errors = read(&rgd(spec)).unwrap_err();
            assert!(errors.iter().any(|error| error.to_string().contains(words)), "{errors:?}");
        }
        let wrong = read(&rgd(json!({"schema": {"apiVersion": "v1", "kind": "App"}, "resources": [{"id": 3}]}))).unwrap();
        assert!(wrong.is_refused() && wrong.findings[0].to_string().contains("string"), "{:?}", wrong.findings);
        let stray = read(&rgd(json!({"schema": {"apiVersion": "v1", "kind": "App"}, "resource": []}))).unwrap();
        assert!(stray.findings[0].to_string().contains("spec.resource"), "{:?}", stray.findings);
    }
}
