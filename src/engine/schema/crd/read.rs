//! From a CustomResourceDefinition to the kinds it serves.

use std::sync::Arc;

use plinth_api::{GroupVersionKind, Object};
use serde::Deserialize;
use serde_json::Value;
use thiserror::Error;

use crate::schema::{Additional, KindInfo, Schema, object_meta};

/// Why a CustomResourceDefinition cannot be used.
#[derive(Clone, Debug, PartialEq, Eq, Error)]
#[error("reading CustomResourceDefinition {name}: {message}")]
pub struct CrdError {
    /// Its `metadata.name`.
    pub name: String,
    /// What is wrong.
    pub message: String,
}

/// All served versions of a CustomResourceDefinition (`apiextensions.k8s.io/v1`) as kinds.
///
/// `apiVersion`, `kind` and `metadata` are described as an API server describes them, in whole objects inside too.
pub fn kinds(crd: &Object) -> Result<Vec<KindInfo>, CrdError> {
    let fault = |message: String| CrdError { name: crd.name().to_owned(), message };
    let text = |path: &[&str]| {
        let value = crd.at(path).and_then(Value::as_str).filter(|text| !text.is_empty());
        value.map(str::to_owned).ok_or_else(|| fault(format!("{} is missing", path.join("."))))
    };
    let (group, kind) = (text(&["spec", "group"])?, text(&["spec", "names", "kind"])?);
    let plural = text(&["spec", "names", "plural"])?;
    let namespaced = text(&["spec", "scope"])? == "Namespaced";
    let versions = crd.at(&["spec", "versions"]).and_then(Value::as_array);
    let versions = versions.ok_or_else(|| fault("spec.versions is missing".to_owned()))?;
    let mut kinds = Vec::new();
    for version in versions.iter().filter(|version| version["served"] == true) {
        let name = version["name"].as_str().ok_or_else(|| fault("a version has no name".to_owned()))?;
        let mut schema = match version.pointer("/schema/openAPIV3Schema") {
            Some(schema) => Schema::deserialize(schema).map_err(|error| fault(format!("schema of {name}: {error}")))?,
            None => Schema::open_object(),
        };
        describe_whole_object(&mut schema);
        describe_embedded(&mut schema);
        let gvk = GroupVersionKind::new(&*group, name, &*kind);
        kinds.push(KindInfo { gvk, plural: plural.clone(), namespaced, schema: Arc::new(schema) });
    }
    Ok(kinds)
}

fn describe_whole_object(schema: &mut Schema) {
    for name in ["apiVersion", "kind"] {
        schema.properties.entry(name.to_owned()).or_insert_with(|| Arc::new(Schema::of_type("string")));
    }
    let undescribed = schema.properties.get("metadata").is_none_or(|metadata| metadata.properties.is_empty());
    if undescribed {
        schema.properties.insert("metadata".to_owned(), object_meta());
    }
}

fn describe_embedded(schema: &mut Schema) {
    if !has_embedded(schema) {
        return;
    }
    if schema.embedded_resource {
        describe_whole_object(schema);
    }
    // The schema was just read, so nobody else holds its parts.
    schema.properties.values_mut().chain(&mut schema.items).for_each(|inner| describe_embedded(Arc::make_mut(inner)));
    if let Some(Additional::Schema(values)) = &mut schema.additional_properties {
        describe_embedded(Arc::make_mut(values));
    }
}

fn has_embedded(schema: &Schema) -> bool {
    let values = match &schema.additional_properties {
        Some(Additional::Schema(values)) => Some(values),
        _ => None,
    };
    schema.embedded_resource || schema.properties.values().chain(&schema.items).chain(values).any(|inner| has_embedded(inner))
}
