//! What an expression refers to: the edges of a graph are read off here.

use std::collections::{BTreeMap, BTreeSet};

use cel::{
    IdedExpr,
    common::ast::{CallExpr, EntryExpr, Expr, LiteralValue, operators},
};

use super::{conditions::ConditionUse, environment::Environment, macros::Macro};

/// Free variables and functions of an expression. Variables of macros (`items.map(i, i.x)`: `i`) are not free.
#[derive(Clone, Debug, Default, PartialEq, Eq)]
pub struct References {
    /// Roots of free variables, in order, with the character offset of the first use. A bare type name such as `string` is
    /// among them, since a node may be called so; see [`is_type_name`](super::is_type_name).
    pub identifiers: BTreeMap<String, usize>,
    /// Known functions by their full name: `size`, `json.marshal`.
    pub functions: BTreeSet<String>,
    /// Functions that do not exist, those of libraries by their full name, with the character offset of the first use.
    pub unknown_functions: BTreeMap<String, usize>,
    /// Fields that are read: root first, then a segment for each field or literal index (`[0]`).
    pub paths: BTreeSet<Vec<String>>,
    /// Conditions that it makes or reads, in order.
    pub conditions: Vec<ConditionUse>,
}

impl References {
    pub(super) fn of(tree: &IdedExpr, environment: &Environment, offset: &dyn Fn(u64) -> usize) -> Self {
        let mut walk = Walk { environment, offset, bound: Vec::new(), found: Self::default() };
        walk.expr(tree);
        walk.found
    }
}

/// A path of [`References::paths`], or a part of one, as it is written in an expression.
pub fn written(path: &[String]) -> String {
    path.join(".").replace(".[", "[")
}

struct Walk<'a> {
    environment: &'a Environment,
    offset: &'a dyn Fn(u64) -> usize,
    bound: Vec<String>,
    found: References,
}

impl Walk<'_> {
    fn expr(&mut self, expr: &IdedExpr) {
        if let Some(path) = path_of(expr) {
            self.path(path);
            return;
        }
        match &expr.expr {
            Expr::Call(call) => self.call(expr.id, call),
            Expr::Select(select) => self.expr(&select.operand),
            Expr::List(list) => list.elements.iter().for_each(|element| self.expr(element)),
            Expr::Map(map) => map.entries.iter().for_each(|entry| self.entry(&entry.expr)),
            Expr::Struct(structure) => structure.entries.iter().for_each(|entry| self.entry(&entry.expr)),
            Expr::Ident(_) | Expr::Literal(_) | Expr::Comprehension(_) | Expr::Unspecified => {}
        }
    }

    fn entry(&mut self, entry: &EntryExpr) {
        match entry {
            EntryExpr::MapEntry(entry) => {
                self.expr(&entry.key);
                self.expr(&entry.value);
            }
            EntryExpr::StructField(field) => self.expr(&field.value),
        }
    }

    fn path(&mut self, (root, path): (u64, Vec<String>)) {
        if self.bound.contains(&path[0]) {
            return;
        }
        let offset = (self.offset)(root);
        self.found.identifiers.entry(path[0].clone()).or_insert(offset);
        self.found.paths.insert(path);
    }

    fn call(&mut self, id: u64, call: &CallExpr) {
        self.found.conditions.extend(ConditionUse::of(call));
        if let Some(found) = Macro::of(call) {
            return self.expansion(found, call);
        }
        let qualified = call.target.as_deref().and_then(|target| qualified(target, &call.func_name));
        if let Some(name) = qualified.filter(|name| self.environment.has_function(name)) {
            self.found.functions.insert(name);
        } else if let Some(full) = self.misspelt_in_library(call) {
            let offset = (self.offset)(id);
            self.found.unknown_functions.entry(full).or_insert(offset);
        } else {
            self.function(id, &call.func_name);
            self.target(call);
        }
        let is_unknown = !self.environment.has_function(&call.func_name);
        let variable = if is_unknown { Macro::misspelt(call, self.environment) } else { None };
        self.bound.extend(variable.map(str::to_owned));
        for argument in &call.args {
            self.expr(argument);
        }
        self.bound.truncate(self.bound.len() - usize::from(variable.is_some()));
    }

    fn misspelt_in_library(&self, call: &CallExpr) -> Option<String> {
        let full = unknown_of_library(self.environment, call.target.as_deref()?, &call.func_name)?;
        (!self.bound.iter().any(|bound| bound == root(&full))).then_some(full)
    }

    fn target(&mut self, call: &CallExpr) {
        if let Some(target) = &call.target {
            self.expr(target);
        }
    }

    fn function(&mut self, id: u64, name: &str) {
        if self.environment.has_function(name) {
            // Operators are functions of the language, but not what a reader calls one.
            if name.starts_with(char::is_alphabetic) {
                self.found.functions.insert(name.to_owned());
            }
        } else {
            let offset = (self.offset)(id);
            self.found.unknown_functions.entry(name.to_owned()).or_insert(offset);
        }
    }

    fn expansion(&mut self, found: Macro, call: &CallExpr) {
        if found.has_range() {
            self.target(call);
        }
        let variables = found.variables(call);
        let count = variables.len();
        // `cel.bind(v, value, body)`: the value does not see `v`.
        let (outside, inside) = call.args[count..].split_at(usize::from(found == Macro::Bind));
        for argument in outside {
            self.expr(argument);
        }
        self.bound.extend(variables);
        for argument in inside {
            if found == Macro::NewCondition { self.values(argument) } else { self.expr(argument) }
        }
        self.bound.truncate(self.bound.len() - count);
    }

    /// What the values of a map read; its bare keys are no variables.
    fn values(&mut self, argument: &IdedExpr) {
        let Expr::Map(map) = &argument.expr else { return self.expr(argument) };
        for entry in &map.entries {
            match &entry.expr {
                EntryExpr::MapEntry(entry) => self.expr(&entry.value),
                EntryExpr::StructField(_) => self.entry(&entry.expr),
            }
        }
    }
}

/// `a.b.f` for a target `a.b`, where the target is a plain name.
pub(super) fn qualified(target: &IdedExpr, function: &str) -> Option<String> {
    match &target.expr {
        Expr::Ident(name) => Some(format!("{name}.{function}")),
        Expr::Select(select) if !select.test => qualified(&select.operand, &format!("{}.{function}", select.field)),
        _ => None,
    }
}

/// The full name of a function that a library does not have, such as `json.marshall`. A word that all values have as a function is
/// one of a variable that is called like a library.
pub(super) fn unknown_of_library(environment: &Environment, target: &IdedExpr, function: &str) -> Option<String> {
    let full = qualified(target, function)?;
    let is_unknown = !environment.has_function(&full) && !environment.has_function(function);
    (is_unknown && environment.is_in_library(&full)).then_some(full)
}

/// The first word of a full name.
pub(super) fn root(full: &str) -> &str {
    full.split('.').next().unwrap_or(full)
}

/// The number of the root's node, and the path, of a chain of selections and literal indexes.
fn path_of(expr: &IdedExpr) -> Option<(u64, Vec<String>)> {
    let (operand, segment) = match &expr.expr {
        Expr::Ident(name) => return Some((expr.id, vec![name.trim_start_matches('.').to_owned()])),
        Expr::Select(select) => (&*select.operand, select.field.clone()),
        Expr::Call(call) if is_access(call) => (call.args.first()?, literal_key(call.args.get(1)?)?),
        _ => return None,
    };
    let (root, mut path) = path_of(operand)?;
    path.push(segment);
    Some((root, path))
}

fn is_access(call: &CallExpr) -> bool {
    matches!(call.func_name.as_str(), operators::INDEX | operators::OPT_INDEX | operators::OPT_SELECT)
}

fn literal_key(key: &IdedExpr) -> Option<String> {
    match &key.expr {
        Expr::Literal(LiteralValue::String(name)) => Some(name.inner().to_owned()),
        Expr::Literal(LiteralValue::Int(index)) => Some(format!("[{}]", index.inner())),
        _ => None,
    }
}
