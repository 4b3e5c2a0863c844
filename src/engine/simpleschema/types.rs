//! Custom types: which uses which, in what order they are built (kro.md 2.2).

use std::collections::{BTreeMap, BTreeSet};

use serde_json::{Map, Value};

use super::{
    Findings,
    grammar::{Syntax, split},
    object::{Field, build, is_small, text_field, too_large, type_hint, unexpected, unknown},
};
use crate::{Diagnostic, yaml};

/// Types that are built, by name.
pub(super) type Types = BTreeMap<String, Field>;

/// Builds all custom types, those first that others use.
///
/// A type that cannot be built is any value, so that its users are not blamed for it.
pub(super) fn resolve(definitions: &Map<String, Value>, findings: &mut Findings) -> Types {
    let mut types = Types::new();
    let mut waiting: BTreeMap<&String, BTreeSet<&str>> = BTreeMap::new();
    for (name, definition) in definitions {
        if definition.is_string() || definition.is_object() {
            waiting.insert(name, used_by(definition));
        } else {
            let mut finding = unexpected(definition, &path(name));
            finding.message = format!("parsing type {name}: {}", finding.message);
            findings.errors.push(finding);
            types.insert(name.clone(), unknown());
        }
    }
    report_missing(&mut waiting, definitions, &mut types, findings);
    while !waiting.is_empty() {
        let next = waiting.iter().find(|(_, uses)| uses.iter().all(|used| types.contains_key(*used))).map(|(name, _)| *name);
        let Some(name) = next else {
            for name in report_cycle(&waiting, &types, findings) {
                types.insert(name, unknown());
            }
            waiting.retain(|name, _| !types.contains_key(*name));
            continue;
        };
        waiting.remove(name);
        let built = define(name, &definitions[name], &types, findings);
        types.insert(name.clone(), built);
    }
    types
}

/// Custom types of which only the names are known, from their uses.
pub(super) fn unread(fields: &Map<String, Value>) -> Types {
    fields.values().flat_map(used_by).map(|name| (name.to_owned(), unknown())).collect()
}

fn path(name: &str) -> String {
    yaml::field("spec.schema.types", name)
}

fn define(name: &str, definition: &Value, types: &Types, findings: &mut Findings) -> Field {
    let path = path(name);
    let field = match definition {
        Value::Object(fields) => Field { schema: build(fields, types, &path, findings), required: false, defaulted: false },
        other => text_field(other.as_str().unwrap_or_default(), types, &path, findings),
    };
    if is_small(&field.schema) {
        return field;
    }
    findings.errors.push(too_large(&path));
    unknown()
}

/// Names that a definition uses, at any depth.
fn used_by(definition: &Value) -> BTreeSet<&str> {
    let mut names = BTreeSet::new();
    let mut open = vec![definition];
    while let Some(value) = open.pop() {
        match value {
            Value::Object(fields) => open.extend(fields.values()),
            Value::String(text) => names.extend(Syntax::parse(split(text).0).ok().and_then(|syntax| syntax.name())),
            _ => {}
        }
    }
    names
}

/// Reports uses of names that are not defined; the uses count as built from then on.
fn report_missing<'a>(
    waiting: &mut BTreeMap<&'a String, BTreeSet<&'a str>>,
    definitions: &Map<String, Value>,
    types: &mut Types,
    findings: &mut Findings,
) {
    let known: Types = definitions.keys().map(|name| (name.clone(), unknown())).collect();
    let missing: BTreeSet<(&String, &str)> = waiting
        .iter()
        .flat_map(|(name, uses)| uses.iter().map(|used| (*name, *used)))
        .filter(|(_, used)| !known.contains_key(*used))
        .collect();
    for (name, used) in missing {
        let finding = Diagnostic::error(path(name), format!("node {used} does not exist"));
        findings.errors.push(Diagnostic { hint: type_hint(used, &known), ..finding });
        types.insert(used.to_owned(), unknown());
    }
}

/// Reports one cycle among the types that wait for each other, and gives the names on it.
fn report_cycle(waiting: &BTreeMap<&String, BTreeSet<&str>>, types: &Types, findings: &mut Findings) -> Vec<String> {
    // Every type that is left waits for one that is left: following them must come back.
    let mut way: Vec<&str> = waiting.keys().take(1).map(|name| name.as_str()).collect();
    let cycle = loop {
        let last = way[way.len() - 1];
        let uses = waiting.iter().find(|(name, _)| name.as_str() == last).map(|(_, uses)| uses);
        let next = uses.and_then(|uses| uses.iter().find(|used| !types.contains_key(**used))).expect("a type that is left waits");
        if let Some(start) = way.iter().position(|name| name == next) {
            break way.split_off(start);
        }
        way.push(next);
    };
    // Named from the first in order, so that the text does not depend on where the search began.
    let first = cycle.iter().enumerate().min_by_key(|(_, name)| **name).map_or(0, |(index, _)| index);
    let names: Vec<&str> = cycle[first..].iter().chain(&cycle[..first]).copied().collect();
    let message = if let [name] = names[..] {
        debug_assert!(waiting.keys().any(|waiting| *waiting == name));
        "self references are not allowed".to_owned()
    } else {
        format!("cyclic dependency in type {}: graph contains a cycle: {} -> {}", names[0], names.join(" -> "), names[0])
    };
    findings.errors.push(Diagnostic::error(path(names[0]), message));
    names.into_iter().map(str::to_owned).collect()
}
