//! `nestedDigests`: digests of the closure that stand in the root, for children that could not be rewritten (ocm.md section 1.1).
//!
//! The older tool signs such a root as if every reference and resource of the closure had its digest, and stores them beside. They are
//! covered by the signature only through the references' digests, so nothing here is a proof: what is filled in is proven afterwards, like
//! digests that stand where they belong.

use std::collections::BTreeMap;
use std::sync::Arc;

use serde_json::Value;

use crate::closure::Closure;
use crate::descriptor::{Descriptor, Schema};
use crate::error::{RepositoryError, ResolveError};
use crate::repository::ComponentVersion;

/// What the root says of one component version.
struct Nested<'a> {
    digest: Option<&'a Value>,
    resources: &'a [Value],
}

/// Puts the root's nested digests where they belong in all descriptors of the closure. A digest that is there already must be the same.
pub(crate) fn fill(closure: &mut Closure, root: &ComponentVersion) -> Result<(), ResolveError> {
    let document = closure.require(root)?.descriptor.document.clone();
    let nested = read(&document);
    if nested.is_empty() {
        return Ok(());
    }
    for (at, node) in &mut closure.nodes {
        let in_node = |source| ResolveError::Repository { path: node.path.clone(), source };
        let filled = filled(&node.descriptor, at, &nested).map_err(in_node)?;
        if filled.document != node.descriptor.document {
            node.descriptor = Arc::new(filled);
        }
    }
    Ok(())
}

fn read(document: &Value) -> BTreeMap<ComponentVersion, Nested<'_>> {
    let text = |entry: &Value, key: &str| entry.get(key).and_then(Value::as_str).unwrap_or_default().to_owned();
    let entries = document.get("nestedDigests").and_then(Value::as_array).map_or(&[][..], Vec::as_slice);
    let nested = |entry: &'_ Value| ComponentVersion::new(text(entry, "name"), text(entry, "version"));
    entries
        .iter()
        .map(|entry| {
            let resources = entry.get("resourceDigests").and_then(Value::as_array).map_or(&[][..], Vec::as_slice);
            (nested(entry), Nested { digest: entry.get("digest").filter(|digest| digest.is_object()), resources })
        })
        .collect()
}

fn filled(
    descriptor: &Descriptor,
    at: &ComponentVersion,
    nested: &BTreeMap<ComponentVersion, Nested<'_>>,
) -> Result<Descriptor, RepositoryError> {
    let mut document = descriptor.document.clone();
    let (references, resources) = match descriptor.schema {
        Schema::V2 => ("/component/componentReferences", "/component/resources"),
        Schema::V3Alpha1 => ("/spec/references", "/spec/resources"),
    };
    for (index, reference) in descriptor.references.iter().enumerate() {
        let target = ComponentVersion::new(&reference.component, &reference.version);
        let digest = nested.get(&target).and_then(|nested| nested.digest);
        let what = || format!("the digest of the reference {} of {at}", reference.identity);
        put(&mut document, &format!("{references}/{index}"), digest, what)?;
    }
    let own = nested.get(at).map_or(&[][..], |nested| nested.resources);
    for (index, resource) in descriptor.resources.iter().enumerate() {
        let digest = own.iter().find(|entry| is_of(entry, resource)).and_then(|entry| entry.get("digest"));
        let what = || format!("the digest of the resource {} of {at}", resource.identity);
        put(&mut document, &format!("{resources}/{index}"), digest, what)?;
    }
    Descriptor::from_value(document).map_err(|error| RepositoryError::malformed(at.to_string(), error))
}

/// Name, version and further identity; older normalisations put the version into the identity as well.
fn is_of(entry: &Value, resource: &crate::descriptor::Resource) -> bool {
    let is = |key: &str, expected: &str| entry.get(key).and_then(Value::as_str).unwrap_or_default() == expected;
    let mut extra: BTreeMap<&str, &str> = entry
        .get("extraIdentity")
        .and_then(Value::as_object)
        .into_iter()
        .flatten()
        .filter_map(|(key, value)| Some((key.as_str(), value.as_str()?)))
        .collect();
    if !resource.identity.extra.contains_key("version") && extra.get("version") == Some(&resource.version.as_str()) {
        extra.remove("version");
    }
    let same_extra = extra.into_iter().eq(resource.identity.extra.iter().map(|(key, value)| (key.as_str(), value.as_str())));
    is("name", &resource.identity.name) && is("version", &resource.version) && same_extra
}

fn put(document: &mut Value, pointer: &str, digest: Option<&Value>, what: impl Fn() -> String) -> Result<(), RepositoryError> {
    let (Some(digest), Some(Value::Object(element))) = (digest, document.pointer_mut(pointer)) else { return Ok(()) };
    match element.get("digest") {
        None | Some(Value::Null) => {
            element.insert("digest".to_owned(), digest.clone());
            Ok(())
        }
        Some(own) if own == digest => Ok(()),
        Some(_) => Err(RepositoryError::malformed(what(), "the root's nestedDigests say another one")),
    }
}

#[cfg(test)]
mod tests;
