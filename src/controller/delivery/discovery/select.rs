//! Which components and resources of a graph are meant. Pure.
//!
//! Filters look at the whole graph after it was walked: an edge that does not match does not hide what is below it.

use std::{
    collections::{BTreeMap, BTreeSet},
    sync::Arc,
};

use plinth_api::delivery::{DiscoverySpec, Selector as SelectorSpec};
use plinth_engine::cel::{self, Activation, Dialect, ErrorKind, Evaluated, Expression, Limits};
use plinth_releasechannel::{
    ComponentVersion, Descriptor,
    descriptor::{Identity, Label, Reference},
    versions::{Constraint, Version},
};
use serde_json::{Map, Value, json};

use super::super::report::{Failed, Reason};

/// Everything that a root leads to, by name and version.
pub(super) type Graph = BTreeMap<ComponentVersion, Arc<Descriptor>>;

/// Cost of one evaluation: there may be one for each resource of a channel.
pub(super) const LIMITS: Limits = Limits { cost: 100_000 };

/// A selector that asks for something.
#[derive(Debug)]
struct Selector {
    name: &'static str,
    spec: SelectorSpec,
    expression: Option<Expression>,
}

/// The three selectors of a Discovery.
#[derive(Debug)]
pub(super) struct Selectors {
    reference: Option<Selector>,
    component: Option<Selector>,
    resource: Option<Selector>,
}

/// What was selected: components in order of name and version, each with the places of its resources.
pub(super) type Selected = Vec<(Arc<Descriptor>, Vec<usize>)>;

/// Why nothing was selected: the reason of Ready.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(super) enum Empty {
    /// No reference matched.
    NoReferencesMatched,
    /// No component matched.
    NoComponentsMatched,
}

impl Empty {
    /// The word in the condition.
    pub(super) fn as_str(self) -> &'static str {
        match self {
            Self::NoReferencesMatched => "NoReferencesMatched",
            Self::NoComponentsMatched => "NoComponentsMatched",
        }
    }
}

impl Selectors {
    /// Reads the selectors; an empty one is none.
    pub(super) fn read(spec: &DiscoverySpec) -> Result<Self, Failed> {
        Ok(Self {
            reference: selector("referenceSelector", spec.reference_selector.as_ref())?,
            component: selector("componentSelector", spec.component_selector.as_ref())?,
            resource: selector("resourceSelector", spec.resource_selector.as_ref())?,
        })
    }

    /// The one component version that can match at all: the walk ends when it is found. A reference may be met on several ways, so that
    /// one counts only where nothing else is asked of it.
    pub(super) fn only(&self) -> Option<ComponentVersion> {
        let fixed = |selector: &Selector, key: &str| {
            let identity = &selector.spec.match_identity;
            Some(ComponentVersion::new(identity.get(key)?, identity.get("version")?))
        };
        let is_bare = |selector: &&Selector| {
            selector.spec.match_labels.is_empty() && selector.expression.is_none() && selector.spec.match_identity.len() == 2
        };
        let reference = self.reference.as_ref().filter(is_bare).and_then(|selector| fixed(selector, "componentName"));
        let component = if self.reference.is_none() { self.component.as_ref() } else { None };
        reference.or_else(|| fixed(component?, "name"))
    }

    /// Filters the graph. `is_over` says that it takes too long.
    pub(super) fn select(&self, graph: &Graph, is_over: &dyn Fn() -> bool) -> Result<Result<Selected, Empty>, Failed> {
        let mut components: Vec<&Arc<Descriptor>> = graph.values().collect();
        if let Some(selector) = &self.reference {
            let targets = targets(selector, graph, is_over)?;
            components.retain(|found| targets.contains(&ComponentVersion::new(found.name.as_str(), found.version.as_str())));
            if components.is_empty() {
                return Ok(Err(Empty::NoReferencesMatched));
            }
        }
        let mut selected = Selected::new();
        for component in components {
            let identity = [("name", component.name.as_str()), ("version", component.version.as_str())];
            let identity = identity.map(|(key, value)| (key.to_owned(), value.to_owned())).into();
            if matches(self.component.as_ref(), &identity, &component.labels, is_over)? {
                selected.push((Arc::clone(component), self.resources(component, is_over)?));
            }
        }
        Ok(if selected.is_empty() { Err(Empty::NoComponentsMatched) } else { Ok(selected) })
    }

    fn resources(&self, component: &Descriptor, is_over: &dyn Fn() -> bool) -> Result<Vec<usize>, Failed> {
        let mut kept = Vec::new();
        for (index, resource) in component.resources.iter().enumerate() {
            let identity = identity(&resource.identity, &resource.version);
            if matches(self.resource.as_ref(), &identity, &resource.labels, is_over)? {
                kept.push(index);
            }
        }
        Ok(kept)
    }
}

fn targets(selector: &Selector, graph: &Graph, is_over: &dyn Fn() -> bool) -> Result<BTreeSet<ComponentVersion>, Failed> {
    let mut targets = BTreeSet::new();
    for reference in graph.values().flat_map(|component| &component.references) {
        if matches(Some(selector), &of_reference(reference), &reference.labels, is_over)? {
            targets.insert(ComponentVersion::new(reference.component.as_str(), reference.version.as_str()));
        }
    }
    Ok(targets)
}

fn identity(identity: &Identity, version: &str) -> BTreeMap<String, String> {
    let mut map = identity.extra.clone();
    map.insert("name".to_owned(), identity.name.clone());
    map.insert("version".to_owned(), version.to_owned());
    map
}

fn of_reference(reference: &Reference) -> BTreeMap<String, String> {
    let mut map = identity(&reference.identity, &reference.version);
    map.insert("componentName".to_owned(), reference.component.clone());
    map
}

fn selector(name: &'static str, spec: Option<&SelectorSpec>) -> Result<Option<Selector>, Failed> {
    let Some(spec) = spec.filter(|spec| **spec != SelectorSpec::default()) else { return Ok(None) };
    let parsed = (!spec.expression.is_empty()).then(|| Expression::parse_as(&spec.expression, Dialect::Discovery)).transpose();
    let expression = parsed.map_err(|error| Failed::wrong(Reason::SelectorFailed, format!("spec.{name}.expression: {error}")))?;
    Ok(Some(Selector { name, spec: spec.clone(), expression }))
}

fn matches(
    selector: Option<&Selector>,
    identity: &BTreeMap<String, String>,
    labels: &[Label],
    is_over: &dyn Fn() -> bool,
) -> Result<bool, Failed> {
    let Some(selector) = selector else { return Ok(true) };
    let has = |name: &str, value: &String| labels.iter().any(|label| label.name == name && label.value.as_str() == Some(value));
    let fits = selector.spec.match_identity.iter().all(|(key, value)| identity.get(key) == Some(value))
        && selector.spec.match_labels.iter().all(|(name, value)| has(name, value));
    match &selector.expression {
        Some(expression) if fits => holds(selector.name, expression, identity, labels, is_over),
        _ => Ok(fits),
    }
}

/// What is missing makes a condition false; any other error is one of the condition itself.
fn holds(
    name: &str,
    expression: &Expression,
    identity: &BTreeMap<String, String>,
    labels: &[Label],
    is_over: &dyn Fn() -> bool,
) -> Result<bool, Failed> {
    let wrong = |message: &str| Err(Failed::wrong(Reason::SelectorFailed, format!("spec.{name}.expression: {message}")));
    if is_over() {
        return wrong("the selectors take too long");
    }
    let labels: Map<String, Value> = labels.iter().map(|label| (label.name.clone(), label.value.clone())).collect();
    let activation = activation().with("identity", json!(identity), None).with("labels", Value::Object(labels), None);
    match cel::evaluate(expression, &activation, &LIMITS) {
        Ok(Evaluated::Value(Value::Bool(holds))) => Ok(holds),
        Ok(other) => wrong(&format!("it gives {}, not true or false", shown(&other))),
        Err(error) if matches!(error.kind, ErrorKind::Pending { .. }) => Ok(false),
        Err(error) => wrong(&error.message),
    }
}

fn shown(value: &Evaluated) -> &'static str {
    match value {
        Evaluated::Omit | Evaluated::Value(Value::Null) => "nothing",
        Evaluated::Value(Value::String(_)) => "a text",
        Evaluated::Value(Value::Number(_)) => "a number",
        Evaluated::Value(_) => "a structure",
    }
}

/// No variables yet, and versions are compared as everywhere in plinth.
pub(super) fn activation() -> Activation {
    Activation::new().with_version_check(|version, constraint| {
        let constraint = Constraint::parse(constraint).map_err(|error| error.to_string())?;
        let version = Version::parse(version).ok_or_else(|| format!("{version:?} is not a version"))?;
        Ok(constraint.allows(&version))
    })
}
