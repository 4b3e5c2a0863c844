//! `schema.status`: templates of the instance's status, and the schema they give it (kro.md 15.1).

use std::sync::Arc;

use serde_json::{Map, Value};

use super::{
    check::{Types, no_omit, typed},
    compiled::Options,
    draft::{below, parse},
    edges::Names,
    findings::Findings,
    infer::{schema_of, take},
    node::{Projection, Slot},
};
use crate::{
    schema::{Schema, Segment},
    template::{NESTED, Text, path_text, set},
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
pub(super) fn compile(
    template: &Map<String, Value>,
    names: &Names<'_>,
    types: &Types,
    options: &Options,
    findings: &mut Findings<'_>,
) -> Status {
    let mut template = template.clone();
    template.remove("conditions");
    let template = Value::Object(template);
    let mut leaves = Leaves { names, types, options, findings, path: Vec::new(), slots: Vec::new(), room: MAX_SIZE };
    let schema = leaves.value(&template).unwrap_or_default();
    let slots = leaves.slots;
    Status { projection: Projection { template, slots }, schema }
}

struct Leaves<'a, 'f> {
    names: &'a Names<'a>,
    types: &'a Types,
    options: &'a Options,
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
                Some(Schema::object(fields))
            }
            Value::Array(list) => {
                let items: Vec<_> =
                    list.iter().enumerate().filter_map(|(index, value)| self.below(Segment::Index(index), value)).collect();
                Some(Schema::array(items.into_iter().next_back()?))
            }
            Value::String(text) => self.leaf(text),
            _ => self.plain(),
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
        no_omit(&path, &text, &expression, self.options, self.findings);
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
