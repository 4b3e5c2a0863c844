//! What an instance becomes as far as it is known without a cluster.

use plinth_api::Object;
use serde_json::Value;

use super::node::{Graph, Node, NodeKind};
use crate::{
    cel::Evaluated,
    instance::{Trouble, Values, expand},
    schema::{Segment, apply_defaults},
    template::{path_text, remove, set},
};

/// One object of a rendered graph.
#[derive(Clone, Debug, PartialEq)]
pub struct Rendered {
    /// The node's id.
    pub node: String,
    /// The object; fields that are not known keep their template text.
    pub object: Object,
    /// Paths whose values are not known before the run, sorted.
    pub unresolved: Vec<String>,
}

/// What an instance becomes, in topological order: nodes that are left out for certain are not in it.
///
/// Defaults of the instance are filled in. A node is read by others as it is rendered, without what is not known.
pub fn render(graph: &Graph, instance: &Object) -> Vec<Rendered> {
    render_with(graph, instance, &[])
}

/// The same with recorded objects: a node whose object is among them is read as recorded.
pub fn render_with(graph: &Graph, instance: &Object, observed: &[Object]) -> Vec<Rendered> {
    let mut whole = instance.clone().into_value();
    apply_defaults(&mut whole, &graph.instance.schema);
    let instance = Object::from_value(whole).unwrap_or_default();
    let mut values = Values::new(graph, &instance);
    let mut rendered = Vec::new();
    let mut skipped: Vec<&str> = Vec::new();
    for node in &graph.nodes {
        if node.dependencies.iter().any(|id| skipped.contains(&id.as_str()))
            || matches!(values.all(&node.include_when), Ok(Some(_)))
        {
            skipped.push(&node.id);
            continue;
        }
        let items = items(graph, node, &values, &instance);
        observe(node, &items, observed, &mut values);
        rendered.extend(items.into_iter().map(|item| item.rendered));
    }
    rendered
}

struct Item {
    rendered: Rendered,
    /// What others read: the object without what is not known.
    known: Value,
}

fn items(graph: &Graph, node: &Node, values: &Values, instance: &Object) -> Vec<Item> {
    if node.kind != NodeKind::Collection {
        return vec![item(node, values, instance)];
    }
    match expand(graph, node, values) {
        Ok(items) => items.iter().map(|values| item(node, values, instance)).collect(),
        Err(_) => vec![item(node, values, instance)],
    }
}

fn item(node: &Node, values: &Values, instance: &Object) -> Item {
    let mut object = node.template.clone();
    let (mut omitted, mut unknown): (Vec<Vec<Segment>>, Vec<Vec<Segment>>) = (Vec::new(), Vec::new());
    for slot in &node.slots {
        match values.fill(slot) {
            Ok(Evaluated::Value(value)) => set(&mut object, &slot.path, value),
            Ok(Evaluated::Omit) => omitted.push(slot.path.clone()),
            Err(Trouble::Pending { .. } | Trouble::Absent(_) | Trouble::Failed(_)) => unknown.push(slot.path.clone()),
        }
    }
    let mut known = object.clone();
    remove(&mut known, omitted.iter().chain(&unknown).cloned().collect());
    remove(&mut object, omitted);
    let mut unresolved: Vec<String> = unknown.iter().map(|path| path_text(path)).collect();
    unresolved.sort();
    let mut object = Object::from_value(object).unwrap_or_default();
    if let (Some(true), None, Some(namespace)) = (node.namespaced, object.namespace(), instance.namespace()) {
        object.metadata_mut().insert("namespace".to_owned(), Value::from(namespace));
        known["metadata"]["namespace"] = Value::from(namespace);
    }
    Item { rendered: Rendered { node: node.id.clone(), object, unresolved }, known }
}

fn observe(node: &Node, items: &[Item], observed: &[Object], values: &mut Values) {
    let same = |object: &Object, recorded: &&Object| {
        recorded.gvk() == object.gvk() && recorded.name() == object.name() && recorded.namespace() == object.namespace()
    };
    let mut list = items.iter().map(|item| match observed.iter().find(|recorded| same(&item.rendered.object, recorded)) {
        Some(recorded) => recorded.clone().into_value(),
        None => item.known.clone(),
    });
    match node.kind {
        NodeKind::Collection => {
            let list = list.collect();
            values.observe(node, Value::Array(list));
        }
        // Which objects a selector finds is not known.
        NodeKind::ExternalSelector => {}
        NodeKind::Template | NodeKind::External => values.observe(node, list.next().unwrap_or_default()),
    }
}

#[cfg(test)]
mod tests {
    use serde_json::json;

    use super::*;
    use crate::{
        graph::tests::seed::texts,
        schema::SchemaMap,
        testing::{core, delivery, graph},
    };

    fn instance() -> Object {
        let spec = json!({"ocmRepoName": "repository", "configData": "x"});
        let metadata = json!({"name": "default", "namespace": "ns"});
        Object::from_value(json!({"apiVersion": "bootstrap.open-control-plane.io/v1alpha1", "kind": "OpenMCPOperator", "metadata": metadata, "spec": spec}))
            .unwrap()
    }

    #[test]
    fn names_and_inputs_are_known_before_the_run() {
        let mut schemas: SchemaMap = core();
        schemas.extend(delivery());
        let graph = graph(&texts()[0], &schemas);
        let rendered = render(&graph, &instance());
        let one = |node: &str| rendered.iter().find(|rendered| rendered.node == node).unwrap();
        assert_eq!(one("component").object.spec()["repositoryRef"]["name"], "repository");
        assert_eq!(one("clusterrolebinding").object.name(), "ns:openmcp-operator");
        assert_eq!(one("component").unresolved, [] as [&str; 0]);
        let pod = "spec.template.spec";
        let expected =
            [format!("{pod}.containers[0].image"), format!("{pod}.imagePullSecrets"), format!("{pod}.initContainers[0].image")];
        assert_eq!(one("deployment").unresolved, expected);
        let args = one("deployment").object.at(&["spec", "template", "spec"]).unwrap()["containers"][0]["args"][1].clone();
        assert_eq!(args, "--environment=main", "defaults are filled in");
        assert_eq!(render(&graph, &instance()), rendered, "rendering is deterministic");
    }

    #[test]
    fn recorded_objects_are_read() {
        let mut schemas: SchemaMap = core();
        schemas.extend(delivery());
        let graph = graph(&texts()[0], &schemas);
        let status = json!({"effectiveOCMConfig": [], "resource": {"access": {"imageReference": "r/i:1"}}});
        let recorded = json!({"apiVersion": "delivery.ocm.software/v1alpha1", "kind": "Resource",
            "metadata": {"name": "openmcp-operator-image", "namespace": "ns"}, "status": status});
        let rendered = render_with(&graph, &instance(), &[Object::from_value(recorded).unwrap()]);
        assert!(rendered.iter().all(|rendered| rendered.unresolved.is_empty()), "{rendered:#?}");
    }
}
