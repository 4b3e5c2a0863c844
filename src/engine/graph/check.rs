//! Types: every expression gives what its place takes (kro.md section 5).

use std::sync::Arc;

use serde_json::Value;

use super::{
    compiled::Options,
    draft::Draft,
    edges::Names,
    findings::Findings,
    fit::{Sight, alone, doubt, misfit},
    node::NodeKind,
    selector,
    shape::schema_of,
};
use crate::{
    Diagnostic,
    cel::{CheckError, Expression, Scope, Type, check, written},
    diagnostic::Severity,
    schema::{Additional, Found, Schema, Segment, segments},
    template::{Text, path_text},
};

/// Types of all variables of a graph.
pub(super) struct Types {
    /// Everything that a template or a status expression may read, by node id; what is deferred is dynamic.
    all: Arc<Scope>,
    /// The schema of instances; what could not be read of it is any value.
    instance: Arc<Schema>,
}

impl Types {
    pub(super) fn new(drafts: &[Draft], names: &Names<'_>, instance: &Arc<Schema>) -> Self {
        let mut all = Scope::new().with_unknown_told().with("schema", Type::of_schema("schema", instance));
        names.ids().for_each(|id| all.set(id, Type::Dyn));
        for draft in drafts.iter().filter(|draft| !draft.doubtful && names.is_unique(&draft.id)) {
            // Each use has a name of its own, as with kro.
            let of = if draft.kind.is_list() {
                Type::list(type_of_objects(draft, &format!("{}.@idx", draft.id)))
            } else {
                type_of_objects(draft, &draft.id)
            };
            all.set(draft.id.clone(), of);
        }
        Self { all: Arc::new(all), instance: Arc::clone(instance) }
    }

    /// Everything that a template or a status expression may read.
    pub(super) fn scope(&self) -> Scope {
        Scope::over(Arc::clone(&self.all))
    }

    /// Whether kro would know the type of an expression as well as it can be known. What is read of nodes may be dynamic here because
    /// a kind is not served yet, here or where the node comes from.
    fn are_final(&self, expression: &Expression) -> bool {
        let references = expression.references();
        references.identifiers.keys().all(|name| name == "schema" || crate::cel::is_type_name(name))
            && references.paths.iter().filter(|read| read[0] == "schema").all(|read| self.is_known(read))
    }

    /// Whether a path leads over nothing that could not be read of the instance's schema.
    fn is_known(&self, read: &[String]) -> bool {
        let mut here = &self.instance;
        for segment in inside(read).into_iter().flatten() {
            let below = match &segment {
                Segment::Field(name) => here.field(name),
                Segment::Index(_) => here.items.as_ref(),
            };
            let Some(below) = below else { break };
            here = below;
        }
        is_whole(here)
    }
}

/// Whether all of a schema could be read: no SimpleSchema describes a value without a type.
fn is_whole(schema: &Schema) -> bool {
    let values = match &schema.additional_properties {
        Some(Additional::Schema(values)) => Some(values),
        _ => None,
    };
    schema.kind.is_some() && schema.properties.values().chain(&schema.items).chain(values).all(|below| is_whole(below))
}

/// What `readyWhen` may read: the object itself, or `each` of a list. Of a list that a selector finds kro checks the list, and asks
/// each object: both can be read.
fn own(draft: &Draft) -> Scope {
    let of = |name: &str| if draft.doubtful { Type::Dyn } else { type_of_objects(draft, name) };
    let mut scope = Scope::new().with_unknown_told();
    for name in own_names(draft) {
        let is_whole = draft.kind.is_list() && *name == draft.id;
        scope.set(name, if is_whole { Type::list(of(&format!("{name}.@idx"))) } else { of(name) });
    }
    scope
}

fn own_names(draft: &Draft) -> Vec<&str> {
    match draft.kind {
        NodeKind::ExternalSelector => vec!["each", &draft.id],
        NodeKind::Collection => vec!["each"],
        NodeKind::Template | NodeKind::External => vec![&draft.id],
    }
}

/// The type of a node's objects by this name; dynamic where the kind is not served.
fn type_of_objects(draft: &Draft, name: &str) -> Type {
    schema_of(draft).map_or(Type::Dyn, |schema| Type::of_schema(name, &schema))
}

/// Checks everything of one node; gives the types of what its iterators stand for, as far as they are known.
pub(super) fn node(
    draft: &Draft,
    types: &Types,
    names: &Names<'_>,
    options: &Options,
    findings: &mut Findings<'_>,
) -> Vec<Option<Type>> {
    let mut elements = Vec::new();
    let mut scope = types.scope();
    draft.iterators().for_each(|name| scope.set(name, Type::Dyn));
    for dimension in &draft.for_each {
        let path = draft.entry("forEach", dimension.index);
        no_omit(&path, &dimension.text, &dimension.expression, findings);
        let of = typed(&path, &dimension.text, &dimension.expression, &types.scope(), findings);
        let element = of.filter(|_| names.knows(&dimension.expression, &[])).and_then(|of| {
            let element = of.element().filter(|_| of != Type::Dyn || !types.are_final(&dimension.expression)).cloned();
            if element.is_none() {
                let name = &dimension.name;
                let message = format!(
                    "forEach iterator {name:?} must return a list, got {:?}: type {:?} is not a list type",
                    alone(&of),
                    alone(&of)
                );
                findings.expression(&path, &dimension.text, 0, message, None);
            }
            element
        });
        scope.set(dimension.name.clone(), element.clone().unwrap_or(Type::Dyn));
        elements.push(element);
    }
    conditions(draft, types, names, findings);
    slots(draft, &scope, names, options, findings);
    identity(draft, options, findings);
    elements
}

fn conditions(draft: &Draft, types: &Types, names: &Names<'_>, findings: &mut Findings<'_>) {
    let own = own(draft);
    let name = if draft.kind.is_list() { "each" } else { &draft.id };
    let lists = [("readyWhen", &draft.ready_when, own), ("includeWhen", &draft.include_when, types.scope())];
    for (list, conditions, scope) in lists {
        for condition in conditions {
            let path = draft.entry(list, condition.index);
            let (text, expression) = (&condition.text, &condition.expression);
            no_omit(&path, text, expression, findings);
            let is_known = match list {
                "readyWhen" if draft.doubtful => false,
                "readyWhen" => only(draft, names, (&path, text, expression), findings),
                _ => names.knows(expression, &[]),
            };
            let Some(of) = typed(&path, text, expression, &scope, findings).filter(|_| is_known) else { continue };
            if list == "readyWhen" {
                encoded(&path, draft, expression, findings);
                timed(&path, name, draft, expression, findings);
            }
            let open = of.is_dynamic() && !types.are_final(expression);
            if !of.is_condition() && !open {
                let (source, id) = (expression.source(), &draft.id);
                let message = format!(
                    "{list} expression {source:?} in resource {id:?} must return bool or optional_type(bool), but returns \"{}\"",
                    alone(&of)
                );
                findings.expression(&path, text, 0, message, None);
            }
        }
    }
}

/// Warns of bytes in `readyWhen`: their type is that of bytes, and their value, with kro and so here, the text that is stored (kro.md
/// section 4, kro#1084).
fn encoded(path: &str, draft: &Draft, expression: &Expression, findings: &mut Findings<'_>) {
    let Some(schema) = schema_of(draft) else { return };
    let is_bytes = |read: &&Vec<String>| type_of(read, &schema) == Some(Type::Bytes);
    if let Some(read) = expression.references().paths.iter().find(is_bytes) {
        let message = format!("readyWhen reads the object as it is stored: {} is base64 text there, not bytes", read.join("."));
        let hint = Some("compare it with base64.encode(…) of what is expected".to_owned());
        findings.push(Diagnostic { severity: Severity::Warning, hint, ..Diagnostic::error(path, message) });
    }
}

/// Warns of times in `readyWhen` for the same reason, where the expression has no meaning for the text that is stored.
fn timed(path: &str, name: &str, draft: &Draft, expression: &Expression, findings: &mut Findings<'_>) {
    let Some(schema) = schema_of(draft) else { return };
    let function = |read: &Vec<String>| match type_of(read, &schema)? {
        Type::Timestamp => Some("timestamp"),
        Type::Duration => Some("duration"),
        _ => None,
    };
    let paths = expression.references().paths.iter();
    let times: Vec<_> = paths.filter_map(|read| Some((read, function(read)?))).collect();
    let Some((first, of)) = times.first() else { return };
    let stored =
        times.iter().filter_map(|(read, _)| inside(read)).fold(schema.as_ref().clone(), |schema, read| as_text(&schema, &read));
    let mut scope = Scope::new();
    scope.set(name, Type::of_schema(name, &stored));
    if check(expression, &scope).is_err() {
        let first = first.join(".");
        let message = format!("readyWhen reads the object as it is stored: {first} is text there, not a {of}");
        let hint = Some(format!("write {of}({first})"));
        findings.push(Diagnostic { severity: Severity::Warning, hint, ..Diagnostic::error(path, message) });
    }
}

/// The way of a read path inside its object.
fn inside(read: &[String]) -> Option<Vec<Segment>> {
    segments(&written(read.get(1..)?))
}

/// The type of what a path reads of an object with this schema, where that is described.
fn type_of(read: &[String], schema: &Arc<Schema>) -> Option<Type> {
    match schema.at(&inside(read)?) {
        Found::Schema(found) => Some(Type::of_schema("", &found)),
        _ => None,
    }
}

/// The schema with plain text at a place.
fn as_text(schema: &Schema, path: &[Segment]) -> Schema {
    let mut changed = schema.clone();
    match path.split_first() {
        None => return Schema { format: None, ..changed },
        Some((Segment::Field(name), rest)) => {
            if let Some(below) = schema.field(name) {
                changed.properties.insert(name.clone(), Arc::new(as_text(below, rest)));
            }
        }
        Some((Segment::Index(_), rest)) => changed.items = schema.items.as_ref().map(|items| Arc::new(as_text(items, rest))),
    }
    changed
}

/// Whether an expression reads nothing but its own node.
fn only(
    draft: &Draft,
    names: &Names<'_>,
    (path, text, expression): (&str, &Text, &Expression),
    findings: &mut Findings<'_>,
) -> bool {
    let references = expression.references();
    let own = own_names(draft);
    let is_known = |name: &str| own.contains(&name) || crate::cel::is_type_name(name);
    let unknown = references.identifiers.iter().find(|(other, _)| !is_known(other));
    if let Some((other, offset)) = unknown.filter(|(other, _)| !names.may_be_meant(other)) {
        let message = format!("resource {:?} readyWhen: references unknown identifiers: [{other}]", draft.id);
        let hint = format!("readyWhen can only read {}", own.join(" and "));
        findings.expression(path, text, *offset, message, Some(hint));
    }
    for (function, offset) in &references.unknown_functions {
        let hint = findings.function(function);
        findings.expression(path, text, *offset, format!("uses unknown functions: [{function}]"), hint);
    }
    unknown.is_none() && references.unknown_functions.is_empty()
}

fn slots(draft: &Draft, scope: &Scope, names: &Names<'_>, options: &Options, findings: &mut Findings<'_>) {
    let external = matches!(draft.kind, NodeKind::External | NodeKind::ExternalSelector);
    let iterators: Vec<&str> = draft.iterators().collect();
    for slot in &draft.slots {
        let path = draft.at(&slot.path);
        if !options.omit && slot.expression.references().functions.contains("omit") {
            let hint = Some("it is off, as in kro; an entry of a map can be left out with {?key: optional}".to_owned());
            findings.expression(&path, &slot.text, 0, "omit() requires the CELOmitFunction feature gate to be enabled", hint);
        }
        let of = typed(&path, &slot.text, &slot.expression, scope, findings);
        let Some(of) = of.filter(|_| names.knows(&slot.expression, &iterators)) else { continue };
        let place = path_text(&slot.path);
        let expected = match &slot.schema {
            _ if external => selector::expected(&slot.path),
            Some(schema) => Type::of_schema(&type_name(&draft.id, &slot.path), schema),
            None => Type::Dyn,
        };
        if expected == Type::Bytes && matches!(of, Type::Bytes | Type::String) {
            // Better than kro, where such a field cannot be written: bytes are encoded, text is taken as encoded already.
            continue;
        }
        let root = format!("{}{}", crate::cel::TYPE_PREFIX, type_name(&draft.id, &slot.path));
        let sight = Sight { hidden: is_hidden(draft, &slot.path).then_some(root.as_str()), is_kros: true };
        let mismatch = |why: String| {
            let (id, source, of) = (&draft.id, slot.expression.source(), alone(&of));
            format!(
                "type mismatch in resource {id:?} at path {place:?}: expression {source:?} returns type \"{of}\" but expected \"{expected}\": {why}"
            )
        };
        if let Some(why) = misfit(&of, &expected, sight) {
            findings.expression(&path, &slot.text, 0, mismatch(why), None);
        } else if let Some(why) = misfit(&of, &expected, Sight::default()) {
            let hint = Some("kro does not look so far, and so it is accepted".to_owned());
            findings.push(Diagnostic { severity: Severity::Warning, hint, ..Diagnostic::error(&path, mismatch(why)) });
        } else if let Some(doubt) = doubt(&of, &expected) {
            findings.push(Diagnostic { severity: Severity::Warning, ..Diagnostic::error(&path, doubt) });
        }
    }
}

/// Whether kro does not find the fields of the type at a place: it knows them neither of the objects of a collection nor below the keys
/// of a map.
fn is_hidden(draft: &Draft, path: &[Segment]) -> bool {
    let Some(mut here) = schema_of(draft).filter(|_| draft.kind != NodeKind::Collection) else { return true };
    for segment in path {
        let below = match segment {
            Segment::Field(name) if here.properties.contains_key(name) => here.field(name),
            Segment::Field(_) => return true,
            Segment::Index(_) => here.items.as_ref(),
        };
        let Some(below) = below else { return true };
        here = Arc::clone(below);
    }
    false
}

/// The name of the type at a place, as kro has it: every element of a list is `@idx`.
fn type_name(id: &str, path: &[Segment]) -> String {
    path.iter().fold(id.to_owned(), |name, segment| match segment {
        Segment::Field(field) => format!("{name}.{field}"),
        Segment::Index(_) => format!("{name}.@idx"),
    })
}

/// The type of an expression; reports why it has none.
pub(super) fn typed(
    path: &str,
    text: &Text,
    expression: &Expression,
    scope: &Scope,
    findings: &mut Findings<'_>,
) -> Option<Type> {
    match check(expression, scope) {
        Ok(of) => Some(of),
        Err(errors) => {
            for CheckError { offset, message, hint } in errors {
                findings.expression(path, text, offset, message, hint);
            }
            None
        }
    }
}

/// `omit()` may only stand in templates.
pub(super) fn no_omit(path: &str, text: &Text, expression: &Expression, findings: &mut Findings<'_>) {
    if expression.references().functions.contains("omit") {
        findings.expression(path, text, 0, "omit() can only be used in resource template expressions", None);
    }
}

/// What names an object must be there, and every iterator must take part in it.
fn identity(draft: &Draft, options: &Options, findings: &mut Findings<'_>) {
    let namespaced = draft.info.as_ref().is_some_and(|info| info.namespaced);
    let names = |path: &str| path == "metadata.name" || (path == "metadata.namespace" && (namespaced || draft.info.is_none()));
    let naming: Vec<_> = draft.slots.iter().filter(|slot| names(&path_text(&slot.path))).collect();
    for slot in naming.iter().filter(|slot| options.omit && slot.expression.references().functions.contains("omit")) {
        let (id, place) = (&draft.id, path_text(&slot.path));
        let message = format!(
            "resource {id:?}: omit() cannot be used at path {place:?} — the field is required and must resolve to a concrete value"
        );
        findings.expression(&draft.at(&slot.path), &slot.text, 0, message, None);
    }
    let used = |name: &str| naming.iter().any(|slot| slot.expression.references().identifiers.contains_key(name));
    let missing: Vec<&str> = draft.iterators().filter(|name| !used(name)).collect();
    if !missing.is_empty() && !has_unreadable_name(draft) {
        let (id, missing) = (&draft.id, missing.join(" "));
        let message = format!(
            "node {id:?}: all forEach dimensions must be used to produce a unique resource identity, missing: [{missing}]"
        );
        findings.error(format!("{}.metadata.name", draft.root()), message);
    }
}

/// Whether what names the objects has a syntax error: it may well use every iterator.
fn has_unreadable_name(draft: &Draft) -> bool {
    let texts = ["/metadata/name", "/metadata/namespace"].map(|place| draft.object.pointer(place).and_then(Value::as_str));
    texts.into_iter().flatten().any(|text| match Text::read(text) {
        Ok(None) => false,
        Ok(Some(text)) => Expression::parse(&text.cel).is_err(),
        Err(_) => true,
    })
}
