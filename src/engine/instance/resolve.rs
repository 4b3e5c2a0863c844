//! From a node's template to the objects that are wanted.

use plinth_api::{ClusterKey, Object, ObjectKey};
use serde_json::{Value, json};

use super::values::{Trouble, Values};
use crate::{
    cel::Evaluated,
    graph::{Graph, Node},
    naming::{applyset_id, keys, label_value},
    template::{remove, set},
};

/// A wanted object.
#[derive(Clone, Debug)]
pub(super) struct Wanted {
    pub(super) key: ObjectKey,
    pub(super) object: Object,
    /// Position in the collection, where it is in one.
    pub(super) index: Option<usize>,
}

/// Fills in a node's template.
pub(crate) fn fill(node: &Node, values: &Values) -> Result<Object, Trouble> {
    let mut object = node.template.clone();
    let mut omitted = Vec::new();
    for slot in &node.slots {
        match values.fill(slot)? {
            Evaluated::Value(value) => set(&mut object, &slot.path, value),
            Evaluated::Omit => omitted.push(slot.path.clone()),
        }
    }
    remove(&mut object, omitted);
    Object::from_value(object).ok_or_else(|| Trouble::Failed("the template is not an object".to_owned()))
}

/// Where a filled-in object goes. Namespaced objects without a namespace live in the instance's.
pub(super) fn locate(node: &Node, object: &mut Object, instance: &Object, cluster: &ClusterKey) -> Result<ObjectKey, Trouble> {
    if node.namespaced == Some(false) {
        object.metadata_mut().remove("namespace");
    } else if object.namespace().is_none() {
        let Some(namespace) = instance.namespace() else {
            let id = &node.id;
            return Err(Trouble::Failed(format!(
                "node {id:?} is namespaced and must resolve metadata.namespace when the instance is cluster-scoped"
            )));
        };
        object.metadata_mut().insert("namespace".to_owned(), json!(namespace));
    }
    if object.name().is_empty() {
        return Err(Trouble::Failed(format!("node {:?}: metadata.name is empty", node.id)));
    }
    let namespace = object.namespace().map(str::to_owned);
    Ok(ObjectKey { cluster: cluster.clone(), gvk: node.gvk.clone(), namespace, name: object.name().to_owned() })
}

/// The id of the ApplySet whose parent the instance is.
pub(super) fn applyset_of(graph: &Graph, instance: &Object) -> String {
    let gvk = &graph.instance.gvk;
    applyset_id(instance.name(), instance.namespace().unwrap_or_default(), &gvk.kind, &gvk.group)
}

/// Puts kro's labels and annotations on a child (kro.md section 19).
pub(super) fn decorate(graph: &Graph, node: &Node, instance: &Object, wanted: &mut Wanted, size: usize) {
    let gvk = &graph.instance.gvk;
    let mut labels = vec![
        (keys::MANAGED_BY, keys::MANAGED_BY_PLINTH.to_owned()),
        (keys::OWNED, "true".to_owned()),
        (keys::VERSION, keys::VERSION_VALUE.to_owned()),
        (keys::INSTANCE_ID, instance.uid().unwrap_or_default().to_owned()),
        (keys::INSTANCE_NAME, label_value(instance.name())),
        (keys::INSTANCE_GROUP, gvk.group.clone()),
        (keys::INSTANCE_VERSION, gvk.version.clone()),
        (keys::INSTANCE_KIND, gvk.kind.clone()),
        (keys::NODE_ID, node.id.clone()),
        (keys::APPLYSET_PART_OF, applyset_of(graph, instance)),
    ];
    // What an instance makes belongs to the platform that the instance belongs to, whoever runs the loop.
    if let Some(platform) = instance.label(keys::PLATFORM) {
        labels.push((keys::PLATFORM, platform.to_owned()));
    }
    if let Some(namespace) = instance.namespace() {
        labels.push((keys::INSTANCE_NAMESPACE, namespace.to_owned()));
    }
    if let Some(index) = wanted.index {
        labels.push((keys::COLLECTION_INDEX, index.to_string()));
        labels.push((keys::COLLECTION_SIZE, size.to_string()));
    }
    merge(&mut wanted.object, "labels", &labels);
    merge(&mut wanted.object, "annotations", &[(keys::APPLY_ORDER, node.apply_order.to_string())]);
}

fn merge(object: &mut Object, list: &str, entries: &[(&str, String)]) {
    let map = object.metadata_mut().entry(list).or_insert_with(|| json!({}));
    if !map.is_object() {
        *map = json!({});
    }
    let map = map.as_object_mut().expect("it was just made an object");
    for (key, value) in entries {
        map.insert((*key).to_owned(), Value::String(value.clone()));
    }
}
