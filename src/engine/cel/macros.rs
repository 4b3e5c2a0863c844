//! The macros: which calls they are, and the variables they bind.

use cel::{
    IdedExpr,
    common::ast::{CallExpr, Expr, LiteralValue},
};

use super::environment::Environment;

/// A call that is rewritten rather than called.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(super) enum Macro {
    /// `has(a.b)`
    Has,
    /// `range.all(v, p)`; with two variables `range.all(k, v, p)`.
    All,
    /// `range.exists(v, p)`
    Exists,
    /// `range.exists_one(v, p)`, also `existsOne`.
    ExistsOne,
    /// `range.map(v, e)`, `range.map(v, p, e)`
    Map,
    /// `range.filter(v, p)`
    Filter,
    /// `range.transformList(k, v, e)`, with a filter as third of four.
    TransformList,
    /// `range.transformMap(k, v, e)`
    TransformMap,
    /// `range.transformMapEntry(k, v, {k: v})`
    TransformMapEntry,
    /// `range.sortBy(v, key)`
    SortBy,
    /// `optional.optMap(v, e)`
    OptMap,
    /// `optional.optFlatMap(v, e)`
    OptFlatMap,
    /// `cel.bind(v, value, e)`
    Bind,
    /// `runtime.newCondition({type: …})`: keys are bare words.
    NewCondition,
}

impl Macro {
    /// How macros are written, those in the library `cel` with their full name.
    pub(super) const NAMES: [&'static str; 14] = [
        "has",
        "all",
        "exists",
        "exists_one",
        "existsOne",
        "map",
        "filter",
        "transformList",
        "transformMap",
        "transformMapEntry",
        "sortBy",
        "optMap",
        "optFlatMap",
        "cel.bind",
    ];

    /// The macro that a call is, by name, number of arguments and whether it has a target.
    pub(super) fn of(call: &CallExpr) -> Option<Self> {
        let name = call.func_name.as_str();
        let Some(target) = call.target.as_deref() else {
            return (name == "has" && call.args.len() == 1).then_some(Self::Has);
        };
        let on_cel = matches!(&target.expr, Expr::Ident(root) if root == "cel");
        match (name, call.args.len()) {
            ("bind", 3) if on_cel => Some(Self::Bind),
            ("all", 2 | 3) => Some(Self::All),
            ("exists", 2 | 3) => Some(Self::Exists),
            ("exists_one" | "existsOne", 2 | 3) => Some(Self::ExistsOne),
            ("map", 2 | 3) => Some(Self::Map),
            ("filter", 2) => Some(Self::Filter),
            ("transformList", 3 | 4) => Some(Self::TransformList),
            ("transformMap", 3 | 4) => Some(Self::TransformMap),
            ("transformMapEntry", 3 | 4) => Some(Self::TransformMapEntry),
            ("sortBy", 2) => Some(Self::SortBy),
            ("optMap", 2) => Some(Self::OptMap),
            ("optFlatMap", 2) => Some(Self::OptFlatMap),
            ("newCondition", 1) => Some(Self::NewCondition),
            _ => None,
        }
    }

    /// The variable of a call that is probably a misspelt macro, such as `list.exits(x, x > 1)`.
    pub(super) fn misspelt<'c>(call: &'c CallExpr, environment: &Environment) -> Option<&'c str> {
        let is_long = call.target.is_some() && call.args.len() > 1;
        let meant = environment.meant(&call.func_name).filter(|_| is_long)?;
        Self::NAMES.contains(&meant).then(|| simple_name(&call.args[0]))?
    }

    /// Whether the call's target is a value; `cel` in `cel.bind` is a namespace.
    pub(super) fn has_range(self) -> bool {
        self != Self::Bind
    }

    /// How many of the first arguments are variables.
    pub(super) fn variable_count(self, call: &CallExpr) -> usize {
        match (self, call.args.len()) {
            (Self::Has | Self::NewCondition, _) => 0,
            (Self::All | Self::Exists | Self::ExistsOne, 3)
            | (Self::TransformList | Self::TransformMap | Self::TransformMapEntry, _) => 2,
            _ => 1,
        }
    }

    /// The names of the variables; an argument that is no simple name is left out (lowering refuses it).
    pub(super) fn variables(self, call: &CallExpr) -> Vec<String> {
        call.args[..self.variable_count(call)]
            .iter()
            .map(|argument| simple_name(argument).unwrap_or_default().to_owned())
            .collect()
    }
}

/// The text that an expression is, where it is a literal one.
pub(super) fn literal_text(expr: &IdedExpr) -> Option<&str> {
    match &expr.expr {
        Expr::Literal(LiteralValue::String(text)) => Some(text.inner()),
        _ => None,
    }
}

/// The name that an expression is, where it is nothing else.
pub(super) fn simple_name(expr: &IdedExpr) -> Option<&str> {
    match &expr.expr {
        Expr::Ident(name) if !name.starts_with('.') => Some(name),
        _ => None,
    }
}
