//! Who reads whom (kro.md section 7).

use std::collections::{BTreeMap, BTreeSet};

use plinth_api::rgd::RgdSpec;
use serde_json::Value;

use super::{definition::Definition, draft::Draft, findings::Findings, order::Edges};
use crate::{
    cel::{Expression, is_type_name},
    template::Text,
};

/// Words that are known in every expression of a node.
const SCHEMA: &str = "schema";

/// What may be referred to, and how a mistake is said.
pub(super) struct Names<'a> {
    /// Ids of all resources; positions of those that could be read.
    ids: BTreeMap<&'a str, Option<usize>>,
    /// Ids that several resources have: which one is meant, nobody knows.
    twice: BTreeSet<&'a str>,
    /// What an expression makes of ids and iterators that are no names: `my-cm` is `my` less `cm`.
    pieces: BTreeSet<&'a str>,
    /// Names that nobody has, where resources without an id may be meant by all of them.
    lost: BTreeSet<String>,
}

impl<'a> Names<'a> {
    pub(super) fn new(definition: &'a Definition, drafts: &[Draft]) -> Self {
        let spec = &definition.spec;
        let mut ids: BTreeMap<&str, Option<usize>> = BTreeMap::new();
        let mut twice = BTreeSet::new();
        for resource in &spec.resources {
            if ids.insert(&resource.id, None).is_some() {
                twice.insert(resource.id.as_str());
            }
        }
        for (position, draft) in drafts.iter().enumerate().filter(|(_, draft)| !twice.contains(draft.id.as_str())) {
            if let Some(place) = ids.get_mut(draft.id.as_str()) {
                *place = Some(position);
            }
        }
        let mut names = Self { ids, twice, pieces: pieces(spec), lost: BTreeSet::new() };
        names.lost = names.lost(definition, drafts);
        names
    }

    /// Ids of all resources.
    pub(super) fn ids(&self) -> impl Iterator<Item = &'a str> {
        self.ids.keys().copied()
    }

    /// Whether one resource alone has this id.
    pub(super) fn is_unique(&self, id: &str) -> bool {
        !self.twice.contains(id)
    }

    /// Whether a name that nobody has may be that of a resource or an iterator whose own name is what has to be mended.
    pub(super) fn may_be_meant(&self, name: &str) -> bool {
        self.pieces.contains(name) || self.lost.contains(name)
    }

    /// Names that nobody has, unless there are more than resources without an id: then at least one is a mistake of its own.
    fn lost(&self, definition: &Definition, drafts: &[Draft]) -> BTreeSet<String> {
        let spec = &definition.spec;
        let nameless = match spec.resources.iter().filter(|resource| resource.id.is_empty()).count() {
            0 if definition.lacks_resources() => usize::MAX,
            count => count,
        };
        if nameless == 0 {
            return BTreeSet::new();
        }
        let in_status = expressions(&Value::Object(spec.schema.status.clone()));
        let in_drafts = drafts.iter().flat_map(|draft| {
            let iterators: Vec<&str> = draft.iterators().collect();
            draft.depending().map(move |(_, _, expression, _)| (expression, iterators.clone()))
        });
        let unknown = |expression: &Expression, extra: &[&str]| -> Vec<String> {
            used(expression).filter(|name| !self.is_known(name, extra)).map(str::to_owned).collect()
        };
        let mut lost: BTreeSet<String> = in_drafts.flat_map(|(expression, extra)| unknown(expression, &extra)).collect();
        lost.extend(in_status.iter().flat_map(|expression| unknown(expression, &["runtime"])));
        if lost.len() > nameless { BTreeSet::new() } else { lost }
    }

    /// Whether an expression refers to nothing that does not exist, so that its type can be told.
    pub(super) fn knows(&self, expression: &Expression, extra: &[&str]) -> bool {
        let known = |name: &str| self.is_known(name, extra);
        used(expression).all(known) && expression.references().unknown_functions.is_empty()
    }

    fn is_known(&self, name: &str, extra: &[&str]) -> bool {
        name == SCHEMA || extra.contains(&name) || self.ids.contains_key(name) || is_type_name(name)
    }

    /// Edges by position, sorted; reports unknown names, functions, self references.
    pub(super) fn edges(&self, drafts: &[Draft], findings: &mut Findings<'_>) -> Edges {
        drafts.iter().map(|draft| self.dependencies(draft, findings)).collect()
    }

    fn dependencies(&self, draft: &Draft, findings: &mut Findings<'_>) -> Vec<usize> {
        let mut found = BTreeSet::new();
        let iterators: Vec<&str> = draft.iterators().collect();
        for (path, text, expression, inside) in draft.depending() {
            let is_dimension = !inside && path.contains(".forEach[");
            // An iterator that reads another one is told of as that, and not as an unknown name.
            let extra = if inside || is_dimension { iterators.as_slice() } else { &[] };
            if is_dimension {
                independent(draft, &iterators, (&path, text, expression), findings);
            }
            if !draft.doubtful {
                self.check(&path, text, expression, extra, findings);
            }
            for name in used(expression) {
                if extra.contains(&name) {
                    continue;
                }
                if name == draft.id && self.is_unique(name) {
                    findings.expression(&path, text, offset(expression, name), "self references are not allowed", None);
                } else if let Some(Some(position)) = self.ids.get(name) {
                    found.insert(*position);
                }
            }
        }
        found.into_iter().collect()
    }

    /// Reports names and functions that do not exist. `extra` are names known besides the nodes and `schema`.
    pub(super) fn check(&self, path: &str, text: &Text, expression: &Expression, extra: &[&str], findings: &mut Findings<'_>) {
        for name in used(expression) {
            if self.is_known(name, extra) || self.may_be_meant(name) {
                continue;
            }
            let at = offset(expression, name);
            if name == "runtime" {
                findings.expression(path, text, at, "runtime is only available in status.conditions expressions", None);
                continue;
            }
            let known = self.ids.keys().copied().chain([SCHEMA]).chain(extra.iter().copied());
            let hint = findings.near(name, known).or_else(|| shell(name, name));
            findings.expression(path, text, at, format!("references unknown identifiers: [{name}]"), hint);
        }
        functions(path, text, expression, findings);
    }

    /// Reports what a status expression may not refer to; it must read something.
    pub(super) fn status(&self, place: &str, path: &str, text: &Text, expression: &Expression, findings: &mut Findings<'_>) {
        let known = |name: &str| name == SCHEMA || self.ids.contains_key(name);
        let unknown: Vec<&str> =
            used(expression).filter(|name| !known(name) && !is_type_name(name) && !self.may_be_meant(name)).collect();
        if let Some(first) = unknown.first() {
            // `runtime.newCondition({type: …})`: outside of conditions its keys are no names of anything.
            let shown = if unknown.contains(&"runtime") { vec!["runtime"] } else { unknown.clone() };
            let (source, list) = (expression.source(), shown.join(" "));
            let message = format!("status field {place:?} expression {source:?}: references unknown identifiers: [{list}]");
            let hint = findings.near(first, self.ids.keys().copied().chain([SCHEMA]));
            findings.expression(path, text, offset(expression, first), message, hint);
        } else if !used(expression).any(|name| known(name) || self.may_be_meant(name)) {
            findings.error(path, format!("instance status field must refer to a resource or schema: status.{place}"));
        }
        functions(path, text, expression, findings);
    }
}

/// Reports functions that do not exist.
fn functions(path: &str, text: &Text, expression: &Expression, findings: &mut Findings<'_>) {
    for (name, at) in &expression.references().unknown_functions {
        let hint = findings.function(name);
        findings.expression(path, text, *at, format!("uses unknown functions: [{name}]"), hint);
    }
}

/// The way to write a variable of a shell, whose names are in capitals; `text` is all that stands between the braces.
pub(super) fn shell(name: &str, text: &str) -> Option<String> {
    let is_capital = |byte: u8| byte.is_ascii_uppercase() || byte.is_ascii_digit() || byte == b'_';
    (name.len() > 1 && name.bytes().all(is_capital)).then(|| format!("a variable of a shell is written ${{\"${{{text}}}\"}}"))
}

/// Reports an iterator that reads another one.
fn independent(draft: &Draft, iterators: &[&str], entry: (&str, &Text, &Expression), findings: &mut Findings<'_>) {
    let (path, text, expression) = entry;
    let others: Vec<&str> = used(expression).filter(|name| iterators.contains(name)).collect();
    if let Some(first) = others.first() {
        let message = format!(
            "node {:?}: forEach iterator cannot reference other iterators [{}] - forEach iterators are independent (cartesian product)",
            draft.id,
            others.join(" ")
        );
        findings.expression(path, text, offset(expression, first), message, None);
    }
}

/// Parts of ids and iterators that are no names.
fn pieces(spec: &RgdSpec) -> BTreeSet<&str> {
    let iterators = spec.resources.iter().flat_map(|resource| resource.for_each.iter().flat_map(BTreeMap::keys));
    let ids = spec.resources.iter().map(|resource| &resource.id);
    let broken = ids.chain(iterators).filter(|name| name.contains(|c: char| !c.is_ascii_alphanumeric()));
    broken.flat_map(|name| name.split(|c: char| !c.is_ascii_alphanumeric() && c != '_')).collect()
}

/// The expressions in the strings of a value, those that can be parsed.
fn expressions(value: &Value) -> Vec<Expression> {
    match value {
        Value::String(text) => {
            let text = Text::read(text).ok().flatten();
            text.and_then(|text| Expression::parse(&text.cel).ok()).into_iter().collect()
        }
        Value::Array(list) => list.iter().flat_map(expressions).collect(),
        Value::Object(map) => map.values().flat_map(expressions).collect(),
        _ => Vec::new(),
    }
}

/// Names of variables in an expression.
fn used(expression: &Expression) -> impl Iterator<Item = &str> {
    expression.references().identifiers.keys().map(String::as_str)
}

/// Character offset of the first use of a name.
fn offset(expression: &Expression, name: &str) -> usize {
    expression.references().identifiers.get(name).copied().unwrap_or_default()
}

/// Reports cycles, each whole.
pub(super) fn report_cycles(drafts: &[Draft], edges: &Edges, findings: &mut Findings<'_>) {
    for cycle in super::order::cycles(edges).into_iter().filter(|cycle| cycle.len() > 1) {
        let names = cycle.iter().chain(cycle.first()).map(|node| drafts[*node].id.as_str());
        let message = format!("graph contains a cycle: {}", names.collect::<Vec<_>>().join(" -> "));
        findings.error(format!("{}.id", drafts[cycle[0]].path), message);
    }
}
