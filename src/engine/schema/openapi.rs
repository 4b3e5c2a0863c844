//! An API server's OpenAPI v3 document, and what kinds it describes.
//!
//! `$ref` is inlined, sub-schemas are shared. A reference back to what is being read (`JSONSchemaProps` inside itself) becomes
//! an open object: nothing below is described, so nothing below is refused. Descriptions are dropped; nobody reads them here.

use std::{
    collections::{BTreeMap, BTreeSet},
    sync::Arc,
};

use plinth_api::GroupVersionKind;
use serde_json::{Map, Value};
use thiserror::Error;

use super::{Additional, KindInfo, Schema};

/// Most definitions in a document.
const MAX_DEFINITIONS: usize = 50_000;
/// Largest definition, references written out: walking a schema must end, though shared parts cost no memory.
const MAX_SIZE: usize = 200_000;
/// Deepest nesting, references included.
const MAX_DEPTH: usize = 100;

/// Why an OpenAPI document cannot be used.
#[derive(Clone, Debug, PartialEq, Eq, Error)]
pub enum OpenApiError {
    /// A part is not what OpenAPI v3 says.
    #[error("reading {what} of an OpenAPI document: {message}")]
    Malformed {
        /// The part.
        what: String,
        /// What is wrong with it.
        message: String,
    },
    /// The document is larger than we read.
    #[error("an OpenAPI document has more than {limit} {what}")]
    TooLarge {
        /// What there are too many of.
        what: &'static str,
        /// The bound.
        limit: usize,
    },
}

/// All kinds that the document (one group and version, `/openapi/v3/apis/GROUP/VERSION`) describes and serves.
pub fn kinds(document: &Value) -> Result<Vec<KindInfo>, OpenApiError> {
    let definitions = definitions(document)?;
    let by_kind = definitions_by_kind(definitions);
    let mut inliner = Inliner::new(definitions);
    let mut kinds = Vec::new();
    for (gvk, (plural, namespaced)) in served(document) {
        let schema = match by_kind.get(&gvk) {
            Some(name) => inliner.definition(name, 0)?,
            None => Arc::new(Schema::open_object()),
        };
        kinds.push(KindInfo { gvk, plural, namespaced, schema });
    }
    Ok(kinds)
}

/// `components.schemas` of a document.
pub(super) fn definitions(document: &Value) -> Result<&Map<String, Value>, OpenApiError> {
    let found = document.pointer("/components/schemas").and_then(Value::as_object);
    let definitions = found.ok_or_else(|| malformed("components.schemas", "it is missing or not an object"))?;
    if definitions.len() > MAX_DEFINITIONS {
        return Err(OpenApiError::TooLarge { what: "definitions", limit: MAX_DEFINITIONS });
    }
    Ok(definitions)
}

fn malformed(what: impl Into<String>, message: &(impl ToString + ?Sized)) -> OpenApiError {
    OpenApiError::Malformed { what: what.into(), message: message.to_string() }
}

/// Which definition describes a kind. Some (`DeleteOptions`) belong to every group; those describe no kind of their own.
fn definitions_by_kind(definitions: &Map<String, Value>) -> BTreeMap<GroupVersionKind, &String> {
    let mut found = BTreeMap::new();
    for (name, definition) in definitions {
        if let Some([one]) = definition["x-kubernetes-group-version-kind"].as_array().map(Vec::as_slice)
            && let Some(gvk) = gvk(one)
        {
            found.entry(gvk).or_insert(name);
        }
    }
    found
}

/// Kinds with a resource of their own: plural, and whether there is a path below a namespace.
pub(super) fn served(document: &Value) -> BTreeMap<GroupVersionKind, (String, bool)> {
    let mut kinds: BTreeMap<GroupVersionKind, (String, bool)> = BTreeMap::new();
    for (path, operations) in document["paths"].as_object().into_iter().flatten() {
        let Some((plural, namespaced)) = resource(path) else { continue };
        let operation = [&operations["post"], &operations["get"]].into_iter().find(|operation| operation.is_object());
        if let Some(gvk) = operation.and_then(|operation| gvk(&operation["x-kubernetes-group-version-kind"])) {
            kinds.entry(gvk).or_insert_with(|| (plural.to_owned(), false)).1 |= namespaced;
        }
    }
    kinds
}

/// Takes `/apis/GROUP/VERSION/[namespaces/{namespace}/]PLURAL` apart; items, subresources and watches are other paths.
fn resource(path: &str) -> Option<(&str, bool)> {
    let segments: Vec<&str> = path.trim_matches('/').split('/').collect();
    let (["api", _version, rest @ ..] | ["apis", _, _version, rest @ ..]) = segments.as_slice() else { return None };
    match rest {
        [plural] if !plural.is_empty() => Some((plural, false)),
        ["namespaces", "{namespace}", plural] if !plural.starts_with('{') => Some((plural, true)),
        _ => None,
    }
}

fn gvk(value: &Value) -> Option<GroupVersionKind> {
    let text = |name: &str| value[name].as_str();
    Some(GroupVersionKind::new(text("group")?, text("version")?, text("kind")?))
}

/// Writes references out.
struct Inliner<'a> {
    definitions: &'a Map<String, Value>,
    done: BTreeMap<&'a str, (Arc<Schema>, usize)>,
    open: BTreeSet<&'a str>,
}

impl<'a> Inliner<'a> {
    fn new(definitions: &'a Map<String, Value>) -> Self {
        Self { definitions, done: BTreeMap::new(), open: BTreeSet::new() }
    }

    /// The schema of a definition; an unknown one is anything.
    fn definition(&mut self, name: &str, depth: usize) -> Result<Arc<Schema>, OpenApiError> {
        Ok(self.sized(name, depth)?.0)
    }

    fn sized(&mut self, name: &str, depth: usize) -> Result<(Arc<Schema>, usize), OpenApiError> {
        let Some((name, definition)) = self.definitions.get_key_value(name) else {
            return Ok((Arc::new(Schema::any()), 1));
        };
        if let Some((schema, size)) = self.done.get(name.as_str()) {
            return Ok((Arc::clone(schema), *size));
        }
        if depth > MAX_DEPTH || !self.open.insert(name) {
            return Ok((Arc::new(Schema::open_object()), 1));
        }
        let converted = self.schema(definition, name, depth + 1);
        self.open.remove(name.as_str());
        let (schema, size) = converted?;
        let (schema, size) = if size > MAX_SIZE { (Schema::open_object(), 1) } else { (schema, size) };
        let schema = Arc::new(schema);
        self.done.insert(name, (Arc::clone(&schema), size));
        Ok((schema, size))
    }

    /// Converts a schema, and counts it with everything inside.
    fn schema(&mut self, value: &Value, at: &str, depth: usize) -> Result<(Schema, usize), OpenApiError> {
        let keywords = value.as_object().ok_or_else(|| malformed(at, "a schema is not an object"))?;
        if depth > MAX_DEPTH {
            return Ok((Schema::any(), 1));
        }
        if let Some(name) = reference(keywords) {
            let (schema, size) = self.sized(name, depth)?;
            return Ok((beside_reference(keywords, &schema), size));
        }
        let mut schema = shallow(keywords, at)?;
        let mut size = 1;
        for (name, property) in keywords.get("properties").and_then(Value::as_object).into_iter().flatten() {
            let property = self.shared(property, at, depth, &mut size)?;
            schema.properties.insert(name.clone(), property);
        }
        if let Some(items) = keywords.get("items") {
            schema.items = Some(self.shared(items, at, depth, &mut size)?);
        }
        schema.additional_properties = match keywords.get("additionalProperties") {
            None => None,
            Some(Value::Bool(allowed)) => Some(Additional::Allowed(*allowed)),
            Some(values) => Some(Additional::Schema(self.shared(values, at, depth, &mut size)?)),
        };
        for (name, list) in [("allOf", &mut schema.all_of), ("anyOf", &mut schema.any_of), ("oneOf", &mut schema.one_of)] {
            for branch in keywords.get(name).and_then(Value::as_array).into_iter().flatten() {
                list.push(self.shared(branch, at, depth, &mut size)?);
            }
        }
        if let Some(not) = keywords.get("not") {
            schema.not = Some(self.shared(not, at, depth, &mut size)?);
        }
        Ok((open_where_nothing_is_said(schema), size))
    }

    fn shared(&mut self, value: &Value, at: &str, depth: usize, size: &mut usize) -> Result<Arc<Schema>, OpenApiError> {
        let bare = value.as_object().filter(|keywords| keywords.len() == 1).and_then(reference);
        let (schema, inner) = match bare {
            Some(name) => self.sized(name, depth + 1)?,
            None => self.schema(value, at, depth + 1).map(|(schema, size)| (Arc::new(schema), size))?,
        };
        *size = size.saturating_add(inner);
        Ok(schema)
    }
}

/// The definition that a schema refers to, directly or wrapped in `allOf` (which leaves room for a description beside it).
fn reference(keywords: &Map<String, Value>) -> Option<&str> {
    let direct = keywords.get("$ref").or_else(|| match keywords.get("allOf")?.as_array()?.as_slice() {
        [one] => one.get("$ref"),
        _ => None,
    });
    direct?.as_str()?.strip_prefix("#/components/schemas/")
}

/// What stands beside a reference belongs to this use of it.
fn beside_reference(keywords: &Map<String, Value>, schema: &Schema) -> Schema {
    let mut schema = schema.clone();
    if let Some(default) = keywords.get("default") {
        schema.default = Some(default.clone());
    }
    schema.nullable |= keywords.get("nullable") == Some(&Value::Bool(true));
    schema
}

/// A schema's own keywords, without those that hold schemas.
fn shallow(keywords: &Map<String, Value>, at: &str) -> Result<Schema, OpenApiError> {
    const WITH_SCHEMAS: [&str; 8] =
        ["properties", "items", "additionalProperties", "allOf", "anyOf", "oneOf", "not", "description"];
    let own = keywords.iter().filter(|(name, _)| !WITH_SCHEMAS.contains(&name.as_str()));
    let own = own.map(|(name, value)| (name.clone(), value.clone())).collect();
    serde_json::from_value(Value::Object(own)).map_err(|error| malformed(at, &error))
}

/// Native types say `type: object` and nothing more where anything may be (`RawExtension`, `FieldsV1`), and have their own
/// form of int-or-string.
fn open_where_nothing_is_said(mut schema: Schema) -> Schema {
    if schema.is("object") && schema.properties.is_empty() && schema.additional_properties.is_none() {
        schema.preserve_unknown_fields = true;
    }
    if schema.format.as_deref() == Some("int-or-string") {
        schema.int_or_string = true;
        schema.one_of.clear();
    }
    schema
}

#[cfg(test)]
mod tests {
    use serde_json::json;

    use super::*;
    use crate::schema::{Found, segments};

    fn document(schemas: &Value) -> Value {
        let gvk = json!({"group": "g", "version": "v1", "kind": "Thing"});
        json!({
            "paths": {
                "/apis/g/v1/": {"get": {}},
                "/apis/g/v1/things": {"get": {"x-kubernetes-group-version-kind": gvk}},
                "/apis/g/v1/namespaces/{namespace}/things": {"get": {"x-kubernetes-group-version-kind": gvk}, "post": {"x-kubernetes-group-version-kind": gvk}},
                "/apis/g/v1/namespaces/{namespace}/things/{name}": {"get": {"x-kubernetes-group-version-kind": gvk}},
                "/apis/g/v1/namespaces/{namespace}/things/{name}/scale": {"get": {"x-kubernetes-group-version-kind": {"group": "autoscaling", "version": "v1", "kind": "Scale"}}},
                "/apis/g/v1/watch/things": {"get": {"x-kubernetes-group-version-kind": gvk}}
            },
            "components": {"schemas": schemas}
        })
    }

    fn thing(mut schema: Value, more: &Value) -> Result<Arc<Schema>, OpenApiError> {
        schema["x-kubernetes-group-version-kind"] = json!([{"group": "g", "version": "v1", "kind": "Thing"}]);
        let mut schemas = json!({"g.Thing": schema});
        schemas.as_object_mut().unwrap().extend(more.as_object().unwrap().clone());
        let kinds = kinds(&document(&schemas))?;
        assert_eq!(kinds.len(), 1);
        assert_eq!((kinds[0].plural.as_str(), kinds[0].namespaced), ("things", true));
        Ok(Arc::clone(&kinds[0].schema))
    }

    #[test]
    fn references_are_written_out_and_shared() {
        let schema = thing(
            json!({"type": "object", "properties": {
                "a": {"$ref": "#/components/schemas/Part"},
                "b": {"description": "x", "default": {}, "allOf": [{"$ref": "#/components/schemas/Part"}]},
                "c": {"type": "array", "items": {"$ref": "#/components/schemas/Part"}},
                "d": {"$ref": "#/components/schemas/Nowhere"},
                "e": {"type": "object"},
                "f": {"format": "int-or-string", "oneOf": [{"type": "integer"}, {"type": "string"}]}
            }}),
            &json!({"Part": {"type": "object", "description": "y", "properties": {"n": {"type": "integer", "format": "int32"}}}}),
        )
        .unwrap();
        let part = schema.field("a").unwrap();
        assert!(Arc::ptr_eq(part, schema.field("c").unwrap().items.as_ref().unwrap()));
        assert_eq!(part.description, None);
        assert_eq!(schema.field("b").unwrap().default, Some(json!({})));
        assert!(schema.field("d").unwrap().is_open());
        assert!(schema.field("e").unwrap().is_open());
        assert!(schema.field("f").unwrap().int_or_string);
    }

    #[test]
    fn what_contains_itself_is_open_inside() {
        let schema = thing(
            json!({"type": "object", "properties": {"tree": {"$ref": "#/components/schemas/Tree"}}}),
            &json!({"Tree": {"type": "object", "properties": {"left": {"$ref": "#/components/schemas/Tree"}, "value": {"type": "string"}}}}),
        )
        .unwrap();
        assert_eq!(schema.at(&segments("tree.left.left.value").unwrap()), Found::Open);
        assert_eq!(schema.at(&segments("tree.value").unwrap()), Found::Schema(Arc::new(Schema::of_type("string"))));
    }

    #[test]
    fn definitions_that_double_at_every_level_are_cut() {
        let mut more = Map::new();
        for level in 0..60 {
            let next = json!({"$ref": format!("#/components/schemas/L{}", level + 1)});
            more.insert(format!("L{level}"), json!({"type": "object", "properties": {"a": next, "b": next}}));
        }
        more.insert("L60".to_owned(), json!({"type": "string"}));
        let schema =
            thing(json!({"type": "object", "properties": {"a": {"$ref": "#/components/schemas/L0"}}}), &Value::Object(more))
                .unwrap();
        let path = vec!["a"; 62].join(".");
        assert_eq!(schema.at(&segments(&path).unwrap()), Found::Open);
    }

    #[test]
    fn a_malformed_document_is_named() {
        assert!(kinds(&json!({})).unwrap_err().to_string().contains("components.schemas"));
        let wrong = thing(json!({"type": ["object"]}), &json!({})).unwrap_err();
        assert!(wrong.to_string().starts_with("reading g.Thing of an OpenAPI document: "), "{wrong}");
    }
}
