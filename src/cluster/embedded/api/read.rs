//! Reading: one object, and lists with selectors and pages.

use plinth_api::{ClusterKey, Object};
use plinth_engine::{
    naming::{label_key_fault, label_value_fault},
    schema::{apply_object_defaults, prune_object},
};
use serde_json::{Map, Value, json};

use super::{
    kinds::Served,
    listing::Listing,
    problem::Problem,
    state::{Ask, Reply, State},
};
use crate::{
    embedded::{
        filter::{FieldTest, Filter},
        store::Place,
    },
    selector::Selector,
};

impl State {
    pub(super) fn get(&mut self, ask: &Ask<'_>) -> Result<Reply, Problem> {
        let name = ask.target.name.clone().unwrap_or_default();
        let object = self.seen(ask, &name)?;
        Ok(Reply::Object(200, present(&object, &ask.served)))
    }

    pub(super) fn list(&mut self, ask: &Ask<'_>) -> Result<Reply, Problem> {
        let filter = filter(ask)?;
        let limit = ask.call.query.some("limit").and_then(|limit| limit.parse::<usize>().ok()).filter(|limit| *limit > 0);
        if ask.call.query.some("continue").is_some() && ask.call.query.some("resourceVersion").is_some() {
            return Err(Problem::bad_request("specifying resource version is not allowed when using continue"));
        }
        let from = ask.call.query.some("continue").map(|token| start(ask, token)).transpose()?;
        let from = from.as_ref().map(|(version, place)| (*version, place));
        let page = self.store.page(&ask.resource(), &filter, from, limit.unwrap_or(usize::MAX)).map_err(|_| {
            Problem::expired("The provided continue parameter is too old to display a consistent list result. You can start a new list without the continue parameter.")
        })?;
        let mut metadata = Map::new();
        metadata.insert("resourceVersion".to_owned(), json!(page.version.to_string()));
        if !ask.served.builtin {
            metadata.insert("continue".to_owned(), json!(""));
        }
        if let Some((last, left)) = &page.rest {
            metadata.insert("continue".to_owned(), json!(token(page.version, last)));
            if ask.call.query.some("labelSelector").is_none() && ask.call.query.some("fieldSelector").is_none() {
                metadata.insert("remainingItemCount".to_owned(), json!(left));
            }
        }
        let items = page.items.iter().map(|(place, object)| present(object, &ask.shape(&self.registry, place)));
        Ok(Reply::List(Box::new(Listing::of(&ask.served, metadata, items.collect()))))
    }
}

/// An object in the version that is asked for. A CRD's schema of today decides what is shown, and that of the storage
/// version gives the defaults, as in Kubernetes. What is shown as it is stored is shared with the store.
pub(crate) fn present(object: &Object, served: &Served) -> Object {
    let mut object = object.clone();
    let shown = Value::String(served.api_version());
    let is_stored = object.0.get("apiVersion") == Some(&shown);
    if !is_stored {
        object.0.insert("apiVersion".to_owned(), shown);
    }
    if !served.builtin {
        prune_object(&mut object, &served.schema);
        if is_stored {
            apply_object_defaults(&mut object, &served.schema);
        }
    }
    object
}

/// The selection that a request's query asks for.
pub(super) fn filter(ask: &Ask<'_>) -> Result<Filter, Problem> {
    let query = &ask.call.query;
    let labels = Selector::parse(query.get("labelSelector").unwrap_or_default());
    let labels = labels.map_err(|error| Problem::bad_request(format!("unable to parse requirement: {error}")))?;
    if let Some(fault) = term_fault(&labels) {
        return Err(Problem::bad_request(format!("unable to parse requirement: {fault}")));
    }
    let text = query.get("fieldSelector").unwrap_or_default();
    let fields = FieldTest::parse_all(text)
        .ok_or_else(|| Problem::bad_request(format!("invalid selector: '{text}'; can't understand '{text}'")))?;
    for field in &fields {
        let path = field.path.join(".");
        let common = path == "metadata.name" || (path == "metadata.namespace" && (ask.served.namespaced || ask.served.builtin));
        if !common && !ask.served.selectable.contains(&path) {
            let plain = ask.served.builtin && ask.served.selectable.is_empty();
            let message = if plain {
                format!("{path:?} is not a known field selector: only \"metadata.name\", \"metadata.namespace\"")
            } else {
                format!("field label not supported: {path}")
            };
            return Err(Problem::bad_request(message));
        }
    }
    let labels = labels.and(&ask.way.filter);
    Ok(Filter { reach: ask.way.reach.clone(), namespace: ask.target.namespace.clone(), labels, fields })
}

/// What is wrong with the keys and values of a selector.
fn term_fault(labels: &Selector) -> Option<String> {
    labels.terms().find_map(|(key, values)| {
        let of_key = label_key_fault(key).map(|why| format!("<nil>: Invalid value: {key:?}: {why}"));
        let fault = |(at, value): (usize, &&str)| {
            label_value_fault(value).map(|why| format!("values[{at}][{key}]: Invalid value: {value:?}: {why}"))
        };
        of_key.or_else(|| values.iter().enumerate().find_map(fault))
    })
}

/// `VERSION/CLUSTER/NAMESPACE/NAME`, names being free of slashes.
fn token(version: u64, place: &Place) -> String {
    format!("{version}/{}/{}/{}", place.cluster, place.namespace.as_deref().unwrap_or_default(), place.name)
}

fn start(ask: &Ask<'_>, token: &str) -> Result<(u64, Place), Problem> {
    let mut parts = token.splitn(4, '/');
    let read = (|| {
        let version = parts.next()?.parse().ok()?;
        let cluster = ClusterKey(parts.next()?.to_owned());
        let namespace = Some(parts.next()?.to_owned()).filter(|namespace| !namespace.is_empty());
        Some((version, Place { cluster, namespace, ..ask.place(parts.next()?) }))
    })();
    read.ok_or_else(|| Problem::bad_request("continue key is not valid: illegal base64 data at input byte 0"))
}
