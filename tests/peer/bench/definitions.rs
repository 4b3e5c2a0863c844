//! The definitions and instances of the bench.

use plinth_api::Object;
use serde_json::{Value, json};

/// Where instances live.
pub(super) const NAMESPACE: &str = "bench";

/// How the children of a definition hang together.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(super) enum Shape {
    /// Not at all.
    Flat,
    /// Each reads the one before.
    Chain,
    /// Not at all, and the first is never ready.
    Never,
}

/// A definition of so many ConfigMaps.
pub(super) fn definition(name: &str, kind: &str, children: usize, shape: Shape) -> Object {
    let resources: Vec<Value> = (0..children).map(|index| resource(name, index, shape)).collect();
    object(json!({
        "apiVersion": "kro.run/v1alpha1", "kind": "ResourceGraphDefinition", "metadata": {"name": name},
        "spec": {"schema": {"apiVersion": "v1alpha1", "kind": kind, "spec": {"value": "string | default=a"}}, "resources": resources},
    }))
}

fn resource(definition: &str, index: usize, shape: Shape) -> Value {
    let before = match shape {
        Shape::Chain if index > 0 => format!("${{map{}.metadata.uid}}", index - 1),
        _ => "none".to_owned(),
    };
    let name = format!("${{schema.metadata.name}}-{definition}-{index}");
    let template = json!({"apiVersion": "v1", "kind": "ConfigMap", "metadata": {"name": name},
        "data": {"value": "${schema.spec.value}", "before": before}});
    let mut resource = json!({"id": format!("map{index}"), "template": template});
    if shape == Shape::Never && index == 0 {
        resource["readyWhen"] = json!(["${map0.data.value == 'never'}"]);
    }
    resource
}

/// An instance.
pub(super) fn instance(kind: &str, name: &str) -> Object {
    object(json!({"apiVersion": "kro.run/v1alpha1", "kind": kind, "metadata": {"name": name, "namespace": NAMESPACE},
        "spec": {"value": "b"}}))
}

/// An object of literals.
pub(super) fn object(value: Value) -> Object {
    Object::from_value(value).expect("it is a mapping")
}
