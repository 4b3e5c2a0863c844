//! What v2, v3 and v4alpha1 cover (ocm.md 8.1 and 8.2). Independent of the schema.

use serde_json::{Map, Value, json};

use super::Normalisation;
use crate::descriptor::{Descriptor, Schema, is_signing};

/// `{"component": {…}}` with the covered fields.
pub(super) fn form(descriptor: &Descriptor, algorithm: Normalisation) -> Value {
    let document = &descriptor.document;
    let null = &Value::Null;
    let (meta, lists, references) = match descriptor.schema {
        Schema::V2 => (&document["component"], &document["component"], "componentReferences"),
        Schema::V3Alpha1 => (&document["metadata"], &document["spec"], "references"),
    };
    let rules = Rules { algorithm };
    let mut resources = items(lists.get("resources").unwrap_or(null)).to_vec();
    if algorithm == Normalisation::V2 {
        defaulted(&mut resources);
    }
    let mut component = Map::new();
    copy(&mut component, meta, &["name", "version"]);
    if algorithm == Normalisation::V4Alpha1 {
        copy(&mut component, meta, &["creationTime"]);
    } else {
        copy_time(&mut component, meta);
    }
    component.insert("provider".to_owned(), rules.provider(meta.get("provider").unwrap_or(null)));
    rules.labels(&mut component, meta);
    component.insert("resources".to_owned(), resources.iter().map(|resource| rules.resource(resource)).collect());
    component.insert("sources".to_owned(), items(&lists["sources"]).iter().map(|source| rules.source(source)).collect());
    component.insert(
        "componentReferences".to_owned(),
        items(&lists[references]).iter().map(|reference| rules.reference(reference)).collect(),
    );
    json!({ "component": component })
}

struct Rules {
    algorithm: Normalisation,
}

impl Rules {
    fn is_v4(&self) -> bool {
        self.algorithm == Normalisation::V4Alpha1
    }

    fn provider(&self, provider: &Value) -> Value {
        let object = provider_object(provider);
        let mut out = Map::new();
        copy(&mut out, &object, &["name"]);
        self.labels(&mut out, &object);
        Value::Object(out)
    }

    fn resource(&self, resource: &Value) -> Value {
        let mut out = self.element(resource);
        always(&mut out, resource, &["type"]);
        if self.is_v4() {
            always(&mut out, resource, &["relation"]);
        } else {
            copy(&mut out, resource, &["relation"]);
        }
        if !is_without_content(resource) {
            insert_digest(&mut out, resource);
        }
        Value::Object(out)
    }

    fn source(&self, source: &Value) -> Value {
        let mut out = self.element(source);
        always(&mut out, source, &["type"]);
        Value::Object(out)
    }

    /// Everything of a reference is covered. The newer tool writes an empty digest where there is none.
    fn reference(&self, reference: &Value) -> Value {
        let mut out = Map::new();
        always(&mut out, reference, &["name", "version", "componentName"]);
        copy_identity(&mut out, reference);
        insert_digest(&mut out, reference);
        if self.is_v4() && !out.contains_key("digest") {
            out.insert("digest".to_owned(), json!({"hashAlgorithm": "", "normalisationAlgorithm": "", "value": ""}));
        }
        let labels: Vec<Value> = items(&reference["labels"]).iter().map(|label| self.whole_label(label)).collect();
        if !labels.is_empty() {
            out.insert("labels".to_owned(), labels.into());
        }
        Value::Object(out)
    }

    fn element(&self, element: &Value) -> Map<String, Value> {
        let mut out = Map::new();
        always(&mut out, element, &["name", "version"]);
        copy_identity(&mut out, element);
        self.labels(&mut out, element);
        out
    }

    /// The label rule: only labels that are to be signed; the key is left out where none is.
    fn labels(&self, out: &mut Map<String, Value>, holder: &Value) {
        let signed = items(&holder["labels"]).iter().filter(|label| is_signing(label.get("signing")));
        let labels: Vec<Value> = signed.map(|label| self.signed_label(label)).collect();
        if !labels.is_empty() {
            out.insert("labels".to_owned(), labels.into());
        }
    }

    fn signed_label(&self, label: &Value) -> Value {
        let mut out = Map::new();
        copy(&mut out, label, if self.is_v4() { &["name"] } else { &["name", "version"] });
        out.insert("signing".to_owned(), label["signing"].clone());
        self.label_value(&mut out, label);
        Value::Object(out)
    }

    fn whole_label(&self, label: &Value) -> Value {
        let mut out = Map::new();
        copy(&mut out, label, if self.is_v4() { &["name"] } else { &["name", "version", "merge"] });
        if is_signing(label.get("signing")) {
            out.insert("signing".to_owned(), label["signing"].clone());
        }
        self.label_value(&mut out, label);
        Value::Object(out)
    }

    /// A value that is not there is left out. The newer tool drops members that are `null` too, the value itself included.
    fn label_value(&self, out: &mut Map<String, Value>, label: &Value) {
        let Some(value) = label.get("value").cloned() else { return };
        let value = if self.is_v4() { without_nulls(value) } else { value };
        if !(self.is_v4() && value.is_null()) {
            out.insert("value".to_owned(), value);
        }
    }
}

/// The provider as an object, whatever its spelling.
pub(super) fn provider_object(provider: &Value) -> Value {
    match provider {
        Value::Object(_) => provider.clone(),
        Value::String(text) => match serde_json::from_str(text) {
            Ok(Value::Object(object)) => Value::Object(object),
            _ => json!({ "name": text }),
        },
        _ => json!({ "name": "" }),
    }
}

/// v2's defaulting: a resource whose name and extra identity another one has too gets its version into the extra identity. In order of the
/// list, on the list as it is by then: the last of a group stays as it is.
pub(super) fn defaulted(resources: &mut [Value]) {
    let identity =
        |resource: &Value| (resource["name"].clone(), resource.get("extraIdentity").filter(|extra| !is_empty(extra)).cloned());
    for index in 0..resources.len() {
        let own = identity(&resources[index]);
        let is_ambiguous = (0..resources.len()).any(|other| other != index && identity(&resources[other]) == own);
        if !is_ambiguous {
            continue;
        }
        let mut extra = own.1.and_then(|extra| extra.as_object().cloned()).unwrap_or_default();
        extra.insert("version".to_owned(), resources[index]["version"].clone());
        resources[index]["extraIdentity"] = extra.into();
    }
}

/// Access `none`, spelled exactly so: nothing to hash.
pub(super) fn is_without_content(resource: &Value) -> bool {
    let kind = resource.get("access").and_then(|access| access.get("type")).and_then(Value::as_str).unwrap_or_default();
    matches!(kind, "none" | "None")
}

pub(super) fn items(list: &Value) -> &[Value] {
    list.as_array().map_or(&[], Vec::as_slice)
}

pub(super) fn copy(out: &mut Map<String, Value>, from: &Value, keys: &[&str]) {
    for key in keys {
        if let Some(value) = from.get(*key).filter(|value| !is_empty(value)) {
            out.insert((*key).to_owned(), value.clone());
        }
    }
}

/// Texts that the tools write even where they are empty.
pub(super) fn always(out: &mut Map<String, Value>, from: &Value, keys: &[&str]) {
    for key in keys {
        let value = from.get(*key).filter(|value| !value.is_null()).cloned();
        out.insert((*key).to_owned(), value.unwrap_or_else(|| "".into()));
    }
}

/// The older tool reads times and writes them anew: in UTC, without parts of a second.
pub(super) fn copy_time(out: &mut Map<String, Value>, from: &Value) {
    copy(out, from, &["creationTime"]);
    let Some(time) = out.get("creationTime").and_then(Value::as_str).and_then(|text| text.parse::<jiff::Timestamp>().ok()) else {
        return;
    };
    if let Ok(time) = time.round(jiff::Unit::Second) {
        out.insert("creationTime".to_owned(), time.to_string().into());
    }
}

pub(super) fn copy_identity(out: &mut Map<String, Value>, from: &Value) {
    copy(out, from, &["extraIdentity"]);
}

pub(super) fn insert_digest(out: &mut Map<String, Value>, from: &Value) {
    let Some(digest) = from.get("digest").filter(|digest| digest.is_object()) else { return };
    let mut kept = Map::new();
    for key in ["hashAlgorithm", "normalisationAlgorithm", "value"] {
        kept.insert(key.to_owned(), digest.get(key).cloned().unwrap_or_else(|| "".into()));
    }
    out.insert("digest".to_owned(), kept.into());
}

fn is_empty(value: &Value) -> bool {
    match value {
        Value::Null => true,
        Value::String(text) => text.is_empty(),
        Value::Object(object) => object.is_empty(),
        _ => false,
    }
}

fn without_nulls(value: Value) -> Value {
    match value {
        Value::Array(items) => items.into_iter().map(without_nulls).collect(),
        Value::Object(object) => {
            object.into_iter().filter(|(_, value)| !value.is_null()).map(|(key, value)| (key, without_nulls(value))).collect()
        }
        other => other,
    }
}
