//! `nestedDigests` of a root: digests for component versions that their maker could not write into, such as those of a read-only
//! repository (ocm.md 1.1).
//!
//! The list is not signed. An entry counts where the descriptor that it completes has the digest which the entry names; whether a
//! proven parent names the same digest is checked like any other reference.

use std::collections::BTreeMap;

use serde_json::Value;

use crate::closure::Closure;
use crate::descriptor::{Descriptor, DigestSpec};
use crate::normalise;
use crate::repository::ComponentVersion;

/// The entries of a root.
pub(super) struct Nested(BTreeMap<ComponentVersion, Entry>);

struct Entry {
    digest: Value,
    resources: Vec<Value>,
}

impl Nested {
    /// Reads the list; what has no name and version is left out.
    pub(super) fn of(root: &Descriptor) -> Self {
        let entries = root.document.get("nestedDigests").and_then(Value::as_array).map_or(&[][..], Vec::as_slice);
        let read = |entry: &Value| {
            let text = |key: &str| entry.get(key).and_then(Value::as_str).map(str::to_owned);
            let resources = entry.get("resourceDigests").and_then(Value::as_array).cloned().unwrap_or_default();
            let digest = entry.get("digest").cloned().unwrap_or_default();
            Some((ComponentVersion::new(text("name")?, text("version")?), Entry { digest, resources }))
        };
        Self(entries.iter().filter_map(read).collect())
    }

    /// Completes the component versions of the closure that the entries are true of.
    pub(super) fn complete(&self, closure: &mut Closure) {
        for (at, entry) in &self.0 {
            let Some(node) = closure.nodes.get_mut(at) else { continue };
            let Some(completed) = self.completed(&node.descriptor, entry) else { continue };
            let Some(spec) = spec(&entry.digest) else { continue };
            if normalise::digest_like(&completed, &spec).is_ok_and(|(expected, found)| expected == found) {
                node.descriptor = completed.into();
            }
        }
    }

    /// The descriptor with the digests that it lacks; `None` where it lacks none, or is none with them.
    fn completed(&self, descriptor: &Descriptor, entry: &Entry) -> Option<Descriptor> {
        let mut document = descriptor.document.clone();
        let inner = if document.get("component").is_some() { "component" } else { "spec" };
        for resource in elements(&mut document, inner, "resources") {
            if let Some(found) = entry.resources.iter().find(|nested| is_same(nested, resource)) {
                fill(resource, found.get("digest"));
            }
        }
        for list in ["componentReferences", "references"] {
            for reference in elements(&mut document, inner, list) {
                let text = |key: &str| reference.get(key).and_then(Value::as_str).unwrap_or_default();
                let target = ComponentVersion::new(text("componentName"), text("version"));
                let digest = self.0.get(&target).map(|entry| &entry.digest);
                fill(reference, digest);
            }
        }
        if document == descriptor.document { None } else { Descriptor::from_value(document).ok() }
    }
}

fn elements<'a>(document: &'a mut Value, inner: &str, list: &str) -> impl Iterator<Item = &'a mut Value> {
    document.get_mut(inner).and_then(|inner| inner.get_mut(list)).and_then(Value::as_array_mut).into_iter().flatten()
}

fn is_same(nested: &Value, resource: &Value) -> bool {
    let no_more =
        |value: &Value| value.get("extraIdentity").filter(|extra| extra.as_object().is_some_and(|map| !map.is_empty())).cloned();
    ["name", "version"].iter().all(|key| nested.get(key) == resource.get(key)) && no_more(nested) == no_more(resource)
}

fn fill(element: &mut Value, digest: Option<&Value>) {
    let lacks = element.get("digest").is_none_or(Value::is_null);
    if let (true, Some(digest), Some(object)) = (lacks, digest.filter(|digest| digest.is_object()), element.as_object_mut()) {
        object.insert("digest".to_owned(), digest.clone());
    }
}

fn spec(digest: &Value) -> Option<DigestSpec> {
    let text = |key: &str| digest.get(key).and_then(Value::as_str).map(str::to_owned);
    Some(DigestSpec { hash: text("hashAlgorithm")?, normalisation: text("normalisationAlgorithm")?, value: text("value")? })
}
