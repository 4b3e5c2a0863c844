//! `schema.status`: templates of the instance's status, and the schema they give it (kro.md 15.1).

use std::sync::Arc;

use serde_json::{Map, Value};

use super::{
    check::{Types, no_omit, typed},
    draft::{below, parse},
    edges::Names,
    findings::Findings,
    infer::{schema_of, take},
    node::{Projection, Slot},
};
use crate::{
    Diagnostic,
    diagnostic::Severity,
    schema::{Found, Schema, Segment},
    template::{NESTED, Text, path_text, set},
    yaml::element,
};

const ROOT: &str = "spec.schema.status";
/// Most fields that the schemas of all status fields may have together, as for the spec. No API server takes a CRD as large as that.
const MAX_SIZE: usize = 100_000;

/// What compiling the status gives.
pub(super) struct Status {
    pub(super) projection: Projection,
    pub(super) schema: Schema,
}

/// Compiles the status templates, `conditions` aside.
pub(super) fn compile(template: &Map<String, Value>, names: &Names<'_>, types: &Types, findings: &mut Findings<'_>) -> Status {
    let mut template = template.clone();
    template.remove("conditions");
    let template = Value::Object(template);
    let mut leaves = Leaves { names, types, findings, path: Vec::new(), slots: Vec::new(), room: MAX_SIZE };
    let mut schema = leaves.value(&template).unwrap_or_default();
    let mut slots = leaves.slots;
    if state(&mut schema, findings) {
        slots.retain(|slot| slot.path.first().and_then(Segment::name) != Some("state"));
    }
    let written = Arc::new(schema.clone());
    for slot in &mut slots {
        // What counts is what the CRD says of the place, for instance of all items of a list.
        if let Found::Schema(of_place) = written.at(&slot.path) {
            slot.schema = Some(of_place);
        }
    }
    Status { projection: Projection { template, slots }, schema }
}

/// `state` is the controller's, whatever the author says; a schema that does not take its text would keep every status from being
/// written.
///
/// True where the author's is another, which nobody needs the value of.
fn state(schema: &mut Schema, findings: &mut Findings<'_>) -> bool {
    let Some(state) = schema.properties.get_mut("state") else { return false };
    let is_text = state.kind.is_none() || (state.is("string") && state.format.is_none());
    if !is_text {
        let of = state.format.clone().or_else(|| state.kind.clone()).unwrap_or_default();
        let message = format!("state is text that the controller writes, and this is {of}");
        warn(format!("{ROOT}.state"), message, "give the field another name", findings);
        *state = Arc::new(Schema::of_type("string"));
    }
    !is_text
}

fn warn(path: String, message: String, hint: &str, findings: &mut Findings<'_>) {
    findings.push(Diagnostic { severity: Severity::Warning, ..Diagnostic::error(path, message).with_hint(hint) });
}

struct Leaves<'a, 'f> {
    names: &'a Names<'a>,
    types: &'a Types,
    findings: &'a mut Findings<'f>,
    path: Vec<Segment>,
    slots: Vec<Slot>,
    /// How many fields there is room for.
    room: usize,
}

impl Leaves<'_, '_> {
    /// The schema of a part of the template; `None` where it is wrong.
    fn value(&mut self, value: &Value) -> Option<Schema> {
        match value {
            Value::Object(map) => {
                let fields: Vec<_> = map
                    .iter()
                    .filter_map(|(name, value)| Some((name.clone(), self.below(Segment::Field(name.clone()), value)?)))
                    .collect();
                // Of what has no fields kro knows nothing.
                (self.path.is_empty() || !fields.is_empty()).then(|| Schema::object(fields))
            }
            Value::Array(list) => {
                let items = list.iter().enumerate().map(|(index, value)| self.below(Segment::Index(index), value));
                let items: Vec<_> = items.collect();
                self.alike(&items);
                Some(Schema::array(items.into_iter().flatten().next_back()?))
            }
            Value::String(text) => self.leaf(text),
            _ => self.plain(),
        }
    }

    /// Warns of items that the schema of their list does not take: it is that of the last one, as with kro (15.1).
    fn alike(&mut self, items: &[Option<Schema>]) {
        let Some(of) = items.iter().flatten().next_back().and_then(|last| last.kind.as_deref()) else { return };
        for (index, item) in items.iter().enumerate() {
            let differs = item
                .as_ref()
                .and_then(|item| item.kind.as_deref())
                .filter(|kind| *kind != of && !(*kind == "integer" && of == "number"));
            if let Some(kind) = differs {
                let path = element(&below(ROOT, &path_text(&self.path)), index);
                let message = format!("all items have the type of the last one, {of}: this one is {kind} and is left out");
                warn(path, message, "make them alike, for instance with string(…)", self.findings);
            }
        }
    }

    fn below(&mut self, segment: Segment, value: &Value) -> Option<Schema> {
        self.path.push(segment);
        let schema = self.value(value);
        self.path.pop();
        schema
    }

    fn plain(&mut self) -> Option<Schema> {
        let path = path_text(&self.path);
        let message = format!("status fields without expressions are not supported: [{path}]");
        self.findings.hinted(below(ROOT, &path), message, Some("a status field is an expression: ${…}".to_owned()));
        None
    }

    fn leaf(&mut self, source: &str) -> Option<Schema> {
        let place = path_text(&self.path);
        let path = below(ROOT, &place);
        let text = match Text::read(source) {
            Ok(Some(text)) => text,
            Ok(None) => return self.plain(),
            Err(_) => {
                self.findings.error(path, NESTED);
                return None;
            }
        };
        let before = self.findings.count();
        let (text, expression) = parse(text, &path, self.findings)?;
        let is_whole = self.findings.count() == before;
        if is_whole || !expression.references().identifiers.is_empty() {
            self.names.status(&place, &path, &text, &expression, self.findings);
        }
        no_omit(&path, &text, &expression, self.findings);
        let of = typed(&path, &text, &expression, &self.types.scope(), self.findings)?;
        if self.findings.count() > before {
            return None;
        }
        if !take(&mut self.room, &of) {
            let message = format!("the status describes more than {MAX_SIZE} fields");
            self.findings.hinted(ROOT, message, Some("take single fields instead of whole objects".to_owned()));
            return None;
        }
        let schema = schema_of(&of);
        self.slots.push(Slot { path: self.path.clone(), text, expression, schema: Some(Arc::new(schema.clone())) });
        Some(schema)
    }
}

impl Projection {
    /// The status with these values; what has none is left out, together with what then is empty.
    pub(crate) fn fill(&self, mut value: impl FnMut(&Slot) -> Option<Value>) -> Value {
        let mut status = self.template.clone();
        let mut absent = Vec::new();
        for slot in &self.slots {
            match value(slot) {
                Some(value) => set(&mut status, &slot.path, value),
                None => absent.push(slot.path.clone()),
            }
        }
        crate::template::remove(&mut status, absent);
        status
    }
}
