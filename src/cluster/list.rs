//! Lists: page by page, bounded, each object with the type that lists leave out.

use plinth_api::{GroupVersionKind, Object};
use serde_json::Value;

use crate::{
    fault,
    http::{Call, Fault, Transport},
};

/// Objects asked for in one page.
const PAGE: &str = "500";
/// Most objects that one list may hold.
const MAX_OBJECTS: usize = 200_000;
/// How often a list starts over because its continue token grew too old.
const MAX_RESTARTS: usize = 3;

/// A complete list, as of one resource version.
pub(crate) struct List {
    pub(crate) objects: Vec<Object>,
    pub(crate) resource_version: String,
}

/// A kind of selector, as the server calls it, and what it says; empty for all.
pub(crate) type Selector<'a> = (&'static str, &'a str);

/// Lists everything below `path` that `selector` matches.
pub(crate) async fn all(
    transport: &Transport,
    path: &str,
    selector: Selector<'_>,
    gvk: &GroupVersionKind,
) -> Result<List, Fault> {
    let mut restarts = 0;
    loop {
        match pages(transport, path, selector, gvk).await {
            Err(Fault::Status(status)) if fault::is_expired(&status) && restarts < MAX_RESTARTS => restarts += 1,
            answer => return answer,
        }
    }
}

async fn pages(transport: &Transport, path: &str, selector: Selector<'_>, gvk: &GroupVersionKind) -> Result<List, Fault> {
    let mut list = List { objects: Vec::new(), resource_version: String::new() };
    let mut token = String::new();
    loop {
        let mut call = Call::get(path).query("limit", PAGE);
        let (kind, said) = selector;
        if !said.is_empty() {
            call = call.query(kind, said);
        }
        if !token.is_empty() {
            call = call.query("continue", &token);
        }
        let (objects, metadata) = transport.answer(call).await?.into_list();
        list.objects.extend(objects.into_iter().map(|object| typed(object, gvk)));
        let text = |name: &str| metadata.get(name).and_then(Value::as_str).unwrap_or_default();
        text("resourceVersion").clone_into(&mut list.resource_version);
        if list.objects.len() > MAX_OBJECTS {
            return Err(Fault::Connection(format!("{path} holds more than {MAX_OBJECTS} objects")));
        }
        text("continue").clone_into(&mut token);
        if token.is_empty() {
            return Ok(list);
        }
    }
}

/// Items of built-in kinds come without `apiVersion` and `kind`.
fn typed(mut object: Object, gvk: &GroupVersionKind) -> Object {
    if !object.0.contains_key("apiVersion") {
        object.0.insert("apiVersion".to_owned(), Value::String(gvk.api_version()));
    }
    if !object.0.contains_key("kind") {
        object.0.insert("kind".to_owned(), Value::String(gvk.kind.clone()));
    }
    object
}
