//! Which variables there are, and their types.

use std::collections::BTreeMap;

use crate::cel::types::Type;

/// Types of variables by name.
#[derive(Clone, Debug, Default, PartialEq, Eq)]
pub struct Scope {
    variables: BTreeMap<String, Type>,
}

impl Scope {
    /// No variables.
    pub fn new() -> Self {
        Self::default()
    }

    /// Sets the type of a variable.
    pub fn set(&mut self, name: impl Into<String>, of: Type) {
        self.variables.insert(name.into(), of);
    }

    /// The same variables and one more.
    #[must_use]
    pub fn with(mut self, name: impl Into<String>, of: Type) -> Self {
        self.set(name, of);
        self
    }

    /// The type of a variable.
    pub fn get(&self, name: &str) -> Option<&Type> {
        self.variables.get(name)
    }

    /// Names in order.
    pub fn names(&self) -> impl Iterator<Item = &str> {
        self.variables.keys().map(String::as_str)
    }
}
