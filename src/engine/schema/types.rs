//! The schema itself: the part of OpenAPI v3 that Kubernetes uses.

use std::{collections::BTreeMap, sync::Arc};

use serde::{Deserialize, Serialize, Serializer};
use serde_json::Value;

/// A structural OpenAPI v3 schema with Kubernetes' extensions; serialises to the JSON that a CRD holds.
///
/// Unknown keywords (`externalDocs`, `example`, `x-…` of others) are dropped when read.
#[derive(Clone, Debug, Default, PartialEq, Serialize, Deserialize)]
#[serde(rename_all = "camelCase", default)]
#[expect(clippy::struct_excessive_bools, reason = "OpenAPI has them")]
pub struct Schema {
    /// `object`, `array`, `string`, `integer`, `number` or `boolean`; `None` where any JSON is meant or a combinator decides.
    #[serde(rename = "type", skip_serializing_if = "Option::is_none")]
    pub kind: Option<String>,
    /// Such as `int32`, `date-time`, `byte`.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub format: Option<String>,
    /// Text for people.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub description: Option<String>,
    /// Value taken where the field is absent.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub default: Option<Value>,
    /// Whether `null` is a value.
    #[serde(skip_serializing_if = "is_false")]
    pub nullable: bool,
    /// Named fields of an object.
    #[serde(skip_serializing_if = "BTreeMap::is_empty")]
    pub properties: BTreeMap<String, Arc<Schema>>,
    /// Fields of an object that are not named: a map.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub additional_properties: Option<Additional>,
    /// Elements of an array.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub items: Option<Arc<Schema>>,
    /// Fields that must be present.
    #[serde(skip_serializing_if = "Vec::is_empty")]
    pub required: Vec<String>,
    /// The only values allowed; empty for no restriction.
    #[serde(rename = "enum", skip_serializing_if = "Vec::is_empty")]
    pub values: Vec<Value>,
    /// RE2 pattern that a string must contain a match of.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub pattern: Option<String>,
    /// Least number.
    #[serde(skip_serializing_if = "Option::is_none", serialize_with = "number")]
    pub minimum: Option<f64>,
    /// Greatest number.
    #[serde(skip_serializing_if = "Option::is_none", serialize_with = "number")]
    pub maximum: Option<f64>,
    /// Whether `minimum` itself is excluded.
    #[serde(skip_serializing_if = "is_false")]
    pub exclusive_minimum: bool,
    /// Whether `maximum` itself is excluded.
    #[serde(skip_serializing_if = "is_false")]
    pub exclusive_maximum: bool,
    /// The number is a multiple of this.
    #[serde(skip_serializing_if = "Option::is_none", serialize_with = "number")]
    pub multiple_of: Option<f64>,
    /// Least length of a string in characters.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub min_length: Option<i64>,
    /// Greatest length of a string in characters.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub max_length: Option<i64>,
    /// Least number of elements.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub min_items: Option<i64>,
    /// Greatest number of elements.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub max_items: Option<i64>,
    /// Whether elements differ (not allowed in CRDs, which use `list_type: set`).
    #[serde(skip_serializing_if = "is_false")]
    pub unique_items: bool,
    /// Least number of fields.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub min_properties: Option<i64>,
    /// Greatest number of fields.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub max_properties: Option<i64>,
    /// All of these hold too.
    #[serde(skip_serializing_if = "Vec::is_empty")]
    pub all_of: Vec<Arc<Schema>>,
    /// At least one of these holds.
    #[serde(skip_serializing_if = "Vec::is_empty")]
    pub any_of: Vec<Arc<Schema>>,
    /// Exactly one of these holds.
    #[serde(skip_serializing_if = "Vec::is_empty")]
    pub one_of: Vec<Arc<Schema>>,
    /// This does not hold.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub not: Option<Arc<Schema>>,
    /// `x-kubernetes-preserve-unknown-fields`: fields that are not named stay.
    #[serde(rename = "x-kubernetes-preserve-unknown-fields", skip_serializing_if = "is_false")]
    pub preserve_unknown_fields: bool,
    /// `x-kubernetes-int-or-string`.
    #[serde(rename = "x-kubernetes-int-or-string", skip_serializing_if = "is_false")]
    pub int_or_string: bool,
    /// `x-kubernetes-embedded-resource`: a whole object with `apiVersion`, `kind` and `metadata`.
    #[serde(rename = "x-kubernetes-embedded-resource", skip_serializing_if = "is_false")]
    pub embedded_resource: bool,
    /// `x-kubernetes-list-type`: `atomic`, `set` or `map`.
    #[serde(rename = "x-kubernetes-list-type", skip_serializing_if = "Option::is_none")]
    pub list_type: Option<String>,
    /// `x-kubernetes-list-map-keys`.
    #[serde(rename = "x-kubernetes-list-map-keys", skip_serializing_if = "Vec::is_empty")]
    pub list_map_keys: Vec<String>,
    /// `x-kubernetes-map-type`: `atomic` or `granular`.
    #[serde(rename = "x-kubernetes-map-type", skip_serializing_if = "Option::is_none")]
    pub map_type: Option<String>,
    /// `x-kubernetes-validations`: CEL rules.
    #[serde(rename = "x-kubernetes-validations", skip_serializing_if = "Vec::is_empty")]
    pub validations: Vec<ValidationRule>,
}

/// What an object's unnamed fields may be.
#[derive(Clone, Debug, PartialEq, Serialize, Deserialize)]
#[serde(untagged)]
pub enum Additional {
    /// Anything, or nothing.
    Allowed(bool),
    /// Values of this schema.
    Schema(Arc<Schema>),
}

/// One CEL rule of `x-kubernetes-validations`.
#[derive(Clone, Debug, Default, PartialEq, Eq, Serialize, Deserialize)]
#[serde(rename_all = "camelCase", default)]
pub struct ValidationRule {
    /// The expression; `self` is the value, `oldSelf` the one before.
    pub rule: String,
    /// What is said when it does not hold.
    #[serde(skip_serializing_if = "String::is_empty")]
    pub message: String,
    /// Expression that makes the message.
    #[serde(skip_serializing_if = "String::is_empty")]
    pub message_expression: String,
    /// Machine-readable cause.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub reason: Option<String>,
    /// Field the error is reported at.
    #[serde(skip_serializing_if = "String::is_empty")]
    pub field_path: String,
    /// Whether `oldSelf` is optional.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub optional_old_self: Option<bool>,
}

impl Schema {
    /// A schema of one type and nothing else.
    pub fn of_type(kind: impl Into<String>) -> Self {
        Self { kind: Some(kind.into()), ..Self::default() }
    }

    /// An object with these fields.
    pub fn object(properties: impl IntoIterator<Item = (String, Schema)>) -> Self {
        let properties = properties.into_iter().map(|(name, schema)| (name, Arc::new(schema))).collect();
        Self { properties, ..Self::of_type("object") }
    }

    /// An array of these elements.
    pub fn array(items: Schema) -> Self {
        Self { items: Some(Arc::new(items)), ..Self::of_type("array") }
    }

    /// A map from text to these values.
    pub fn map(values: Schema) -> Self {
        Self { additional_properties: Some(Additional::Schema(Arc::new(values))), ..Self::of_type("object") }
    }

    /// An object whose fields are not known: kro's `object`, and what a deferred node's status is.
    pub fn open_object() -> Self {
        Self { preserve_unknown_fields: true, ..Self::of_type("object") }
    }

    /// Any JSON value.
    pub fn any() -> Self {
        Self { preserve_unknown_fields: true, ..Self::default() }
    }

    /// Whether the schema has this type.
    pub fn is(&self, kind: &str) -> bool {
        self.kind.as_deref() == Some(kind)
    }
}

#[expect(clippy::trivially_copy_pass_by_ref, reason = "serde passes a reference")]
fn is_false(value: &bool) -> bool {
    !*value
}

/// Whole numbers print without a fraction, as every Kubernetes writer prints them.
#[expect(clippy::ref_option, reason = "serde passes a reference")]
fn number<S: Serializer>(value: &Option<f64>, serializer: S) -> Result<S::Ok, S::Error> {
    const EXACT: f64 = 9_007_199_254_740_992.0; // 2^53
    match value {
        #[expect(clippy::cast_possible_truncation, reason = "whole and below 2^53")]
        Some(value) if value.fract() == 0.0 && value.abs() <= EXACT => serializer.serialize_i64(*value as i64),
        Some(value) => serializer.serialize_f64(*value),
        None => serializer.serialize_none(),
    }
}
