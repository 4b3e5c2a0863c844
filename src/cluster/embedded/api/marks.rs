//! What the control plane itself puts on objects as they are written: the labels of their [`Way`](crate::embedded::seam::Way),
//! and in logical clusters whose they are. Nobody manages these fields, and what a client says about them is dropped.

use plinth_api::Object;
use serde_json::{Map, Value, json};

use super::{problem::Problem, state::Ask};
use crate::embedded::filter::is_logical;

/// The annotation that names an object's logical cluster.
pub(crate) const CLUSTER: &str = "kcp.io/cluster";

/// Takes away what the client says about marks, before anybody can come to manage them: they stay as they are stored.
pub(super) fn withhold(ask: &Ask<'_>, object: &mut Object, old: Option<&Object>) -> Result<(), Problem> {
    if ask.is_status() {
        return Ok(());
    }
    for label in &ask.way.labels {
        let said = object.at(&["metadata", "labels", &label.name]);
        if label.protected && said.is_some_and(|said| *said != label.value.as_str()) {
            let why = format!("protected label {} must have value {}", label.name, label.value);
            return Err(Problem::forbidden(&ask.served.group, &ask.served.plural, object.name(), &why));
        }
        as_stored(object, old, "labels", &label.name);
    }
    if is_logical(&ask.cluster) {
        as_stored(object, old, "annotations", CLUSTER);
    }
    Ok(())
}

/// Puts the marks on what is about to be stored.
pub(super) fn put(ask: &Ask<'_>, object: &mut Object) {
    for label in &ask.way.labels {
        set(object, "labels", &label.name, &json!(label.value));
    }
    if is_logical(&ask.cluster) {
        set(object, "annotations", CLUSTER, &json!(ask.cluster.0));
    }
}

fn as_stored(object: &mut Object, old: Option<&Object>, map: &str, name: &str) {
    if let Some(value) = old.and_then(|old| old.at(&["metadata", map, name])) {
        return set(object, map, name, value);
    }
    let Some(Value::Object(fields)) = object.metadata_mut().get_mut(map) else { return };
    if fields.remove(name).is_some() && fields.is_empty() {
        object.metadata_mut().remove(map);
    }
}

/// What is there and is no map is left for the schema to refuse.
fn set(object: &mut Object, map: &str, name: &str, value: &Value) {
    let fields = object.metadata_mut().entry(map).or_insert(Value::Null);
    if fields.is_null() {
        *fields = Value::Object(Map::new());
    }
    if let Value::Object(fields) = fields
        && fields.get(name) != Some(value)
    {
        fields.insert(name.to_owned(), value.clone());
    }
}
