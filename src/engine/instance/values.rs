//! What expressions read: the instance, and the objects of the nodes as they are observed.

use std::sync::Arc;

use plinth_api::Object;
use serde_json::Value;

use crate::{
    cel::{Activation, ErrorKind, Evaluated, Expression, Limits, evaluate_into},
    graph::{Graph, Node, Slot},
    schema::Schema,
};

/// Prefixes of keys that are ours and never handed on to children.
const RESERVED: [&str; 3] = ["kro.run/", "internal.kro.run/", "applyset.kubernetes.io/"];

/// Why an expression has no value.
#[derive(Clone, Debug, PartialEq, Eq)]
pub(crate) enum Trouble {
    /// A field that another object will have.
    Pending {
        /// The node that should have it.
        node: String,
        /// The whole path.
        path: String,
    },
    /// A field of the instance that its author did not set: it never comes by waiting.
    Absent(String),
    /// Waiting does not help.
    Failed(String),
}

/// The variables of a pass.
#[derive(Clone)]
pub(crate) struct Values(Activation);

impl Values {
    /// The instance alone: everything but its status, and without the labels and annotations that are ours.
    pub(crate) fn new(graph: &Graph, instance: &Object) -> Self {
        let mut object = instance.clone();
        object.0.remove("status");
        for list in ["labels", "annotations"] {
            if let Some(Value::Object(map)) = object.metadata_mut().get_mut(list) {
                map.retain(|key, _| !RESERVED.iter().any(|prefix| key.starts_with(prefix)));
            }
        }
        object.0.entry("spec").or_insert_with(|| Value::Object(serde_json::Map::new()));
        Self(Activation::new().with("schema", object.into_value(), Some(Arc::clone(&graph.instance.schema))))
    }

    /// Sets what a node is: its object, or the list of its objects.
    pub(crate) fn observe(&mut self, node: &Node, value: Value) {
        let list = |schema: &Arc<Schema>| Schema { items: Some(Arc::clone(schema)), ..Schema::of_type("array") };
        let schema = match &node.schema {
            Some(schema) if node.kind.is_list() => Some(Arc::new(list(schema))),
            schema => schema.clone(),
        };
        self.0.set(node.id.clone(), value, schema);
    }

    /// The same with one more variable.
    pub(crate) fn with(&self, name: &str, value: Value) -> Self {
        Self(self.0.clone().with(name, value, None))
    }

    /// Only one object, read as it is (kro.md section 4: `readyWhen` runs on the raw object).
    pub(crate) fn only(name: &str, value: Value) -> Self {
        Self(Activation::new().with(name, value, None))
    }

    /// The value of an expression.
    pub(crate) fn evaluate(&self, expression: &Expression) -> Result<Evaluated, Trouble> {
        self.evaluate_for(expression, None)
    }

    /// The value of a template's expression, in the form that its field has.
    pub(crate) fn fill(&self, slot: &Slot) -> Result<Evaluated, Trouble> {
        self.evaluate_for(&slot.expression, slot.schema.as_deref())
    }

    fn evaluate_for(&self, expression: &Expression, field: Option<&Schema>) -> Result<Evaluated, Trouble> {
        evaluate_into(expression, &self.0, &Limits::default(), field).map_err(|error| match error.kind {
            ErrorKind::Pending { path } => pending(expression, path, &error.message),
            ErrorKind::Failed | ErrorKind::LimitExceeded => {
                Trouble::Failed(format!("failed to evaluate expression: eval {:?}: {}", expression.source(), error.message))
            }
        })
    }

    /// Whether all conditions hold; `Err` carries the first that cannot be told, `Ok(Some)` the first that does not hold.
    pub(crate) fn all<'c>(&self, conditions: &'c [crate::graph::Condition]) -> Result<Option<&'c str>, (Trouble, &'c str)> {
        for condition in conditions {
            let source = condition.expression.source();
            match self.evaluate(&condition.expression).map_err(|trouble| (trouble, source))? {
                Evaluated::Value(Value::Bool(true)) => {}
                _ => return Ok(Some(source)),
            }
        }
        Ok(None)
    }
}

/// What the author left out of the instance never comes by waiting; what another object lacks may.
fn pending(expression: &Expression, path: String, message: &str) -> Trouble {
    let root = path.split(['.', '[', '?']).next().unwrap_or_default();
    let identifiers = &expression.references().identifiers;
    let known = if identifiers.contains_key(root) {
        Some(root)
    } else {
        identifiers.keys().map(String::as_str).find(|id| *id != "schema")
    };
    match known {
        Some("schema") | None => {
            let field = path.strip_prefix("schema.").unwrap_or(&path);
            Trouble::Absent(format!("the instance does not set {field}, which {:?} needs ({message})", expression.source()))
        }
        Some(node) => Trouble::Pending { node: node.to_owned(), path },
    }
}
