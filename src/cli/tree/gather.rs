//! What is read of a platform before anything is judged.

use std::collections::BTreeSet;

use plinth_api::{ClusterKey, GroupVersionKind, Object, ObjectKey, delivery, rgd};
use plinth_bootstrap::{Schemas, wanted as written};
use plinth_engine::{
    graph::{self, Definition},
    naming::{self, keys},
    ports::{Query, ReadError, Reader},
};

use super::{
    Found, expected,
    graphs::{Graphs, Memory},
    instances_of, made, removal,
};

/// Everything there is of a platform.
pub(super) struct Gathered {
    pub(super) found: Found,
    pub(super) graphs: Graphs,
    /// What instances read or want, and what does not carry their labels.
    pub(super) outside: Found,
    /// What a run has begun and not brought to its instance.
    pub(super) begun: Option<String>,
    /// The sign of a removal that has not ended.
    pub(super) removing: Option<String>,
}

/// Reads definitions with the platform's label, their instances, and everything below them.
pub(super) async fn all(
    platform: &str,
    reader: &dyn Reader,
    schemas: &dyn Schemas,
    memory: &mut Memory,
) -> Result<Gathered, ReadError> {
    let selector = naming::platform_selector(platform);
    let owned = format!("{}=true", keys::OWNED);
    let rgds = list(reader, &GroupVersionKind::new(rgd::KRO_GROUP, rgd::VERSION, rgd::KIND), &selector).await?;
    let definitions: Vec<Definition> = rgds.values().filter_map(|object| Definition::from_object(object).ok()).collect();
    let (defined, made) = kinds_apart(&definitions);
    let graphs = memory.compile(&rgds, schemas).await?;
    let mut found = rgds;
    for gvk in defined.union(&made) {
        found.extend(list(reader, gvk, &owned).await?);
    }
    // What the run writes itself carries the platform's label alone.
    for gvk in defined.iter().chain(&of_runs()) {
        found.extend(list(reader, gvk, &selector).await?);
    }
    for gvk in made::of_definitions() {
        let made = list(reader, &gvk, &owned).await?;
        found.extend(made::by_definitions(made, &found));
    }
    let begun = begun(&found, &defined, &made);
    let removing = removal::sign(&found, &defined, &made);
    let outside = expected::outside(&graphs, &found, reader).await?;
    Ok(Gathered { found, graphs, outside, begun, removing })
}

/// An object as the graphs want it; `None` where no instance asks for it. What only the run time knows is left out.
pub(crate) async fn wanted(
    platform: &str,
    reader: &dyn Reader,
    schemas: &dyn Schemas,
    memory: &mut Memory,
    key: &ObjectKey,
) -> Result<Option<Object>, ReadError> {
    let Gathered { found, graphs, outside, .. } = all(platform, reader, schemas, memory).await?;
    Ok(expected::wanted(&graphs, &found, &outside, key))
}

/// The kinds of what a run writes itself, besides definitions and the instance.
pub(crate) fn of_runs() -> [GroupVersionKind; 3] {
    [GroupVersionKind::new(delivery::GROUP, delivery::VERSION, "Repository"), written::crd_kind(), written::namespace_kind()]
}

/// The kinds that definitions define, make and read.
pub(crate) fn kinds(definitions: &[Object]) -> BTreeSet<GroupVersionKind> {
    let definitions: Vec<Definition> = definitions.iter().filter_map(|object| Definition::from_object(object).ok()).collect();
    let (defined, made) = kinds_apart(&definitions);
    &defined | &made
}

/// The kinds that definitions define, and those that they make or read.
fn kinds_apart(definitions: &[Definition]) -> (BTreeSet<GroupVersionKind>, BTreeSet<GroupVersionKind>) {
    let defined = definitions.iter().map(instances_of);
    (defined.collect(), definitions.iter().flat_map(|definition| graph::kinds(&definition.spec)).collect())
}

/// What a platform lacks that a run has begun and not brought to its instance; `None` for one that is whole, and for none.
fn begun(found: &Found, defined: &BTreeSet<GroupVersionKind>, made: &BTreeSet<GroupVersionKind>) -> Option<String> {
    let mut top: Vec<&GroupVersionKind> = defined.difference(made).collect();
    top.retain(|gvk| !found.keys().any(|key| key.gvk == **gvk));
    if let Some(gvk) = top.first() {
        return Some(format!("there is no {} yet", gvk.group_kind()));
    }
    if !defined.is_empty() {
        return None;
    }
    (!found.is_empty()).then(|| format!("there is no {} yet", rgd::KIND))
}

/// A kind that is not served has no objects.
async fn list(reader: &dyn Reader, gvk: &GroupVersionKind, selector: &str) -> Result<Found, ReadError> {
    let query = Query { cluster: ClusterKey::host(), gvk: gvk.clone(), namespace: None, selector: selector.to_owned() };
    let objects = match reader.list(&query).await {
        Err(ReadError::NotServed(_)) => return Ok(Found::new()),
        answer => answer?,
    };
    let keyed = |object: Object| {
        let object = typed(object, gvk);
        Some((object.key(&ClusterKey::host())?, object))
    };
    Ok(objects.into_iter().filter_map(keyed).collect())
}

/// Items of a list come without their type.
fn typed(mut object: Object, gvk: &GroupVersionKind) -> Object {
    object.0.insert("apiVersion".to_owned(), gvk.api_version().into());
    object.0.insert("kind".to_owned(), gvk.kind.clone().into());
    object
}
