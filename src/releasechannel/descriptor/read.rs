//! Reading a descriptor: by content, never by media type (ocm.md section 1).

use std::collections::BTreeMap;

use serde_json::{Map, Value};

use super::{Descriptor, DigestSpec, Identity, Label, Reference, Resource, Schema, Signature};
use crate::source::is_component_name;
use crate::text::{self, TextError};

/// Why a text is not a component descriptor.
#[derive(Clone, Debug, PartialEq, Eq, thiserror::Error)]
pub enum DescriptorError {
    /// Neither JSON nor YAML.
    #[error("the component descriptor is neither JSON nor YAML: {0}")]
    Text(#[from] TextError),
    /// A schema that plinth does not know.
    #[error("the component descriptor has the schema `{0}`, known are v2 and ocm.software/v3alpha1")]
    Schema(String),
    /// A field is missing or has the wrong form.
    #[error("the component descriptor's {path} {reason}")]
    Field {
        /// Path of the field.
        path: String,
        /// What is wrong with it.
        reason: String,
    },
}

impl Descriptor {
    /// Reads a descriptor. Strict on what is interpreted, lenient on unknown fields.
    pub fn read(bytes: &[u8]) -> Result<Self, DescriptorError> {
        Self::from_value(text::document(bytes)?)
    }

    /// Reads a descriptor that has been decoded already.
    pub fn from_value(document: Value) -> Result<Self, DescriptorError> {
        let schema = schema_of(&document)?;
        let root = Field { path: String::new(), value: Some(&document) };
        let (meta, elements, reference_key) = match schema {
            Schema::V2 => (root.child("component"), root.child("component"), "componentReferences"),
            Schema::V3Alpha1 => (root.child("metadata"), root.child("spec"), "references"),
        };
        let name = meta.child("name").required_text()?;
        if !is_component_name(&name) {
            return Err(meta.child("name").error(format!("`{}` is not a component name", short(&name))));
        }
        let version = meta.child("version").required_text()?;
        Ok(Self {
            schema,
            name,
            version,
            provider: provider_name(&meta.child("provider"))?,
            labels: meta.child("labels").list(label)?,
            resources: elements.child("resources").list(|field| resource(field, field.child("type").required_text()?))?,
            sources: elements.child("sources").list(|field| resource(field, field.child("type").text()?))?,
            references: elements.child(reference_key).list(reference)?,
            signatures: root.child("signatures").list(signature)?,
            document,
        })
    }
}

fn schema_of(document: &Value) -> Result<Schema, DescriptorError> {
    let text = |value: Option<&Value>| value.and_then(Value::as_str).map(str::to_owned);
    if let Some(version) = document.get("meta").and_then(|meta| meta.get("schemaVersion")) {
        return match version.as_str() {
            Some("v2") => Ok(Schema::V2),
            _ => Err(DescriptorError::Schema(short(&version.as_str().map_or_else(|| version.to_string(), str::to_owned)))),
        };
    }
    match (text(document.get("apiVersion")), text(document.get("kind"))) {
        (Some(api), Some(kind)) if api == "ocm.software/v3alpha1" && kind == "ComponentVersion" => Ok(Schema::V3Alpha1),
        (Some(api), kind) => Err(DescriptorError::Schema(short(&format!("{api} {}", kind.unwrap_or_default())))),
        _ => Err(DescriptorError::Schema("none".to_owned())),
    }
}

/// A value with its path, for errors. Absent and `null` are the same.
struct Field<'a> {
    path: String,
    value: Option<&'a Value>,
}

impl<'a> Field<'a> {
    fn child(&self, key: &str) -> Field<'a> {
        let path = if self.path.is_empty() { key.to_owned() } else { format!("{}.{key}", self.path) };
        Field { path, value: self.value.and_then(|value| value.get(key)).filter(|value| !value.is_null()) }
    }

    fn error(&self, reason: impl Into<String>) -> DescriptorError {
        DescriptorError::Field { path: self.path.clone(), reason: reason.into() }
    }

    fn text(&self) -> Result<String, DescriptorError> {
        match self.value {
            None => Ok(String::new()),
            Some(Value::String(text)) => Ok(text.clone()),
            Some(_) => Err(self.error("is not text")),
        }
    }

    fn required_text(&self) -> Result<String, DescriptorError> {
        let text = self.text()?;
        if text.is_empty() { Err(self.error("is missing")) } else { Ok(text) }
    }

    fn object(&self) -> Result<Option<&'a Map<String, Value>>, DescriptorError> {
        match self.value {
            None => Ok(None),
            Some(Value::Object(object)) => Ok(Some(object)),
            Some(_) => Err(self.error("is not an object")),
        }
    }

    fn list<T>(&self, read: impl Fn(&Field<'a>) -> Result<T, DescriptorError>) -> Result<Vec<T>, DescriptorError> {
        let items = match self.value {
            None => return Ok(Vec::new()),
            Some(Value::Array(items)) => items,
            Some(_) => return Err(self.error("is not a list")),
        };
        let item = |(index, value)| Field { path: format!("{}[{index}]", self.path), value: Some(value) };
        items.iter().enumerate().map(item).map(|field| read(&field)).collect()
    }

    fn texts(&self) -> Result<BTreeMap<String, String>, DescriptorError> {
        let entries = self.object()?.into_iter().flatten();
        entries.map(|(key, _)| Ok((key.clone(), self.child(key).text()?))).collect()
    }
}

/// The provider is a name, an object, or (schema v2, with labels) an object as JSON inside a text.
fn provider_name(field: &Field<'_>) -> Result<String, DescriptorError> {
    if let Some(Value::Object(_)) = field.value {
        return field.child("name").text();
    }
    let text = field.text()?;
    let inside = serde_json::from_str::<Value>(&text).ok();
    let name = inside.as_ref().and_then(|value| value.get("name")).and_then(Value::as_str);
    Ok(name.map_or(text.clone(), str::to_owned))
}

fn label(field: &Field<'_>) -> Result<Label, DescriptorError> {
    let value = field.value.and_then(|label| label.get("value")).cloned().unwrap_or_default();
    Ok(Label { name: field.child("name").required_text()?, value, signing: is_signing(field.child("signing").value) })
}

/// `true`, or the text `"true"` (ocm.md 8.1).
pub(crate) fn is_signing(value: Option<&Value>) -> bool {
    value.is_some_and(|value| *value == Value::Bool(true) || value.as_str() == Some("true"))
}

fn identity(field: &Field<'_>) -> Result<Identity, DescriptorError> {
    let name = field.child("name").required_text()?;
    if !is_element_name(&name) {
        return Err(field.child("name").error(format!("`{}` is not an element name", short(&name))));
    }
    Ok(Identity { name, extra: field.child("extraIdentity").texts()? })
}

/// Lenient where the two tools differ (one letter, capitals), strict on what could break a path or a line of output.
fn is_element_name(name: &str) -> bool {
    name.len() <= 255 && name.bytes().all(|byte| byte.is_ascii_alphanumeric() || matches!(byte, b'-' | b'_' | b'+' | b'.'))
}

fn resource(field: &Field<'_>, kind: String) -> Result<Resource, DescriptorError> {
    let access = field.child("access");
    access.object()?;
    access.child("type").text()?;
    Ok(Resource {
        identity: identity(field)?,
        version: field.child("version").text()?,
        kind,
        relation: field.child("relation").text()?,
        access: access.value.cloned().unwrap_or_default(),
        digest: digest(&field.child("digest"))?,
        labels: field.child("labels").list(label)?,
    })
}

fn reference(field: &Field<'_>) -> Result<Reference, DescriptorError> {
    let component = field.child("componentName").required_text()?;
    if !is_component_name(&component) {
        return Err(field.child("componentName").error(format!("`{}` is not a component name", short(&component))));
    }
    Ok(Reference {
        identity: identity(field)?,
        component,
        version: field.child("version").required_text()?,
        digest: digest(&field.child("digest"))?,
        labels: field.child("labels").list(label)?,
    })
}

fn digest(field: &Field<'_>) -> Result<Option<DigestSpec>, DescriptorError> {
    if field.object()?.is_none() {
        return Ok(None);
    }
    let spec = DigestSpec {
        hash: field.child("hashAlgorithm").text()?,
        normalisation: field.child("normalisationAlgorithm").text()?,
        value: field.child("value").text()?,
    };
    // v2 writes an empty digest object for a reference without digest.
    Ok((spec != DigestSpec::default()).then_some(spec))
}

fn signature(field: &Field<'_>) -> Result<Signature, DescriptorError> {
    let inner = field.child("signature");
    Ok(Signature {
        name: field.child("name").required_text()?,
        digest: digest(&field.child("digest"))?.unwrap_or_default(),
        algorithm: inner.child("algorithm").text()?,
        media_type: inner.child("mediaType").text()?,
        value: inner.child("value").text()?,
        issuer: inner.child("issuer").text()?,
    })
}

fn short(text: &str) -> String {
    text.chars().take(120).filter(|c| !c.is_control()).collect()
}

#[cfg(test)]
mod tests;
