//! Which variables there are, and their types.

use std::{collections::BTreeMap, sync::Arc};

use crate::cel::types::Type;

/// Types of variables by name.
#[derive(Clone, Debug, Default, PartialEq, Eq)]
pub struct Scope {
    variables: BTreeMap<String, Type>,
    /// Variables that many scopes have; own ones hide them.
    shared: Option<Arc<Scope>>,
    /// Whether numbers of two types can be ordered.
    mixed: bool,
    /// Whether somebody else tells of names and functions that do not exist.
    told: bool,
}

impl Scope {
    /// No variables.
    pub fn new() -> Self {
        Self::default()
    }

    /// All variables of another scope, without copying them.
    pub fn over(shared: Arc<Self>) -> Self {
        let (mixed, told) = (shared.mixed, shared.told);
        Self { variables: BTreeMap::new(), shared: Some(shared), mixed, told }
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

    /// The same where `1 < 1.5` is accepted, as in rules of Kubernetes. kro refuses it where both types are known.
    #[must_use]
    pub fn with_mixed_numbers(mut self) -> Self {
        self.mixed = true;
        self
    }

    /// The same where [`References`](crate::cel::References) are looked at besides: free names and functions that do not exist
    /// are no mistake here, but `dyn`, so that other mistakes of the expression are still found.
    #[must_use]
    pub fn with_unknown_told(mut self) -> Self {
        self.told = true;
        self
    }

    pub(super) fn is_told(&self) -> bool {
        self.told
    }

    pub(super) fn orders_mixed_numbers(&self) -> bool {
        self.mixed
    }

    /// The type of a variable.
    pub fn get(&self, name: &str) -> Option<&Type> {
        self.variables.get(name).or_else(|| self.shared.as_ref()?.get(name))
    }

    /// Names, own ones first, each part in order.
    pub fn names(&self) -> impl Iterator<Item = &str> {
        let shared = self.shared.as_ref().map(|shared| shared.variables.keys());
        self.variables.keys().chain(shared.into_iter().flatten()).map(String::as_str)
    }
}
