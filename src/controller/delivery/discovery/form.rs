//! Descriptors as expressions see them: in the form of schema v2, whatever they were written in. Pure.

use plinth_releasechannel::descriptor::{Descriptor, Resource, Schema};
use serde_json::{Map, Value, json};

/// The whole descriptor, with these of its resources. `access` gives the access of each.
pub(super) fn descriptor(descriptor: &Descriptor, kept: &[usize], access: &dyn Fn(&Resource) -> Value) -> Value {
    let mut document = match descriptor.schema {
        Schema::V2 => descriptor.document.clone(),
        Schema::V3Alpha1 => json!({"meta": {"schemaVersion": "v2"}}),
    };
    document["component"] = component(descriptor, kept, access);
    if document.get("signatures").is_none()
        && let Some(signatures) = descriptor.document.get("signatures")
    {
        document["signatures"] = signatures.clone();
    }
    document
}

/// What is below `component` in it. Lists are always there.
pub(super) fn component(descriptor: &Descriptor, kept: &[usize], access: &dyn Fn(&Resource) -> Value) -> Value {
    let of = |value: &Value, name: &str| value.get(name).filter(|list| list.is_array()).cloned().unwrap_or_else(|| json!([]));
    let document = &descriptor.document;
    let mut component = match descriptor.schema {
        Schema::V2 => document["component"].as_object().cloned().unwrap_or_default(),
        Schema::V3Alpha1 => Map::new(),
    };
    let (lists, labels, references) = match descriptor.schema {
        Schema::V2 => (&document["component"], of(&document["component"], "labels"), "componentReferences"),
        Schema::V3Alpha1 => (&document["spec"], of(&document["metadata"], "labels"), "references"),
    };
    component.insert("name".into(), descriptor.name.as_str().into());
    component.insert("version".into(), descriptor.version.as_str().into());
    component.entry("provider").or_insert_with(|| descriptor.provider.as_str().into());
    component.insert("labels".into(), labels);
    component.insert("sources".into(), of(lists, "sources"));
    component.insert("componentReferences".into(), of(lists, references));
    let resources = kept.iter().map(|index| resource(descriptor, *index, access));
    component.insert("resources".into(), resources.collect());
    Value::Object(component)
}

/// One resource.
pub(super) fn resource(descriptor: &Descriptor, index: usize, access: &dyn Fn(&Resource) -> Value) -> Value {
    let elements = match descriptor.schema {
        Schema::V2 => &descriptor.document["component"]["resources"],
        Schema::V3Alpha1 => &descriptor.document["spec"]["resources"],
    };
    let mut element = elements[index].clone();
    if let Some(fields) = element.as_object_mut() {
        fields.insert("access".into(), access(&descriptor.resources[index]));
    }
    element
}

/// The access as it is written.
pub(super) fn as_written(resource: &Resource) -> Value {
    resource.access.clone()
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn both_schemas_look_the_same() {
        let resource = json!({"name": "i", "version": "1", "type": "ociImage", "relation": "external",
            "access": {"type": "ociArtifact", "imageReference": "r.test/i:1"}});
        let reference = json!({"name": "c", "componentName": "a.test/c", "version": "2"});
        let labels = json!([{"name": "tier", "value": "platform"}]);
        let two =
            Descriptor::from_value(json!({"meta": {"schemaVersion": "v2"}, "component": {"name": "a.test/p", "version": "1",
            "provider": "acme", "labels": labels, "repositoryContexts": [], "sources": [], "resources": [resource],
            "componentReferences": [reference]}}))
            .unwrap();
        let three = Descriptor::from_value(json!({"apiVersion": "ocm.software/v3alpha1", "kind": "ComponentVersion",
            "metadata": {"name": "a.test/p", "version": "1", "provider": {"name": "acme"}, "labels": labels},
            "repositoryContexts": [], "spec": {"resources": [resource], "references": [reference]}}))
        .unwrap();
        let mut forms = [&two, &three].map(|found| descriptor(found, &[0], &as_written));
        for form in &mut forms {
            form["component"].as_object_mut().unwrap().remove("repositoryContexts");
        }
        assert_eq!(forms[0], forms[1]);
        assert_eq!(forms[0]["component"]["componentReferences"][0]["componentName"], "a.test/c");
        assert_eq!(component(&two, &[], &as_written)["resources"], json!([]));
    }
}
