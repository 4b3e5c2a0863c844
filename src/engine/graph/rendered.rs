//! What an instance becomes as far as it is known without a cluster.

use std::{
    collections::{BTreeMap, BTreeSet},
    sync::Arc,
};

use plinth_api::Object;
use serde_json::{Value, json};

use super::{
    collisions, example,
    node::{Graph, Node, NodeKind, Slot},
};
use crate::{
    Diagnostic,
    cel::{Evaluated, Expression, written},
    instance::{Trouble, Values, expand},
    schema::{Found, Schema, Segment, apply_defaults, segments},
    template::{path_text, remove, set},
    yaml::is_inside,
};

/// Most examples that one expression may need: each gives it one field more.
const MOST_EXAMPLES: usize = 64;

/// One object of a rendered graph.
#[derive(Clone, Debug, PartialEq)]
pub struct Rendered {
    /// The node's id.
    pub node: String,
    /// The object; fields that are not known keep their template text.
    pub object: Object,
    /// Paths whose values are not known before the run, sorted.
    pub unresolved: Vec<String>,
    /// Fields whose values are, or are made from, examples; in the order of their paths.
    pub examples: Vec<Example>,
    /// What waiting will not mend: inputs that the instance lacks, and expressions that fail. One at `forEach` stands for the whole
    /// collection, whose items cannot be told; the object then is the template.
    pub problems: Vec<Diagnostic>,
}

/// A field with an example in the place of what is not known before the run.
#[derive(Clone, Debug, PartialEq, Eq, PartialOrd, Ord)]
pub struct Example {
    /// Path of the field in the rendered object; `forEach` and `includeWhen` for those of the node.
    pub path: String,
    /// What is not known, as expressions read it: `service.spec.clusterIP`. Empty where it cannot be told.
    pub stands_for: Vec<String>,
}

/// What an instance becomes, in topological order: nodes that are left out for certain are not in it.
///
/// Defaults of the instance are filled in. A node is read by others as it is rendered, without what is not known.
pub fn render(graph: &Graph, instance: &Object) -> Vec<Rendered> {
    render_with(graph, instance, &[])
}

/// The same with recorded objects: a node whose object is among them is read as recorded.
pub fn render_with(graph: &Graph, instance: &Object, observed: &[Object]) -> Vec<Rendered> {
    Renderer::new(graph, instance, observed, false).run()
}

/// The same with example values for what is still not known; [`Rendered::examples`] says which fields they reach.
pub fn render_examples(graph: &Graph, instance: &Object, observed: &[Object]) -> Vec<Rendered> {
    Renderer::new(graph, instance, observed, true).run()
}

struct Renderer<'a> {
    graph: &'a Graph,
    instance: Object,
    recorded: &'a [Object],
    examples: bool,
    values: Values,
    /// What nodes are read as.
    seen: BTreeMap<String, Value>,
    /// Paths that examples stand at, node first.
    invented: BTreeSet<String>,
}

impl<'a> Renderer<'a> {
    fn new(graph: &'a Graph, instance: &Object, recorded: &'a [Object], examples: bool) -> Self {
        let mut whole = instance.clone().into_value();
        apply_defaults(&mut whole, &graph.instance.schema);
        let instance = Object::from_value(whole).unwrap_or_default();
        let values = Values::new(graph, &instance);
        Self { graph, instance, recorded, examples, values, seen: BTreeMap::new(), invented: BTreeSet::new() }
    }

    fn run(mut self) -> Vec<Rendered> {
        let graph = self.graph;
        let mut rendered = Vec::new();
        let mut skipped: Vec<&str> = Vec::new();
        for node in &graph.nodes {
            let follows = node.dependencies.iter().any(|id| skipped.contains(&id.as_str()));
            let Some(doubt) = (if follows { None } else { self.inclusion(node) }) else {
                skipped.push(&node.id);
                continue;
            };
            let mut items = self.items(node);
            items.iter_mut().for_each(|item| item.rendered.examples.extend(doubt.example.clone()));
            if let Some(item) = items.first_mut() {
                item.rendered.problems.extend(doubt.problem);
            }
            self.observe(node, &items);
            rendered.extend(items.into_iter().map(|item| item.rendered));
        }
        collisions::tell(graph, &mut rendered);
        rendered
    }

    /// What is not certain about a node being there; `None` where it is left out for certain. A node that only an example leaves out
    /// is there, as it may be in the run.
    fn inclusion(&mut self, node: &Node) -> Option<Doubt> {
        let mut values = self.values.clone();
        let answer = self.attempt(&mut values, |values| values.all(&node.include_when).map_err(|(trouble, _)| trouble));
        self.values = values;
        let read: Vec<String> = node.include_when.iter().flat_map(|condition| self.examples_in(&condition.expression)).collect();
        match answer {
            Ok(Some(_)) if read.is_empty() => None,
            Ok(_) => Some(Doubt { example: Example::at("includeWhen", read), problem: None }),
            // Where no example could be made, the node is there by way of one.
            Err(Trouble::Pending { path, .. }) => {
                Some(Doubt { example: Example::at("includeWhen", vec![path]).filter(|_| self.examples), problem: None })
            }
            Err(Trouble::Failed(_)) if !read.is_empty() => {
                Some(Doubt { example: Example::at("includeWhen", read), problem: None })
            }
            Err(Trouble::Failed(message) | Trouble::Absent(message)) => {
                Some(Doubt { example: None, problem: Some(Diagnostic::error("includeWhen", message)) })
            }
        }
    }

    fn items(&mut self, node: &Node) -> Vec<Item> {
        if node.kind != NodeKind::Collection {
            return vec![self.item(node, self.values.clone())];
        }
        let (graph, mut values) = (self.graph, self.values.clone());
        let expanded = self.attempt(&mut values, |values| expand(graph, node, values));
        self.values = values;
        let read: Vec<String> = node.for_each.iter().flat_map(|dimension| self.examples_in(&dimension.expression)).collect();
        let mut items: Vec<Item> = match expanded {
            Ok(items) => items.into_iter().map(|values| self.item(node, values)).collect(),
            Err(Trouble::Failed(message) | Trouble::Absent(message)) if read.is_empty() => {
                return vec![unexpanded(node, message, self.instance.namespace())];
            }
            // An item of which not even the iterators are known.
            Err(_) => {
                let growing = node
                    .for_each
                    .iter()
                    .fold(self.values.clone(), |values, dimension| values.growing_with(&dimension.name, &dimension.expression));
                vec![self.item(node, growing)]
            }
        };
        if let Some(example) = Example::at("forEach", read) {
            items.iter_mut().for_each(|item| item.rendered.examples.insert(0, example.clone()));
        }
        items
    }

    fn item(&mut self, node: &Node, mut values: Values) -> Item {
        self.catch_up(&mut values);
        let mut filling = Filling { object: node.template.clone(), ..Filling::default() };
        for slot in &node.slots {
            match self.attempt(&mut values, |values| values.fill(slot)) {
                Ok(Evaluated::Value(value)) => {
                    set(&mut filling.object, &slot.path, value);
                    filling.examples.extend(Example::at(&path_text(&slot.path), self.examples_in(&slot.expression)));
                }
                Ok(Evaluated::Omit) => filling.omitted.push(slot.path.clone()),
                Err(trouble) => self.without_value(slot, trouble, &mut filling),
            }
        }
        filling.item(node, self.instance.namespace())
    }

    /// A slot whose expression has no value, whatever examples it was given.
    fn without_value(&self, slot: &Slot, trouble: Trouble, filling: &mut Filling) {
        let path = path_text(&slot.path);
        let read = self.examples_in(&slot.expression);
        let stands_for = match trouble {
            Trouble::Pending { path, .. } => vec![path],
            // What the examples were no good for is no mistake of the author's.
            Trouble::Failed(_) if !read.is_empty() => read,
            Trouble::Failed(message) | Trouble::Absent(message) => {
                filling.problems.push(Diagnostic::error(path, message));
                filling.unknown.push(slot.path.clone());
                return;
            }
        };
        if self.examples {
            let field = slot.path.iter().rev().find_map(Segment::name).unwrap_or_default();
            set(&mut filling.object, &slot.path, example::of(slot.schema.as_deref(), field));
            filling.examples.push(Example { path, stands_for });
        } else {
            filling.unknown.push(slot.path.clone());
        }
    }

    /// Does the work, with one more example each time that something is not known.
    fn attempt<T>(&mut self, values: &mut Values, work: impl Fn(&Values) -> Result<T, Trouble>) -> Result<T, Trouble> {
        for _ in 0..MOST_EXAMPLES {
            match work(values) {
                Err(Trouble::Pending { node, path }) if self.examples && self.invent(&node, &path) => self.catch_up(values),
                answer => return answer,
            }
        }
        work(values)
    }

    /// Puts an example where a node lacks a field; whether that was possible.
    fn invent(&mut self, id: &str, path: &str) -> bool {
        let Some(node) = self.graph.node(id) else { return false };
        let Some(inside) = segments(path).filter(|path| path.first().and_then(Segment::name) == Some(id)) else { return false };
        let schema = match (&node.schema, node.kind.is_list()) {
            (Some(schema), true) => Some(Arc::new(Schema { items: Some(Arc::clone(schema)), ..Schema::of_type("array") })),
            (schema, _) => schema.clone(),
        };
        let found = match schema.map(|schema| schema.at(&inside[1..])) {
            Some(Found::Schema(schema)) => Some(schema),
            _ => None,
        };
        let field = inside.iter().rev().find_map(Segment::name).unwrap_or_default();
        let seen = self.seen.entry(id.to_owned()).or_default();
        let is_new = example::put(seen, &inside[1..], example::of(found.as_deref(), field));
        if is_new {
            self.invented.insert(path.to_owned());
        }
        is_new
    }

    /// Tells an item's variables what was invented since they were made.
    fn catch_up(&self, values: &mut Values) {
        for node in &self.graph.nodes {
            let is_invented = |path: &String| is_inside(path, &node.id);
            if let Some(seen) = self.seen.get(&node.id).filter(|_| self.invented.iter().any(is_invented)) {
                values.observe(node, seen);
            }
        }
    }

    /// The examples that an expression reads.
    fn examples_in(&self, expression: &Expression) -> Vec<String> {
        if self.invented.is_empty() {
            return Vec::new();
        }
        let read: Vec<String> = expression.references().paths.iter().map(|path| written(path)).collect();
        let is_read = |invented: &&String| read.iter().any(|read| is_inside(read, invented) || is_inside(invented, read));
        self.invented.iter().filter(is_read).cloned().collect()
    }

    /// From now on others read the node as recorded, else as rendered.
    fn observe(&mut self, node: &Node, items: &[Item]) {
        let value = match node.kind {
            NodeKind::ExternalSelector => match self.selected(node, items) {
                Some(list) => list,
                // Which objects a selector finds is not known.
                None => return,
            },
            NodeKind::Collection => items.iter().map(|item| self.read_as(item)).collect(),
            NodeKind::Template | NodeKind::External => items.first().map(|item| self.read_as(item)).unwrap_or_default(),
        };
        self.values.observe(node, &value);
        self.seen.insert(node.id.clone(), value);
    }

    fn read_as(&self, item: &Item) -> Value {
        let object = &item.rendered.object;
        let same = |recorded: &&Object| {
            recorded.gvk() == object.gvk() && recorded.name() == object.name() && recorded.namespace() == object.namespace()
        };
        self.recorded.iter().find(same).map_or_else(|| item.known.clone(), |recorded| recorded.clone().into_value())
    }

    /// The recorded objects that a selector finds; where there are none, one that is an example.
    fn selected(&mut self, node: &Node, items: &[Item]) -> Option<Value> {
        let reference = &items.first()?.rendered.object;
        let selector = reference.at(&["metadata", "selector"])?;
        let is_there = |object: &&Object| reference.namespace().is_none_or(|namespace| object.namespace() == Some(namespace));
        let found = self.recorded.iter().filter(|object| object.gvk().as_ref() == Some(&node.gvk)).filter(is_there);
        let found: Value = found.filter(|object| selects(selector, object)).map(|object| object.clone().into_value()).collect();
        if found.as_array().is_some_and(|list| !list.is_empty()) {
            return Some(found);
        }
        if !self.examples {
            return None;
        }
        self.invented.insert(node.id.clone());
        Some(json!([{"apiVersion": node.gvk.api_version(), "kind": node.gvk.kind, "metadata": {"name": "example"}}]))
    }
}

/// What is not certain about a node being there.
struct Doubt {
    example: Option<Example>,
    problem: Option<Diagnostic>,
}

/// In the place of a collection whose items nobody can tell: its template as it is.
fn unexpanded(node: &Node, message: String, namespace: Option<&str>) -> Item {
    let problems = vec![Diagnostic::error("forEach", message)];
    let unknown = node.slots.iter().map(|slot| slot.path.clone()).collect();
    Filling { object: node.template.clone(), unknown, problems, ..Filling::default() }.item(node, namespace)
}

/// Whether a label selector finds an object.
fn selects(selector: &Value, object: &Object) -> bool {
    let labels = selector["matchLabels"].as_object().into_iter().flatten();
    let requirements = selector["matchExpressions"].as_array().into_iter().flatten();
    labels.into_iter().all(|(key, value)| object.label(key) == value.as_str())
        && requirements.into_iter().all(|requirement| meets(requirement, object))
}

fn meets(requirement: &Value, object: &Object) -> bool {
    let label = requirement["key"].as_str().and_then(|key| object.label(key));
    let listed = || requirement["values"].as_array().is_some_and(|values| values.iter().any(|value| value.as_str() == label));
    match requirement["operator"].as_str() {
        Some("In") => label.is_some() && listed(),
        Some("NotIn") => label.is_none() || !listed(),
        Some("Exists") => label.is_some(),
        Some("DoesNotExist") => label.is_none(),
        _ => false,
    }
}

impl Example {
    /// `None` where nothing is an example.
    fn at(path: &str, stands_for: Vec<String>) -> Option<Self> {
        (!stands_for.is_empty()).then(|| Self { path: path.to_owned(), stands_for })
    }
}

/// A template on its way to an object.
#[derive(Default)]
struct Filling {
    object: Value,
    omitted: Vec<Vec<Segment>>,
    unknown: Vec<Vec<Segment>>,
    examples: Vec<Example>,
    problems: Vec<Diagnostic>,
}

impl Filling {
    fn item(self, node: &Node, namespace: Option<&str>) -> Item {
        let Self { mut object, omitted, unknown, mut examples, problems } = self;
        let mut known = object.clone();
        remove(&mut known, omitted.iter().chain(&unknown).cloned().collect());
        remove(&mut object, omitted);
        let mut unresolved: Vec<String> = unknown.iter().map(|path| path_text(path)).collect();
        unresolved.sort();
        examples.sort();
        let mut object = Object::from_value(object).unwrap_or_default();
        if let (Some(true), None, Some(namespace)) = (node.namespaced, object.namespace(), namespace) {
            object.metadata_mut().insert("namespace".to_owned(), Value::from(namespace));
            known["metadata"]["namespace"] = Value::from(namespace);
        }
        Item { rendered: Rendered { node: node.id.clone(), object, unresolved, examples, problems }, known }
    }
}

struct Item {
    rendered: Rendered,
    /// What others read: the object without what is not known.
    known: Value,
}

#[cfg(test)]
mod tests {
    use serde_json::json;

    use super::*;
    use crate::{
        graph::tests::seed::texts,
        schema::SchemaMap,
        testing::{core, delivery, graph, rgd},
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

    fn named(spec: Value) -> Object {
        Object::from_value(json!({"apiVersion": "kro.run/v1alpha1", "kind": "Test", "metadata": {"name": "one", "namespace": "ns"}, "spec": spec}))
            .unwrap()
    }

    const CHAIN: &str = "- id: service\n  template:\n    apiVersion: v1\n    kind: Service\n    metadata:\n      name: ${schema.spec.name}\n- id: map\n  template:\n    apiVersion: v1\n    kind: ConfigMap\n    metadata:\n      name: map\n    data:\n      host: ${service.spec.clusterIP}\n      url: http://${service.spec.clusterIP}:${string(service.spec.ports[0].port)}\n      name: ${service.metadata.name}\n- id: copy\n  template:\n    apiVersion: v1\n    kind: ConfigMap\n    metadata:\n      name: copy\n    data:\n      again: ${service.spec.clusterIP}\n      absent: ${schema.spec.late}\n";

    #[test]
    fn examples_stand_for_what_is_not_known_and_are_named() {
        let graph = graph(&rgd("name: string\nlate: string", "", CHAIN), &core());
        let rendered = render_examples(&graph, &named(json!({"name": "x"})), &[]);
        let map = &rendered[1];
        assert_eq!(map.object.at(&["data", "host"]).unwrap(), "example-clusterip");
        assert_eq!(map.object.at(&["data", "url"]).unwrap(), "http://example-clusterip:1");
        assert_eq!(map.object.at(&["data", "name"]).unwrap(), "x");
        let example = |path: &str, stands_for: &[&str]| Example {
            path: path.to_owned(),
            stands_for: stands_for.iter().map(|path| (*path).to_owned()).collect(),
        };
        let (ip, port) = ("service.spec.clusterIP", "service.spec.ports[0].port");
        assert_eq!(map.examples, [example("data.host", &[ip]), example("data.url", &[ip, port])]);
        let copy = &rendered[2];
        assert_eq!(copy.examples, [example("data.again", &[ip])], "an example made for another node is one here too");
        assert_eq!(copy.unresolved, ["data.absent"], "what the instance lacks never comes, so nothing stands for it");
        assert!(copy.problems[0].message.contains("spec.late"), "{:?}", copy.problems);
    }

    #[test]
    fn recorded_objects_are_found_by_selector() {
        let resources = "- id: found\n  externalRef:\n    apiVersion: v1\n    kind: ConfigMap\n    metadata:\n      selector:\n        matchLabels: {app: x}\n- id: map\n  template:\n    apiVersion: v1\n    kind: ConfigMap\n    metadata:\n      name: map\n    data:\n      names: ${found.map(one, one.metadata.name).join(',')}\n";
        let graph = graph(&rgd("", "", resources), &core());
        let other = |name: &str, app: &str| {
            let metadata = json!({"name": name, "namespace": "ns", "labels": {"app": app}});
            Object::from_value(json!({"apiVersion": "v1", "kind": "ConfigMap", "metadata": metadata})).unwrap()
        };
        let recorded = [other("a", "x"), other("b", "y"), other("c", "x")];
        let map = |rendered: Vec<Rendered>| rendered.into_iter().find(|rendered| rendered.node == "map").unwrap();
        let names = map(render_with(&graph, &named(json!({"name": "x"})), &recorded));
        assert_eq!(names.object.at(&["data", "names"]).unwrap(), "a,c");
        let example = map(render_examples(&graph, &named(json!({"name": "x"})), &[]));
        assert_eq!(example.object.at(&["data", "names"]).unwrap(), "example");
        assert_eq!(example.examples[0].stands_for, ["found"]);
    }

    fn with(entries: &str, data: &str) -> String {
        format!(
            "- id: service\n  template:\n    apiVersion: v1\n    kind: Service\n    metadata:\n      name: s\n- id: map\n{entries}  template:\n    apiVersion: v1\n    kind: ConfigMap\n    metadata:\n      name: map\n    data:\n      x: {data}\n"
        )
    }

    fn map_of(spec: &str, entries: &str, data: &str, given: Value) -> Option<Rendered> {
        let graph = graph(&rgd(spec, "", &with(entries, data)), &core());
        let rendered = render_examples(&graph, &named(given), &[]);
        assert!(rendered.iter().filter(|one| one.node == "map").count() <= 1, "{rendered:#?}");
        rendered.into_iter().find(|one| one.node == "map")
    }

    #[test]
    fn a_collection_that_is_too_large_says_that_and_nothing_else() {
        let each = "  forEach: [{n: '${lists.range(schema.spec.count)}'}]\n";
        let spec = "count: integer\nlist: '[]integer'";
        let collection =
            |each: &str| with(each, "x").replace("name: map", "name: map-${string(n)}").replace("- id: service", "- id: other");
        for (each, given, words) in [
            (each, json!({"count": 1001}), "collection size of 1001 is over the maximum collection size of 1000"),
            ("  forEach: [{n: '${schema.spec.list}'}]\n", json!({}), "the instance does not set spec.list"),
        ] {
            let graph = graph(&rgd(spec, "", &collection(each)), &core());
            let rendered = render_examples(&graph, &named(given), &[]);
            let [_, one] = rendered.as_slice() else { panic!("{rendered:#?}") };
            assert_eq!(one.problems.len(), 1, "{:?}", one.problems);
            assert_eq!(one.problems[0].path, "forEach");
            assert!(one.problems[0].message.contains(words), "{:?}", one.problems);
        }
    }

    #[test]
    fn a_condition_of_what_is_not_known_is_an_example_too() {
        for condition in ["service.spec.clusterIP != ''", "service.spec.clusterIP == 'that'"] {
            let entries = format!("  includeWhen: [\"${{{condition}}}\"]\n");
            let map = map_of("name: string", &entries, "x", json!({})).expect("it may be there");
            let stands_for = vec!["service.spec.clusterIP".to_owned()];
            assert_eq!(map.examples, [Example { path: "includeWhen".to_owned(), stands_for }], "{condition}");
        }
        let known = "  includeWhen: [\"${schema.spec.name == 'x'}\"]\n";
        assert_eq!(map_of("name: string", known, "x", json!({"name": "y"})), None);
        assert!(map_of("name: string", known, "x", json!({"name": "x"})).unwrap().examples.is_empty());
        let lacking = map_of("name: string", known, "x", json!({})).unwrap();
        assert_eq!(lacking.problems[0].path, "includeWhen");
        assert!(lacking.problems[0].message.contains("the instance does not set spec.name"), "{:?}", lacking.problems);
    }
}
