//! Objects that are rendered twice: on the server they are one, and two would fight over it.

use std::collections::HashMap;

use plinth_api::GroupKind;

use super::{
    node::{Graph, Plane},
    rendered::Rendered,
};
use crate::Diagnostic;

/// What tells an object from all others.
type Identity = (Plane, GroupKind, Option<String>, String);

/// What is wrong where `node` wants an object that `other` wants too, or wants it twice itself; kro's words.
pub(crate) fn collision(node: &str, other: &str, object: &str) -> String {
    if node == other {
        format!("node {node:?} identity collision: duplicate identity: {object}")
    } else {
        format!("found resources with conflicts: resourceID: {node} conflicts with resourceID: {other} ({object})")
    }
}

/// Tells of each object that an earlier node, or item, makes as well. What only an example names, or lets be there, may differ in the
/// run.
pub(super) fn tell(graph: &Graph, rendered: &mut [Rendered]) {
    let mut makers: HashMap<Identity, String> = HashMap::new();
    for one in rendered.iter_mut().filter(|one| is_certain(one)) {
        let Some(identity) = identity(graph, one) else { continue };
        let Some(other) = makers.get(&identity) else {
            makers.insert(identity, one.node.clone());
            continue;
        };
        let (_, kind, namespace, name) = &identity;
        let namespace = namespace.as_ref().map(|namespace| format!("{namespace}/")).unwrap_or_default();
        let message = collision(&one.node, other, &format!("{kind}/{namespace}{name}"));
        one.problems.push(Diagnostic::error("metadata.name", message));
    }
}

fn is_certain(rendered: &Rendered) -> bool {
    let examples = rendered.examples.iter().map(|example| &example.path);
    let problems = rendered.problems.iter().map(|problem| &problem.path);
    let open = ["includeWhen", "forEach", "metadata.name", "metadata.namespace"];
    !examples.chain(problems).chain(&rendered.unresolved).any(|path| open.contains(&path.as_str()))
}

fn identity(graph: &Graph, rendered: &Rendered) -> Option<Identity> {
    let node = graph.node(&rendered.node).filter(|node| node.kind.is_owned())?;
    let object = &rendered.object;
    let name = Some(object.name()).filter(|name| !name.is_empty())?;
    Some((node.plane, node.gvk.group_kind(), object.namespace().map(str::to_owned), name.to_owned()))
}

#[cfg(test)]
mod tests {
    use plinth_api::Object;
    use serde_json::json;

    use crate::{
        graph::render_examples,
        testing::{core, graph, rgd},
    };

    fn map(id: &str, more: &str, name: &str) -> String {
        format!("- id: {id}\n{more}  template:\n    apiVersion: v1\n    kind: ConfigMap\n    metadata: {{name: \"{name}\"}}\n")
    }

    fn problems(resources: &str) -> Vec<String> {
        let graph = graph(&rgd("name: string\nall: '[]string'\non: boolean", "", resources), &core());
        let instance = json!({"apiVersion": "kro.run/v1alpha1", "kind": "Test", "metadata": {"name": "one", "namespace": "ns"},
            "spec": {"name": "x", "all": ["a", "b", "a"], "on": true}});
        let rendered = render_examples(&graph, &Object::from_value(instance).unwrap(), &[]);
        rendered.into_iter().flat_map(|one| one.problems).map(|problem| problem.to_string()).collect()
    }

    #[test]
    fn two_nodes_that_make_one_object_are_told() {
        let told = "metadata.name: found resources with conflicts: resourceID: b conflicts with resourceID: a (ConfigMap/ns/x)";
        assert_eq!(problems(&(map("a", "", "${schema.spec.name}") + &map("b", "", "x"))), [told]);
        assert_eq!(problems(&(map("a", "", "x") + &map("b", "", "y"))), [""; 0]);
        assert_eq!(problems(&(map("a", "", "x") + &map("b", "", "x").replace("ConfigMap", "Secret"))), [""; 0]);
    }

    #[test]
    fn two_items_that_are_one_object_are_told() {
        let each = "  forEach: [{x: '${schema.spec.all}'}]\n";
        assert_eq!(
            problems(&map("a", each, "${x}")),
            ["metadata.name: node \"a\" identity collision: duplicate identity: ConfigMap/ns/a"]
        );
    }

    #[test]
    fn what_only_the_run_decides_is_not_told() {
        let service = "- id: s\n  template:\n    apiVersion: v1\n    kind: Service\n    metadata: {name: s}\n";
        let by_address = |id| map(id, "", "a-${s.spec.clusterIP}");
        assert_eq!(problems(&(service.to_owned() + &by_address("a") + &by_address("b"))), [""; 0]);
        let when = |is: &str| format!("  includeWhen: ['${{s.spec.clusterIP {is} \"None\"}}']\n");
        assert_eq!(problems(&(service.to_owned() + &map("a", &when("=="), "x") + &map("b", &when("!="), "x"))), [""; 0]);
        let known = |is: &str| format!("  includeWhen: ['${{schema.spec.on == {is}}}']\n");
        assert_eq!(problems(&(map("a", &known("true"), "x") + &map("b", &known("false"), "x"))), [""; 0]);
    }
}
