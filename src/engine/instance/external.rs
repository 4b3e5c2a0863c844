//! Nodes that somebody else makes: found by name or by selector, never written (kro.md section 11).

use plinth_api::{Object, ObjectKey};
use serde_json::{Map, Value};

use super::{
    decision::{Action, NodeState, WaitsFor},
    pass::{Look, Outcome, Pass, readiness},
    resolve::{fill, locate},
};
use crate::{
    graph::{Node, NodeKind, selector_fault},
    ports::Query,
};

impl<'a> Pass<'a> {
    pub(super) fn external(&mut self, node: &'a Node, objects: &mut Vec<ObjectKey>) -> Outcome {
        let mut reference = match fill(node, &self.values) {
            Ok(reference) => reference,
            Err(trouble) => return trouble.into(),
        };
        match node.kind {
            NodeKind::ExternalSelector => self.selected(node, &reference, objects),
            _ => self.named(node, &mut reference, objects),
        }
    }

    fn named(&mut self, node: &'a Node, reference: &mut Object, objects: &mut Vec<ObjectKey>) -> Outcome {
        let key = match locate(node, reference, &self.seen.instance, self.cluster(node)) {
            Ok(key) => key,
            Err(trouble) => return trouble.into(),
        };
        objects.push(key.clone());
        if let Some(outcome) = self.may_get(&key) {
            return outcome;
        }
        match self.look(&key) {
            Look::Unread => Outcome::new(NodeState::Acting),
            Look::Blind(outcome) => outcome,
            Look::Absent => {
                let message = format!("waiting for external reference {:?}: {key} not found", node.id);
                Outcome::waits(NodeState::Pending, WaitsFor::Object(key), message)
            }
            Look::Found(object) => {
                self.values.observe(node, object.as_value());
                readiness(node, &[object])
            }
        }
    }

    fn selected(&mut self, node: &'a Node, reference: &Object, objects: &mut Vec<ObjectKey>) -> Outcome {
        let selector = match selector_text(reference.at(&["metadata", "selector"]).unwrap_or(&Value::Null)) {
            Ok(selector) => selector,
            Err(fault) => return Outcome::failed(format!("failed to convert selector for {}: {fault}", node.id)),
        };
        let namespace = reference.namespace().map(str::to_owned);
        let query = Query { cluster: self.cluster(node).clone(), gvk: node.gvk.clone(), namespace, selector };
        if let Some(outcome) = self.may_list(&query) {
            return outcome;
        }
        self.watch.lists.insert(query.clone());
        let seen = self.seen;
        if let Some(error) = seen.list_failures.get(&query) {
            return self.unreadable(error);
        }
        let Some(found) = seen.lists.get(&query) else {
            self.reads.push(Action::List(query));
            return Outcome::new(NodeState::Acting);
        };
        objects.extend(found.iter().filter_map(|object| object.key(&query.cluster)));
        let found: Vec<&Object> = found.iter().collect();
        self.values.observe_all(node, &found);
        readiness(node, &found)
    }
}

/// A label selector object in Kubernetes' text form; strict, so that a misspelt key never selects everything.
pub(super) fn selector_text(selector: &Value) -> Result<String, String> {
    let fields = selector.as_object().ok_or("it is not an object")?;
    if let Some(unknown) = fields.keys().find(|name| !["matchLabels", "matchExpressions"].contains(&name.as_str())) {
        return Err(format!("json: unknown field {unknown:?}"));
    }
    let none = Map::new();
    let labels = fields.get("matchLabels").filter(|labels| !labels.is_null());
    let labels = labels.map_or(Ok(&none), |labels| labels.as_object().ok_or("matchLabels is not an object"))?;
    let mut parts = Vec::new();
    for (key, value) in labels {
        let value = value.as_str().ok_or_else(|| format!("matchLabels.{key} is not a string"))?;
        parts.push(format!("{key}={value}"));
    }
    for requirement in fields.get("matchExpressions").and_then(Value::as_array).into_iter().flatten() {
        parts.push(requirement_text(requirement)?);
    }
    Ok(parts.join(","))
}

fn requirement_text(requirement: &Value) -> Result<String, String> {
    if let Some((part, fault)) = selector_fault(requirement) {
        return Err(format!("matchExpressions.{part}: {fault}"));
    }
    let text = |name: &str| requirement.get(name).and_then(Value::as_str).ok_or_else(|| format!("{name} is not a string"));
    let (key, operator) = (text("key")?, text("operator")?);
    let values: Vec<&str> =
        requirement.get("values").and_then(Value::as_array).into_iter().flatten().filter_map(Value::as_str).collect();
    Ok(match operator {
        "In" => format!("{key} in ({})", values.join(",")),
        "NotIn" => format!("{key} notin ({})", values.join(",")),
        "Exists" => key.to_owned(),
        _ => format!("!{key}"),
    })
}

#[cfg(test)]
mod tests {
    use serde_json::json;

    use super::*;

    #[test]
    fn selectors_become_text() {
        let selector = json!({"matchLabels": {"app": "x"}, "matchExpressions": [
            {"key": "tier", "operator": "In", "values": ["a", "b"]}, {"key": "old", "operator": "DoesNotExist"}]});
        assert_eq!(selector_text(&selector).unwrap(), "app=x,tier in (a,b),!old");
        assert_eq!(selector_text(&json!({})).unwrap(), "");
        for (selector, fault) in [
            (json!({"matchLabel": {}}), "json: unknown field \"matchLabel\""),
            (json!("x"), "it is not an object"),
            (
                json!({"matchExpressions": [{"key": "a", "operator": "Nope"}]}),
                "matchExpressions.operator: Invalid value: \"Nope\": not a valid selector operator",
            ),
        ] {
            assert_eq!(selector_text(&selector).unwrap_err(), fault);
        }
    }
}
