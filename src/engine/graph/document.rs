//! The rules that a ResourceGraphDefinition's own CRD states, all findings at once (kro.md 1.1).
//!
//! An API server has checked a stored definition already; one that was read from a file or a component has not been.

use plinth_api::rgd;
use serde_json::{Map, Value};

use crate::{
    Diagnostic,
    diagnostic::Severity,
    naming::{is_name_of_kind, subdomain_fault},
    template::nearest,
    yaml::{element, field},
};

/// Reads the whole document and collects what is wrong with it.
#[derive(Default)]
pub(super) struct Rules {
    pub(super) findings: Vec<Diagnostic>,
    /// Fields that do not belong where they are.
    pub(super) strays: Vec<Stray>,
    /// Paths of values that are not what belongs there.
    pub(super) wrong: Vec<String>,
    /// Whether it is a definition of krop's, whose resources have a `target`.
    pub(super) of_krop: bool,
}

/// A field that does not belong where it is.
#[derive(Clone, Debug, PartialEq)]
pub(super) struct Stray {
    pub(super) path: String,
    /// The field that was meant, where one is near.
    pub(super) meant: Option<String>,
}

type Fields = Map<String, Value>;

impl Rules {
    /// Checks `document` as a whole.
    pub(super) fn document(&mut self, document: &Value) {
        let Some(fields) = self.object(document, "", &["apiVersion", "kind", "metadata", "spec", "status"]) else { return };
        let groups = [rgd::KRO_GROUP, rgd::KROP_GROUP];
        let versions = groups.map(|group| format!("{group}/{}", rgd::VERSION));
        self.of_krop = fields.get("apiVersion").and_then(Value::as_str).is_some_and(|version| version == versions[1]);
        match fields.get("apiVersion").and_then(Value::as_str) {
            Some(version) if versions.iter().any(|known| known == version) => {}
            found => self.error(
                "apiVersion",
                format!("the API version {:?} is not one of {}", found.unwrap_or_default(), versions.join(", ")),
            ),
        }
        if fields.get("kind").and_then(Value::as_str) != Some(rgd::KIND) {
            self.error("kind", format!("the kind must be {}", rgd::KIND));
        }
        let name = fields.get("metadata").and_then(|metadata| metadata.get("name")).and_then(Value::as_str);
        match name.filter(|name| !name.is_empty()) {
            None => self.error("metadata.name", "metadata.name: Required value"),
            Some(name) => {
                if let Some(why) = subdomain_fault(name) {
                    self.error("metadata.name", format!("metadata.name: Invalid value: {name:?}: {why}"));
                }
            }
        }
        match fields.get("spec") {
            None | Some(Value::Null) => self.error("spec", "spec: Required value"),
            Some(spec) => self.spec(spec),
        }
    }

    fn spec(&mut self, spec: &Value) {
        let Some(fields) = self.object(spec, "spec", &["schema", "resources"]) else { return };
        match fields.get("schema") {
            None | Some(Value::Null) => self.error("spec.schema", "spec.schema: Required value"),
            Some(schema) => self.schema(schema),
        }
        self.each(fields, "spec", "resources", Self::resource);
    }

    fn schema(&mut self, schema: &Value) {
        const KNOWN: [&str; 11] = [
            "kind",
            "apiVersion",
            "group",
            "scope",
            "spec",
            "types",
            "status",
            "additionalPrinterColumns",
            "shortNames",
            "categories",
            "metadata",
        ];
        let path = "spec.schema";
        let Some(fields) = self.object(schema, path, &KNOWN) else { return };
        self.pattern(fields, path, "kind", "^[A-Z][a-zA-Z0-9]{0,62}$", is_kind);
        self.pattern(fields, path, "apiVersion", "^v[0-9]+(alpha[0-9]+|beta[0-9]+)?$", is_version);
        self.optional_text(fields, path, "group");
        self.one_of(fields, path, "scope", &["Namespaced", "Cluster"]);
        for name in ["spec", "types", "status"] {
            self.optional_object(fields, path, name);
        }
        self.each(fields, path, "additionalPrinterColumns", Self::column);
        for name in ["shortNames", "categories"] {
            self.each(fields, path, name, Self::short_name);
            self.set(fields, path, name);
        }
        if let Some(metadata) = fields.get("metadata").filter(|metadata| !metadata.is_null()) {
            let path = "spec.schema.metadata";
            if let Some(fields) = self.object(metadata, path, &["labels", "annotations"]) {
                self.texts(fields, path, "labels");
                self.texts(fields, path, "annotations");
            }
        }
    }

    fn column(&mut self, column: &Value, path: &str) {
        let known = ["name", "type", "jsonPath", "format", "description", "priority"];
        let Some(fields) = self.object(column, path, &known) else { return };
        for name in ["name", "type", "jsonPath"] {
            self.required_text(fields, path, name);
        }
    }

    fn short_name(&mut self, name: &Value, path: &str) {
        if !name.as_str().is_some_and(is_name_of_kind) {
            self.error(path, format!("{path} in body should match '^[a-z]([-a-z0-9]*[a-z0-9])?$'"));
        }
    }

    fn resource(&mut self, resource: &Value, path: &str) {
        let known = ["id", "template", "externalRef", "readyWhen", "includeWhen", "forEach", "target"];
        let Some(fields) = self.object(resource, path, &known) else { return };
        self.target(fields, path);
        self.required_text(fields, path, "id");
        self.optional_object(fields, path, "template");
        for name in ["readyWhen", "includeWhen"] {
            self.each(fields, path, name, Self::text);
        }
        self.each(fields, path, "forEach", Self::dimension);
        if let Some(reference) = fields.get("externalRef").filter(|reference| !reference.is_null()) {
            self.external(reference, &field(path, "externalRef"));
        }
    }

    /// kro's definitions have none: its API server drops the field, and so the plane that the author meant (kro.md 1.1).
    fn target(&mut self, fields: &Fields, path: &str) {
        if self.of_krop || fields.get("target").is_none_or(Value::is_null) {
            return self.one_of(fields, path, "target", &["consumer", "provider", "host"]);
        }
        let stray = field(path, "target");
        let finding = Diagnostic::error(stray.clone(), format!("unknown field {stray:?}"));
        self.findings.push(finding.with_hint(format!("only definitions of {} have a target", rgd::KROP_GROUP)));
    }

    fn external(&mut self, reference: &Value, path: &str) {
        let Some(fields) = self.object(reference, path, &["apiVersion", "kind", "metadata"]) else { return };
        self.required_text(fields, path, "apiVersion");
        self.required_text(fields, path, "kind");
        let path = field(path, "metadata");
        match fields.get("metadata") {
            None | Some(Value::Null) => self.error(&path, format!("{path}: Required value")),
            Some(metadata) => {
                let Some(fields) = self.object(metadata, &path, &["name", "namespace", "selector"]) else { return };
                self.optional_text(fields, &path, "name");
                self.optional_text(fields, &path, "namespace");
            }
        }
    }

    fn dimension(&mut self, dimension: &Value, path: &str) {
        match dimension.as_object() {
            Some(map) if map.len() == 1 && map.values().all(Value::is_string) => {}
            _ => {
                self.wrong.push(path.to_owned());
                self.error(path, "a forEach dimension is a map of one entry, iterator name to expression");
            }
        }
    }

    fn text(&mut self, value: &Value, path: &str) {
        if !value.is_string() {
            self.wrong(path, "string", value);
        }
    }

    fn object<'a>(&mut self, value: &'a Value, path: &str, known: &[&str]) -> Option<&'a Fields> {
        let Some(fields) = value.as_object() else {
            self.wrong(path, "object", value);
            return None;
        };
        for name in fields.keys().filter(|name| !known.contains(&name.as_str())) {
            let stray = field(path, name);
            let finding = Diagnostic::error(stray.clone(), format!("unknown field {stray:?}"));
            let meant = nearest(name, known.iter().copied());
            let hint = match meant {
                Some(near) => format!("did you mean {near}?"),
                None => format!("the fields here are {}", known.join(", ")),
            };
            self.strays.push(Stray { path: stray, meant: meant.map(str::to_owned) });
            self.findings.push(finding.with_hint(hint));
        }
        Some(fields)
    }

    fn each(&mut self, fields: &Fields, path: &str, name: &str, check: fn(&mut Self, &Value, &str)) {
        let path = field(path, name);
        match fields.get(name) {
            None | Some(Value::Null) => {}
            Some(Value::Array(list)) => {
                list.iter().enumerate().for_each(|(index, value)| check(self, value, &element(&path, index)));
            }
            Some(other) => self.wrong(&path, "array", other),
        }
    }

    /// A list whose entries differ, and of which there are not too many.
    fn set(&mut self, fields: &Fields, path: &str, name: &str) {
        const MOST: usize = 32;
        let path = field(path, name);
        let list = fields.get(name).and_then(Value::as_array).map(Vec::as_slice).unwrap_or_default();
        if list.len() > MOST {
            return self.error(&path, format!("{path}: Too many: {}: must have at most {MOST} items", list.len()));
        }
        for (index, value) in list.iter().enumerate().filter(|(index, value)| list[..*index].contains(value)) {
            let path = element(&path, index);
            self.error(&path, format!("{path}: Duplicate value: {value}"));
        }
    }

    fn pattern(&mut self, fields: &Fields, path: &str, name: &str, pattern: &str, check: fn(&str) -> bool) {
        let Some(text) = self.required_text(fields, path, name) else { return };
        if !check(text) {
            let path = field(path, name);
            let message = format!("{path}: Invalid value: {text:?}: {path} in body should match '{pattern}'");
            self.error(&path, message);
        }
    }

    fn one_of(&mut self, fields: &Fields, path: &str, name: &str, allowed: &[&str]) {
        let Some(text) = self.optional_text(fields, path, name) else { return };
        if !allowed.contains(&text) {
            self.wrong.push(field(path, name));
            let list = allowed.iter().map(|value| format!("{value:?}")).collect::<Vec<_>>().join(", ");
            self.error(&field(path, name), format!("Unsupported value: {text:?}: supported values: {list}"));
        }
    }

    fn required_text<'a>(&mut self, fields: &'a Fields, path: &str, name: &str) -> Option<&'a str> {
        if fields.get(name).is_none_or(Value::is_null) {
            let path = field(path, name);
            self.error(&path, format!("{path}: Required value"));
            return None;
        }
        self.optional_text(fields, path, name)
    }

    fn optional_text<'a>(&mut self, fields: &'a Fields, path: &str, name: &str) -> Option<&'a str> {
        match fields.get(name) {
            None | Some(Value::Null) => None,
            Some(Value::String(text)) => Some(text),
            Some(other) => {
                self.wrong(&field(path, name), "string", other);
                None
            }
        }
    }

    fn optional_object(&mut self, fields: &Fields, path: &str, name: &str) {
        if let Some(value) = fields.get(name).filter(|value| !value.is_object() && !value.is_null()) {
            self.wrong(&field(path, name), "object", value);
        }
    }

    fn texts(&mut self, fields: &Fields, path: &str, name: &str) {
        self.optional_object(fields, path, name);
        let path = field(path, name);
        for (key, value) in fields.get(name).and_then(Value::as_object).into_iter().flatten() {
            self.text(value, &field(&path, key));
        }
    }

    fn wrong(&mut self, path: &str, expected: &str, value: &Value) {
        let got = match value {
            Value::Null => "null",
            Value::Bool(_) => "boolean",
            Value::Number(_) => "number",
            Value::String(_) => "string",
            Value::Array(_) => "array",
            Value::Object(_) => "object",
        };
        self.wrong.push(path.to_owned());
        self.error(path, format!("{path} in body must be of type {expected}: {got:?}"));
    }

    fn error(&mut self, path: &str, message: impl Into<String>) {
        self.findings.push(Diagnostic::error(path, message));
    }

    /// Whether the document is refused.
    pub(super) fn refused(&self) -> bool {
        self.findings.iter().any(|finding| finding.severity == Severity::Error)
    }
}

fn is_kind(text: &str) -> bool {
    text.len() <= 63
        && text.starts_with(|c: char| c.is_ascii_uppercase())
        && text.bytes().all(|byte| byte.is_ascii_alphanumeric())
}

fn is_version(text: &str) -> bool {
    let digits = |text: &str| !text.is_empty() && text.bytes().all(|byte| byte.is_ascii_digit());
    let Some(rest) = text.strip_prefix('v') else { return false };
    let major = rest.trim_start_matches(|c: char| c.is_ascii_digit());
    digits(&rest[..rest.len() - major.len()])
        && (major.is_empty() || ["alpha", "beta"].iter().any(|word| major.strip_prefix(word).is_some_and(digits)))
}
