//! The static checker: the type of an expression, and everything that is wrong with it.
//!
//! It walks the tree as written, so messages speak of the author's `items.filter(i, …)` and not of what that becomes. All
//! errors are collected; a part that is wrong has type `dyn`, so that one mistake is told once. Wording is kro's (kro.md 5).

mod access;
mod alike;
mod call;
mod format;
mod macros;
mod scope;
pub(super) mod suggest;
mod unify;

use cel::{
    IdedExpr,
    common::ast::{EntryExpr, Expr, ListExpr, LiteralValue, MapExpr},
};
use thiserror::Error;

pub use scope::Scope;

use super::{
    environment::{Environment, type_of_name},
    expression::Expression,
    stack,
    types::Type,
};
use unify::Unifier;

/// One mistake in an expression.
#[derive(Clone, Debug, PartialEq, Eq, Error)]
#[error("{message}")]
pub struct CheckError {
    /// Characters before the place.
    pub offset: usize,
    /// kro's words.
    pub message: String,
    /// The next step, where one can be guessed: `did you mean 'replicas'?`.
    pub hint: Option<String>,
}

/// Infers the type of an expression; fails with every mistake, in the order of their places.
pub fn check(expression: &Expression, scope: &Scope) -> Result<Type, Vec<CheckError>> {
    stack::roomy(expression.height(), || infer(expression, scope)).unwrap_or_else(|| {
        let message = "there is no thread to check the expression in".to_owned();
        Err(vec![CheckError { offset: 0, message, hint: None }])
    })
}

fn infer(expression: &Expression, scope: &Scope) -> Result<Type, Vec<CheckError>> {
    let mut checker = Checker {
        expression,
        environment: expression.environment(),
        scope,
        bound: Vec::new(),
        mixed: scope.orders_mixed_numbers(),
        unifier: Unifier::default(),
        errors: Vec::new(),
    };
    let found = checker.expr(expression.tree());
    if checker.errors.is_empty() {
        return Ok(checker.unifier.resolved(&found));
    }
    checker.errors.sort_by_key(|error| error.offset);
    Err(checker.errors)
}

struct Checker<'a> {
    expression: &'a Expression,
    environment: &'static Environment,
    scope: &'a Scope,
    /// Variables of macros, innermost last.
    bound: Vec<(String, Type)>,
    /// Whether numbers of two types can be ordered: with kro from the first macro with a variable on, in the order of the text.
    mixed: bool,
    unifier: Unifier,
    errors: Vec<CheckError>,
}

impl Checker<'_> {
    fn expr(&mut self, expr: &IdedExpr) -> Type {
        match &expr.expr {
            Expr::Literal(literal) => of_literal(literal),
            Expr::Ident(name) => self.ident(expr.id, name),
            Expr::Select(select) => self.select(expr, select),
            Expr::List(list) => self.list(list),
            Expr::Map(map) => self.map(map),
            Expr::Struct(structure) => self.message(expr.id, &structure.type_name),
            Expr::Call(call) => self.call(expr.id, call),
            Expr::Comprehension(_) | Expr::Unspecified => Type::Dyn,
        }
    }

    fn error(&mut self, id: u64, message: impl Into<String>, hint: Option<String>) -> Type {
        self.errors.push(CheckError { offset: self.expression.offset(id), message: message.into(), hint });
        Type::Dyn
    }

    /// The type of a variable, if there is one of this name.
    fn variable(&self, name: &str) -> Option<Type> {
        let name = name.trim_start_matches('.');
        let bound = self.bound.iter().rev().find(|(bound, _)| bound == name).map(|(_, of)| of);
        bound.or_else(|| self.scope.get(name)).cloned()
    }

    fn ident(&mut self, id: u64, name: &str) -> Type {
        let named = || type_of_name(name).map(|of| Type::Type(Box::new(of)));
        let told = || self.is_told(name).then_some(Type::Dyn);
        self.variable(name).or_else(named).or_else(told).unwrap_or_else(|| self.undeclared(id, name))
    }

    /// Whether somebody else tells that this name or function does not exist.
    fn is_told(&self, name: &str) -> bool {
        let references = self.expression.references();
        let name = name.trim_start_matches('.');
        let is_it = |told: &String| told.strip_suffix(name).is_some_and(|rest| rest.is_empty() || rest.ends_with('.'));
        self.scope.is_told() && (references.identifiers.contains_key(name) || references.unknown_functions.keys().any(is_it))
    }

    fn undeclared(&mut self, id: u64, name: &str) -> Type {
        let known = self.bound.iter().map(|(name, _)| name.as_str()).chain(self.scope.names());
        let hint = suggest::closest(name, known);
        self.error(id, format!("undeclared reference to '{name}' (in container '')"), hint)
    }

    /// `NAME{field: value}`, a message of protobuf: the library of those is not there, nor any other type with fields.
    fn message(&mut self, id: u64, name: &str) -> Type {
        let Some(known) = name.trim_start_matches('.').strip_prefix("google.protobuf.") else {
            let hint = "NAME{…} makes a message of protobuf; a map has no name in front, and its keys are texts".to_owned();
            return self.error(id, format!("undeclared reference to '{name}' (in container '')"), Some(hint));
        };
        let instead = match known {
            "Timestamp" => "timestamp(…) makes a time",
            "Duration" => "duration(…) makes a duration",
            "Struct" | "Value" | "Any" => "a map is written {\"key\": value}",
            "ListValue" => "a list is written [value]",
            _ => "write the value itself",
        };
        self.error(id, format!("messages of protobuf are not supported: {name}"), Some(instead.to_owned()))
    }

    fn list(&mut self, list: &ListExpr) -> Type {
        let elements = self.elements_of(list);
        self.list_of(&elements)
    }

    fn elements_of(&mut self, list: &ListExpr) -> Vec<Type> {
        let mut elements = Vec::with_capacity(list.elements.len());
        for (index, part) in list.elements.iter().enumerate() {
            let found = self.expr(part);
            let optional = list.optional_indices.contains(&index);
            elements.push(if optional { self.unwrapped(part.id, &found) } else { found });
        }
        elements
    }

    fn list_of(&mut self, elements: &[Type]) -> Type {
        let mut joined = None;
        for element in elements {
            joined = Some(self.joined(joined, element.clone()));
        }
        Type::list(joined.unwrap_or_else(|| self.unifier.fresh()))
    }

    fn map(&mut self, map: &MapExpr) -> Type {
        let (mut keys, mut values) = (None, None);
        for entry in &map.entries {
            let EntryExpr::MapEntry(entry) = &entry.expr else { continue };
            let key = self.expr(&entry.key);
            keys = Some(self.joined(keys, key));
            let mut value = self.expr(&entry.value);
            if entry.optional {
                value = self.unwrapped(entry.value.id, &value);
            }
            values = Some(self.joined(values, value));
        }
        let (key, value) = (keys.unwrap_or_else(|| self.unifier.fresh()), values.unwrap_or_else(|| self.unifier.fresh()));
        Type::Map(Box::new(key), Box::new(value))
    }

    /// The value of `[?x]` and `{?k: x}`, which must be optional.
    fn unwrapped(&mut self, id: u64, found: &Type) -> Type {
        match self.unifier.shallow(found) {
            Type::Optional(value) => *value,
            Type::Dyn => Type::Dyn,
            other => self.error(id, format!("expected type 'optional_type({other})' but found '{other}'"), None),
        }
    }

    /// The type of elements of which these are two: the more general one, else `dyn`.
    fn joined(&mut self, previous: Option<Type>, next: Type) -> Type {
        let Some(previous) = previous else { return next };
        if self.unifier.assignable(&next, &previous) {
            return unify::most_general(previous, next);
        }
        Type::Dyn
    }
}

fn of_literal(literal: &LiteralValue) -> Type {
    match literal {
        LiteralValue::Boolean(_) => Type::Bool,
        LiteralValue::Bytes(_) => Type::Bytes,
        LiteralValue::Double(_) => Type::Double,
        LiteralValue::Int(_) => Type::Int,
        LiteralValue::Null => Type::Null,
        LiteralValue::String(_) => Type::String,
        LiteralValue::UInt(_) => Type::Uint,
    }
}
