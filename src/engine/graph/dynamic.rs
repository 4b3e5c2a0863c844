//! Types until the checker is there: everything is dynamic.

use std::collections::BTreeMap;

use crate::cel::{Expression, Type};

#[derive(Default)]
pub(super) struct Scope(BTreeMap<String, Type>);

impl Scope {
    pub(super) fn new() -> Self {
        Self::default()
    }

    pub(super) fn set(&mut self, name: impl Into<String>, of: Type) {
        self.0.insert(name.into(), of);
    }
}

pub(super) struct CheckError {
    pub(super) offset: usize,
    pub(super) message: String,
    pub(super) hint: Option<String>,
}

/// Checks nothing yet but that every name is known.
pub(super) fn check(expression: &Expression, scope: &Scope) -> Result<Type, Vec<CheckError>> {
    let unknown = expression
        .references()
        .identifiers
        .iter()
        .filter(|(name, _)| !scope.0.contains_key(*name) && !crate::cel::is_type_name(name));
    let errors: Vec<_> = unknown
        .map(|(name, offset)| CheckError { offset: *offset, message: format!("undeclared reference to '{name}'"), hint: None })
        .collect();
    if errors.is_empty() { Ok(Type::Dyn) } else { Err(errors) }
}
