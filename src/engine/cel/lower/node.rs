//! Nodes of the tree.

use cel::{
    IdedExpr,
    common::ast::{CallExpr, Expr, LiteralValue},
};

pub(super) fn node(id: u64, expr: Expr) -> IdedExpr {
    IdedExpr { id, expr }
}

pub(super) fn call(id: u64, function: &str, args: Vec<IdedExpr>) -> IdedExpr {
    node(id, Expr::Call(CallExpr { func_name: function.to_owned(), target: None, args }))
}

pub(super) fn ident(id: u64, name: &str) -> IdedExpr {
    node(id, Expr::Ident(name.to_owned()))
}

pub(super) fn boolean(id: u64, value: bool) -> IdedExpr {
    node(id, Expr::Literal(LiteralValue::Boolean(value.into())))
}

pub(super) fn integer(id: u64, value: i64) -> IdedExpr {
    node(id, Expr::Literal(LiteralValue::Int(value.into())))
}

pub(super) fn text(id: u64, value: &str) -> IdedExpr {
    node(id, Expr::Literal(LiteralValue::String(value.to_owned().into())))
}
