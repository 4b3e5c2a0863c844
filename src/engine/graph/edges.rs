//! Who reads whom (kro.md section 7).

use std::collections::{BTreeMap, BTreeSet};

use plinth_api::rgd::RgdSpec;

use super::{compiled::Options, draft::Draft, findings::Findings, order::Edges};
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
    options: &'a Options,
}

impl<'a> Names<'a> {
    pub(super) fn new(spec: &'a RgdSpec, drafts: &[Draft], options: &'a Options) -> Self {
        let mut ids: BTreeMap<&str, Option<usize>> = spec.resources.iter().map(|resource| (resource.id.as_str(), None)).collect();
        for (position, draft) in drafts.iter().enumerate() {
            if let Some(place @ None) = ids.get_mut(draft.id.as_str()) {
                *place = Some(position);
            }
        }
        Self { ids, options }
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
            let extra = if inside { iterators.as_slice() } else { &[] };
            if !inside && path.contains(".forEach[") {
                independent(draft, &iterators, (&path, text, expression), findings);
            }
            if !draft.doubtful {
                self.check(&path, text, expression, extra, findings);
            }
            for name in used(expression) {
                if extra.contains(&name) {
                    continue;
                }
                if name == draft.id {
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
            if self.is_known(name, extra) {
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
        self.functions(path, text, expression, findings);
    }

    /// Reports what a status expression may not refer to; it must read something.
    pub(super) fn status(&self, place: &str, path: &str, text: &Text, expression: &Expression, findings: &mut Findings<'_>) {
        let known = |name: &str| name == SCHEMA || self.ids.contains_key(name);
        let unknown: Vec<&str> = used(expression).filter(|name| !known(name) && !is_type_name(name)).collect();
        if let Some(first) = unknown.first() {
            // `runtime.newCondition({type: …})`: outside of conditions its keys are no names of anything.
            let shown = if unknown.contains(&"runtime") { vec!["runtime"] } else { unknown.clone() };
            let (source, list) = (expression.source(), shown.join(" "));
            let message = format!("status field {place:?} expression {source:?}: references unknown identifiers: [{list}]");
            let hint = findings.near(first, self.ids.keys().copied().chain([SCHEMA]));
            findings.expression(path, text, offset(expression, first), message, hint);
        } else if !used(expression).any(known) {
            findings.error(path, format!("instance status field must refer to a resource or schema: status.{place}"));
        }
        self.functions(path, text, expression, findings);
    }

    /// Reports functions that do not exist, and `omit()` where it is not allowed at all.
    pub(super) fn functions(&self, path: &str, text: &Text, expression: &Expression, findings: &mut Findings<'_>) {
        let references = expression.references();
        for (name, at) in &references.unknown_functions {
            let hint = findings.function(name);
            findings.expression(path, text, *at, format!("uses unknown functions: [{name}]"), hint);
        }
        if references.functions.contains("omit") && !self.options.omit {
            let hint = Some("it is off, as in kro; an entry of a map can be left out with {?key: optional}".to_owned());
            findings.expression(path, text, 0, "omit() requires the CELOmitFunction feature gate to be enabled", hint);
        }
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
