//! The variables that an expression is evaluated with.

use std::{
    collections::BTreeMap,
    fmt,
    sync::{Arc, OnceLock},
};

use cel::{common::value::CowVal, context::VariableResolver};
use serde_json::Value;

use super::{
    value::{Boxed, from_json},
    versions::VersionCheck,
};
use crate::schema::Schema;

/// Variables by name. A variable is converted when it is first read and then kept, so clones of an activation, which are
/// cheap, share that work.
#[derive(Clone, Debug, Default)]
pub struct Activation {
    variables: BTreeMap<String, Arc<Variable>>,
    version_check: Option<VersionCheck>,
}

struct Variable {
    value: Arc<Value>,
    schema: Option<Arc<Schema>>,
    converted: OnceLock<Boxed>,
}

impl Activation {
    /// No variables.
    pub fn new() -> Self {
        Self::default()
    }

    /// Sets a variable. With a schema, reading follows it: `format: byte` is bytes, `date-time` a timestamp, and so on
    /// (kro.md section 4); without one the JSON is taken as it is.
    pub fn set(&mut self, name: impl Into<String>, value: impl Into<Arc<Value>>, schema: Option<Arc<Schema>>) {
        let variable = Variable { value: value.into(), schema, converted: OnceLock::new() };
        self.variables.insert(name.into(), Arc::new(variable));
    }

    /// The same variables and one more.
    #[must_use]
    pub fn with(mut self, name: impl Into<String>, value: impl Into<Arc<Value>>, schema: Option<Arc<Schema>>) -> Self {
        self.set(name, value, schema);
        self
    }

    /// The same with what `semverCheck` asks.
    #[must_use]
    pub fn with_version_check(mut self, check: VersionCheck) -> Self {
        self.version_check = Some(check);
        self
    }

    pub(super) fn version_check(&self) -> Option<VersionCheck> {
        self.version_check
    }

    /// Sets a variable to a value that JSON cannot hold.
    #[cfg(test)]
    pub(super) fn set_boxed(&mut self, name: &str, value: Boxed) {
        let variable = Variable { value: Arc::default(), schema: None, converted: OnceLock::from(value) };
        self.variables.insert(name.to_owned(), Arc::new(variable));
    }

    /// Removes a variable: what reads it is pending.
    pub fn remove(&mut self, name: &str) {
        self.variables.remove(name);
    }

    /// Whether there is such a variable.
    pub fn contains(&self, name: &str) -> bool {
        self.variables.contains_key(name)
    }

    /// The value of a variable as it was set.
    pub fn get(&self, name: &str) -> Option<&Arc<Value>> {
        self.variables.get(name).map(|variable| &variable.value)
    }
}

impl VariableResolver for Activation {
    fn resolve<'b>(&'b self, variable: &str) -> Option<CowVal<'b, 'b>> {
        let variable = self.variables.get(variable)?;
        let value = variable.converted.get_or_init(|| from_json(&variable.value, variable.schema.as_deref()));
        Some(CowVal::Borrowed(value.as_ref()))
    }
}

impl fmt::Debug for Variable {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        // Values may hold secrets.
        f.debug_struct("Variable").field("schema", &self.schema.is_some()).finish_non_exhaustive()
    }
}
