//! A node while it is being compiled.

use std::sync::Arc;

use plinth_api::{GroupVersionKind, rgd::RgdResource};
use serde_json::Value;

use super::{
    edges::shell,
    findings::Findings,
    node::{Condition, Dimension, NodeKind, Slot},
};
use crate::{
    cel::Expression,
    schema::{KindInfo, Segment},
    template::{Text, path_text},
    yaml::element,
};

/// A node that is not yet known to be right. What could not be read is left out, so that later steps go on with the rest.
pub(super) struct Draft {
    pub(super) id: String,
    /// `spec.resources[i]`.
    pub(super) path: String,
    pub(super) kind: NodeKind,
    /// The template, or the external reference.
    pub(super) object: Value,
    pub(super) gvk: Option<GroupVersionKind>,
    /// `None` where the kind is not served or not known.
    pub(super) info: Option<Arc<KindInfo>>,
    pub(super) slots: Vec<Slot>,
    pub(super) ready_when: Vec<Condition>,
    pub(super) include_when: Vec<Condition>,
    pub(super) for_each: Vec<Dimension>,
    /// Names of the iterators, those that cannot be read too.
    pub(super) iterators: Vec<String>,
    /// Whether its iterators may be other ones than those that could be read, so that a name which seems to be missing may be one.
    pub(super) doubtful: bool,
}

impl Draft {
    /// A node of which only form and place are known.
    pub(super) fn new(id: String, path: String, kind: NodeKind, object: Value) -> Self {
        Self {
            id,
            path,
            kind,
            object,
            gvk: None,
            info: None,
            slots: Vec::new(),
            ready_when: Vec::new(),
            include_when: Vec::new(),
            for_each: Vec::new(),
            iterators: Vec::new(),
            doubtful: false,
        }
    }

    /// Path of the template in the document.
    pub(super) fn root(&self) -> String {
        match self.kind {
            NodeKind::External | NodeKind::ExternalSelector => format!("{}.externalRef", self.path),
            NodeKind::Template | NodeKind::Collection => format!("{}.template", self.path),
        }
    }

    /// Path of a place of the template in the document.
    pub(super) fn at(&self, path: &[Segment]) -> String {
        below(&self.root(), &path_text(path))
    }

    /// Path of a `readyWhen`, `includeWhen` or `forEach` entry in the document.
    pub(super) fn entry(&self, list: &str, index: usize) -> String {
        element(&format!("{}.{list}", self.path), index)
    }

    /// Names of the iterators.
    pub(super) fn iterators(&self) -> impl Iterator<Item = &str> {
        self.iterators.iter().map(String::as_str)
    }

    /// Everything that makes the node depend on others: expression, its path in the document, and whether the node's
    /// iterators are known in it.
    pub(super) fn depending(&self) -> impl Iterator<Item = (String, &Text, &Expression, bool)> {
        let slots = self.slots.iter().map(|slot| (self.at(&slot.path), &slot.text, &slot.expression, true));
        let include = self
            .include_when
            .iter()
            .map(|condition| (self.entry("includeWhen", condition.index), &condition.text, &condition.expression, false));
        let each = self
            .for_each
            .iter()
            .map(|dimension| (self.entry("forEach", dimension.index), &dimension.text, &dimension.expression, false));
        slots.chain(include).chain(each)
    }
}

/// A path below another path.
pub(super) fn below(root: &str, path: &str) -> String {
    match path {
        "" => root.to_owned(),
        path if path.starts_with('[') => format!("{root}{path}"),
        path => format!("{root}.{path}"),
    }
}

/// Parses a string with expressions; a syntax error is placed in the part of the string that has it. The parts without one are
/// answered all the same, so that their mistakes are found too; the definition is refused by then.
pub(super) fn parse(text: Text, path: &str, findings: &mut Findings<'_>) -> Option<(Text, Expression)> {
    let error = match Expression::parse(&text.cel) {
        Ok(expression) => return Some((text, expression)),
        Err(error) => error,
    };
    let wrong: Vec<_> =
        text.expressions().filter_map(|(part, start)| Some((part, start, Expression::parse(part).err()?))).collect();
    for (part, start, error) in &wrong {
        let inside = part.char_indices().nth(error.offset).map_or(part.len(), |(byte, _)| byte);
        findings.in_string(path, &text, start + inside, &error.message, of_shell(part));
    }
    if wrong.is_empty() {
        findings.expression(path, &text, error.offset, error.message, None);
        return None;
    }
    let left = text.without(|start| wrong.iter().any(|(_, wrong, _)| *wrong == start))?;
    let expression = Expression::parse(&left.cel).ok()?;
    Some((left, expression))
}

/// `VAR:-default` and its likes.
fn of_shell(part: &str) -> Option<String> {
    let (name, _) = part.trim().split_once([':', '%', '#', '/'])?;
    shell(name, part.trim())
}

/// Parses an entry that must be one expression and nothing else.
pub(super) fn standalone(source: &str, path: &str, findings: &mut Findings<'_>) -> Option<(Text, Expression)> {
    const ALONE: &str = "only standalone expressions are allowed";
    match Text::read(source) {
        Ok(Some(text)) if text.standalone => parse(text, path, findings),
        Ok(Some(_)) => {
            let trailing =
                source.trim() != source && Text::read(source.trim()).is_ok_and(|text| text.is_some_and(|text| text.standalone));
            let hint = trailing.then(|| "there is white space around it; in YAML, write |- instead of |".to_owned());
            findings.hinted(path, ALONE, hint);
            None
        }
        Ok(None) => {
            let hint = if source.contains("${") {
                "the expression does not end: a } is missing, or a double quote".to_owned()
            } else if Expression::parse(source).is_ok_and(|expression| is_sensible(&expression)) {
                format!("write ${{{source}}}")
            } else {
                "each entry is one CEL expression between ${ and }".to_owned()
            };
            findings.hinted(path, ALONE, Some(hint));
            None
        }
        Err(_) => {
            findings.error(path, crate::template::NESTED);
            None
        }
    }
}

/// Whether it reads something: `yes` alone is a name by chance.
fn is_sensible(expression: &Expression) -> bool {
    expression.source().contains(['.', '(', '=', '<', '>', '!', '&', '|'])
}

/// Reads the conditions and iterators of a resource.
pub(super) fn entries(resource: &RgdResource, draft: &mut Draft, findings: &mut Findings<'_>) {
    draft.ready_when = conditions(&resource.ready_when, draft, "readyWhen", findings);
    draft.include_when = conditions(&resource.include_when, draft, "includeWhen", findings);
    draft.iterators = resource.for_each.iter().flatten().map(|(name, _)| name.clone()).collect();
    for (index, dimension) in resource.for_each.iter().enumerate() {
        let path = draft.entry("forEach", index);
        for (name, source) in dimension {
            if let Some((text, expression)) = entry(source, &path, findings) {
                draft.for_each.push(Dimension { index, name: name.clone(), text, expression, element: None });
            }
        }
    }
}

/// Parses an entry, if it does not stand for one that is none, which is said already.
fn entry(source: &str, path: &str, findings: &mut Findings<'_>) -> Option<(Text, Expression)> {
    let is_said = source.is_empty() && findings.refused_at(path);
    if is_said { None } else { standalone(source, path, findings) }
}

fn conditions(sources: &[String], draft: &Draft, list: &str, findings: &mut Findings<'_>) -> Vec<Condition> {
    let read = sources.iter().enumerate().filter_map(|(index, source)| {
        let (text, expression) = entry(source, &draft.entry(list, index), findings)?;
        Some(Condition { index, text, expression })
    });
    read.collect()
}
