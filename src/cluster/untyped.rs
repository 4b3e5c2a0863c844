//! Writes to objects that their own schema no longer allows.
//!
//! A schema may change under stored objects: an allowed breaking change makes an integer a string. A server-side apply needs the whole
//! object to fit the schema, whatever of it is applied, and answers 500 until somebody mends the object. What concerns only the status,
//! or only labels, annotations and finalizers, is then written by replacing that part of the object as it is read, as kro does
//! (kro.md section 15.2): servers take a field that does not fit where it stays as it was.

use http::Method;
use plinth_api::Object;
use plinth_engine::ports::Apply;
use serde_json::{Value, json};

use crate::{
    cluster::with_dry_run,
    embedded::Answered,
    http::{Call, Fault, JSON, Transport},
};

/// The server's words, in an Internal Error, for a stored object that does not fit its schema, by the step at which it finds
/// out.
pub(crate) const UNTYPED: [&str; 2] = ["failed to create typed live object", "to smd typed"];

/// Whom a server takes for the owner of what is there where it knows none.
const UNKNOWN_OWNER: &str = "before-first-apply";

/// Whether an apply failed because the stored object does not fit its schema, and can be done in another way.
pub(crate) fn applies_to(request: &Apply, fault: &Fault) -> bool {
    let Fault::Status(status) = fault else { return false };
    status.code == 500 && UNTYPED.iter().any(|words| status.message.contains(words)) && is_partial(request)
}

/// Only such an apply says nothing of what the others may have written into the object.
fn is_partial(request: &Apply) -> bool {
    let is_metadata = |name: &String| ["apiVersion", "kind", "metadata"].contains(&name.as_str());
    match request.subresource {
        Some(subresource) => subresource == "status" && request.object.0.contains_key("status"),
        None => request.object.0.keys().all(is_metadata),
    }
}

/// Does a partial apply by reading and replacing. The server refuses it where the object changed in between.
pub(crate) async fn write(transport: &Transport, path: &str, request: &Apply, dry_run: bool) -> Result<Option<Object>, Fault> {
    let live = transport.json(Call::get(object_of(path, request))).await?;
    let changed = with(live, request);
    replace(transport, path, request, &changed, dry_run).await
}

/// What such a replacement leaves behind. It made this manager an owner by update, or lost all owners, so that the next apply finds one
/// for everything that is there: either way a later apply takes no field of the status away any more. Where that shows, the status
/// is replaced once more, and ownership by update given up.
pub(crate) async fn tidy(
    transport: &Transport,
    path: &str,
    request: &Apply,
    answer: Option<Object>,
    dry_run: bool,
) -> Result<Option<Object>, Fault> {
    let is_untidy = |answer: &Object| answer.status() != request.object.status() && owns_by_update(answer.as_value(), request);
    if request.subresource != Some("status") || !answer.as_ref().is_some_and(is_untidy) {
        return Ok(answer);
    }
    let mut changed = with(answer.unwrap_or_default().into_value(), request);
    let managers = changed["metadata"]["managedFields"].as_array_mut();
    managers.into_iter().for_each(|managers| managers.retain(|entry| !is_by_update(entry, request)));
    replace(transport, path, request, &changed, dry_run).await
}

async fn replace(
    transport: &Transport,
    path: &str,
    request: &Apply,
    object: &Value,
    dry_run: bool,
) -> Result<Option<Object>, Fault> {
    let call = Call::new(Method::PUT, path).query("fieldManager", &request.manager).body(JSON, object);
    transport.answer(with_dry_run(call, dry_run)).await.map(Answered::into_object)
}

fn object_of<'p>(path: &'p str, request: &Apply) -> &'p str {
    request.subresource.and_then(|name| path.strip_suffix(name)?.strip_suffix('/')).unwrap_or(path)
}

fn owns_by_update(answer: &Value, request: &Apply) -> bool {
    let managers = answer["metadata"]["managedFields"].as_array();
    managers.into_iter().flatten().any(|entry| is_by_update(entry, request) || entry["manager"] == UNKNOWN_OWNER)
}

fn is_by_update(entry: &Value, request: &Apply) -> bool {
    entry["manager"] == request.manager && entry["operation"] == "Update" && entry["subresource"] == "status"
}

/// The object with what is applied: the status as a whole, maps of the metadata by their keys, and finalizers that are missing.
fn with(mut live: Value, request: &Apply) -> Value {
    if request.subresource.is_some() {
        live["status"] = request.object.status().clone();
        // One that was made anew under the same name is another one, and the server then says so.
        request.object.uid().into_iter().for_each(|uid| live["metadata"]["uid"] = json!(uid));
        return live;
    }
    for map in ["labels", "annotations"] {
        let wanted = request.object.at(&["metadata", map]).and_then(Value::as_object);
        for (name, value) in wanted.into_iter().flatten() {
            live["metadata"][map][name] = value.clone();
        }
    }
    let missing: Vec<&str> = {
        let there = live["metadata"]["finalizers"].as_array();
        let is_there = |name: &&str| there.is_some_and(|there| there.iter().any(|entry| entry == name));
        request.object.finalizers().into_iter().filter(|name| !is_there(name)).collect()
    };
    if !missing.is_empty() {
        let mut all = live["metadata"]["finalizers"].as_array().cloned().unwrap_or_default();
        all.extend(missing.into_iter().map(|name| json!(name)));
        live["metadata"]["finalizers"] = Value::Array(all);
    }
    live
}
