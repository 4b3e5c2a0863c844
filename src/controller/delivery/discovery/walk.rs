//! Reading everything that a component version leads to, in one repository, level by level.

use std::{collections::BTreeSet, sync::Arc};

use futures::{
    FutureExt,
    future::BoxFuture,
    stream::{self, StreamExt},
};
use plinth_releasechannel::{ComponentRepository, ComponentVersion, Descriptor, descriptor::Reference};
use serde_json::{Value, json};

use super::{
    super::{
        found::Located,
        report::{Failed, Reason},
        resource::check_reference,
        sources::failed,
    },
    select::Graph,
};

/// Descriptors that are read at the same time.
const AT_ONCE: usize = 8;
/// Most component versions of one graph.
const MOST: usize = 10_000;
/// Longest way from the root.
const DEEPEST: usize = 64;

/// How a graph is walked.
pub(super) struct Walk {
    /// Where everything is.
    pub(super) repository: Arc<dyn ComponentRepository>,
    /// Whether each descriptor must be what the reference to it says: the root's signatures are verified.
    pub(super) is_verified: bool,
    /// Whether what cannot be read is listed instead of failing the whole.
    pub(super) goes_on: bool,
    /// The only component version that is meant, if there can be only one.
    pub(super) only: Option<ComponentVersion>,
}

impl Walk {
    /// The graph below the root, and `status.unresolved`.
    pub(super) async fn from(&self, root: Located) -> Result<(Graph, Vec<Value>), Failed> {
        let mut seen = BTreeSet::from([root.version.clone()]);
        let mut level = new(&root.descriptor, &mut seen);
        let mut graph = Graph::from([(root.version, root.descriptor)]);
        let mut unresolved = Vec::new();
        for _ in 0..DEEPEST {
            if let Some(target) = level.iter().position(|reference| self.only.as_ref() == Some(&target(reference))) {
                level = vec![level.swap_remove(target)];
            }
            if level.is_empty() || self.only.as_ref().is_some_and(|only| graph.contains_key(only)) {
                return Ok((graph, unresolved));
            }
            check_count(seen.len())?;
            let mut next = Vec::new();
            for (version, found) in self.read(&level).await {
                match found {
                    Ok(descriptor) => {
                        next.extend(new(&descriptor, &mut seen));
                        graph.insert(version, descriptor);
                    }
                    Err(failed) if self.goes_on => unresolved.push(entry(&version, &failed)),
                    Err(failed) => return Err(Failed { reason: Reason::ResolutionFailed, ..failed }),
                }
            }
            level = next;
        }
        Err(Failed::wrong(Reason::ResolutionFailed, format!("the references go deeper than {DEEPEST} steps")))
    }

    /// One level, in the order in which it was asked for.
    async fn read(&self, level: &[Reference]) -> Vec<(ComponentVersion, Result<Arc<Descriptor>, Failed>)> {
        let reads: Vec<BoxFuture<'_, _>> = level.iter().map(|reference| self.read_one(reference).boxed()).collect();
        stream::iter(reads).buffered(AT_ONCE).collect().await
    }

    async fn read_one(&self, reference: &Reference) -> (ComponentVersion, Result<Arc<Descriptor>, Failed>) {
        let version = target(reference);
        let found = self.repository.descriptor(&version).await;
        let found = found.map_err(|error| failed(Reason::GetComponentVersionFailed, &error)).and_then(|found| {
            if self.is_verified {
                check_reference(reference, &found.descriptor)?;
            }
            Ok(found.descriptor)
        });
        (version, found)
    }
}

/// References to what was not seen yet.
fn new(descriptor: &Descriptor, seen: &mut BTreeSet<ComponentVersion>) -> Vec<Reference> {
    descriptor.references.iter().filter(|reference| seen.insert(target(reference))).cloned().collect()
}

fn target(reference: &Reference) -> ComponentVersion {
    ComponentVersion::new(reference.component.as_str(), reference.version.as_str())
}

fn check_count(count: usize) -> Result<(), Failed> {
    if count <= MOST {
        return Ok(());
    }
    Err(Failed::wrong(Reason::ResolutionFailed, format!("the root leads to more than {MOST} component versions")))
}

fn entry(version: &ComponentVersion, failed: &Failed) -> Value {
    json!({"component": version.name, "version": version.version, "reason": failed.reason.as_str(), "message": failed.message})
}
