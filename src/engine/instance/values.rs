//! What expressions read: the instance, and the objects of the nodes as they are observed.

use std::{collections::BTreeSet, sync::Arc};

use plinth_api::Object;
use serde_json::Value;

use crate::{
    cel::{Activation, ErrorKind, Evaluated, Expression, Limits, Reads, evaluate_into, written},
    graph::{Graph, Node, Slot},
    schema::Schema,
};

/// Prefixes of keys that are ours and never handed on to children.
const RESERVED: [&str; 3] = ["kro.run/", "internal.kro.run/", "applyset.kubernetes.io/"];

/// The name that the instance has in expressions.
const INSTANCE: &str = "schema";

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
pub(crate) struct Values {
    activation: Activation,
    /// Names of objects that may still come or grow; everything else that is not there never will be.
    growing: Arc<BTreeSet<String>>,
    /// What of the instance and of the nodes is read at all.
    reads: Arc<Reads>,
}

impl Values {
    /// The instance alone: everything but its status, and without the labels and annotations that are ours.
    pub(crate) fn new(graph: &Graph, instance: &Object) -> Self {
        let mut object = graph.reads.project(INSTANCE, instance.as_value());
        if let Value::Object(fields) = &mut object {
            fields.remove("status");
            fields.entry("spec").or_insert_with(|| Value::Object(serde_json::Map::new()));
        }
        for list in ["/metadata/labels", "/metadata/annotations"] {
            if let Some(Value::Object(map)) = object.pointer_mut(list) {
                map.retain(|key, _| !RESERVED.iter().any(|prefix| key.starts_with(prefix)));
            }
        }
        let growing = graph.nodes.iter().map(|node| node.id.clone()).collect();
        let schema = Some(Arc::clone(&graph.instance.schema));
        let activation = Activation::new().with(INSTANCE, object, schema);
        Self { activation, growing: Arc::new(growing), reads: Arc::clone(&graph.reads) }
    }

    /// Sets what a node is: its object, or the list of its objects.
    pub(crate) fn observe(&mut self, node: &Node, value: &Value) {
        self.set(node, self.reads.project(&node.id, value));
    }

    /// Sets what a node is: the list of these.
    pub(crate) fn observe_all(&mut self, node: &Node, objects: &[&Object]) {
        let is_read = self.reads.contains(&node.id);
        self.set(node, Value::Array(objects.iter().filter(|_| is_read).map(|object| object.as_value().clone()).collect()));
    }

    fn set(&mut self, node: &Node, value: Value) {
        let list = |schema: &Arc<Schema>| Schema { items: Some(Arc::clone(schema)), ..Schema::of_type("array") };
        let schema = match &node.schema {
            Some(schema) if node.kind.is_list() => Some(Arc::new(list(schema))),
            schema => schema.clone(),
        };
        self.activation.set(node.id.clone(), value, schema);
    }

    /// The same with one more variable, read by its schema.
    pub(crate) fn with(&self, name: &str, value: impl Into<Arc<Value>>, schema: Option<Arc<Schema>>) -> Self {
        Self { activation: self.activation.clone().with(name, value, schema), ..self.clone() }
    }

    /// The same where what this name stands for may grow if what the expression reads may: an iterator over other nodes.
    pub(crate) fn growing_with(&self, name: &str, expression: &Expression) -> Self {
        let mut names = BTreeSet::clone(&self.growing);
        if expression.references().identifiers.keys().any(|read| self.growing.contains(read)) {
            names.insert(name.to_owned());
        }
        Self { growing: Arc::new(names), ..self.clone() }
    }

    /// Only one object, read as it is (kro.md section 4: `readyWhen` runs on the raw object).
    pub(crate) fn only(name: &str, value: Value) -> Self {
        let activation = Activation::new().with(name, value, None);
        Self { activation, growing: Arc::new(BTreeSet::from([name.to_owned()])), reads: Arc::default() }
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
        evaluate_into(expression, &self.activation, &Limits::default(), field).map_err(|error| match error.kind {
            ErrorKind::Pending { path } => self.pending(expression, path, &error.message),
            ErrorKind::Failed | ErrorKind::LimitExceeded => {
                Trouble::Failed(format!("failed to evaluate expression: eval {:?}: {}", expression.source(), error.message))
            }
        })
    }

    /// What the author left out of the instance never comes by waiting; what another object lacks may.
    fn pending(&self, expression: &Expression, path: String, message: &str) -> Trouble {
        let path = whole(expression, path);
        let root = path.split(['.', '[', '?']).next().unwrap_or_default();
        let mut read = expression.references().identifiers.keys().filter(|name| self.growing.contains(*name));
        let node = if self.growing.contains(root) { Some(root) } else { read.next().map(String::as_str) };
        if let Some(node) = node.filter(|_| root != "schema") {
            return Trouble::Pending { node: node.to_owned(), path };
        }
        let source = expression.source();
        if expression.references().identifiers.is_empty() {
            return Trouble::Failed(format!("failed to evaluate expression: eval {source:?}: {message}"));
        }
        if !self.activation.contains(root) {
            return Trouble::Absent(format!("the instance does not set what {source:?} needs ({message})"));
        }
        let field = path.strip_prefix("schema.").unwrap_or(&path);
        Trouble::Absent(format!("the instance does not set {field}, which {source:?} needs ({message})"))
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

/// The whole path that the expression reads, where only its beginning is known to be missing.
fn whole(expression: &Expression, path: String) -> String {
    let longer = |full: &String| full.strip_prefix(path.as_str()).is_some_and(|rest| rest.starts_with(['.', '[']));
    let mut paths = expression.references().paths.iter().map(|path| written(path));
    paths.find(longer).unwrap_or(path)
}
