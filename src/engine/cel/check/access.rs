//! Fields.

use cel::{
    IdedExpr,
    common::ast::{Expr, SelectExpr},
};

use super::{Checker, suggest};
use crate::cel::{
    environment::type_of_name,
    escape::unescape,
    references::qualified,
    types::{Structure, Type},
};

impl Checker<'_> {
    pub(super) fn select(&mut self, expr: &IdedExpr, select: &SelectExpr) -> Type {
        if let Some(of) = self.type_name(&select.operand, &select.field) {
            return of;
        }
        let operand = self.expr(&select.operand);
        self.field(expr.id, &operand, &select.field)
    }

    /// `google.protobuf.Timestamp` and the like, where the root is no variable.
    fn type_name(&self, operand: &IdedExpr, field: &str) -> Option<Type> {
        let name = qualified(operand, field)?;
        let root = name.split('.').next()?;
        let of = type_of_name(&name)?;
        self.variable(root).is_none().then(|| Type::Type(Box::new(of)))
    }

    /// The type of a field; of an optional value it is optional.
    pub(super) fn field(&mut self, id: u64, operand: &Type, name: &str) -> Type {
        match self.unifier.settled(operand) {
            Type::Dyn => Type::Dyn,
            Type::Map(_, value) => *value,
            Type::Struct(structure) => self.field_of(id, &structure, name),
            Type::Optional(inner) => match self.field(id, &inner, name) {
                Type::Optional(value) => Type::Optional(value),
                value => Type::optional(value),
            },
            other => self.error(id, format!("type '{other}' does not support field selection"), None),
        }
    }

    fn field_of(&mut self, id: u64, structure: &Structure, name: &str) -> Type {
        // A word that CEL keeps for itself may be written with Kubernetes' escape or, after a dot, plainly.
        if let Some(of) = structure.fields().get(name).or_else(|| structure.fields().get(&unescape(name))) {
            return of.clone();
        }
        if structure.open {
            return Type::Dyn;
        }
        let hint = suggest::closest(name, structure.fields().keys().map(String::as_str));
        self.error(id, format!("undefined field '{name}'"), hint)
    }

    /// `has(a.b)`: `a` must have a field `b`.
    pub(super) fn has(&mut self, argument: &IdedExpr) -> Type {
        if let Expr::Select(_) = &argument.expr {
            self.expr(argument);
        }
        Type::Bool
    }
}
