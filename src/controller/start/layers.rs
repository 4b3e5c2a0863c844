//! What every write of the loop goes through: the Lease's gate, and the label of its platform.

use std::{collections::BTreeMap, sync::Arc};

use plinth_api::Object;
use plinth_cluster::decorate::Labelled;
use plinth_engine::{
    naming::keys,
    ports::{Answer, Applier, Apply, Delete, WriteError},
};
use plinth_manager::{Gated, Lease};

use crate::delivery;

/// Labels outside, the gate inside: what is refused was not labelled for nothing, and what is labelled passed the gate.
pub(crate) fn layered(doors: Arc<dyn Applier>, lease: Option<&Arc<Lease>>, platform: Option<&str>) -> Arc<dyn Applier> {
    let gated: Arc<dyn Applier> = match lease {
        Some(lease) => Arc::new(Gated { inner: doors, lease: Arc::clone(lease) }),
        None => doors,
    };
    match platform {
        Some(platform) => Arc::new(OfPlatform::new(gated, platform)),
        None => gated,
    }
}

/// Labels children and CRDs, and leaves alone what only patches an object of somebody else (finalizers, inventories), and what has the
/// label of its parent.
struct OfPlatform {
    plain: Arc<dyn Applier>,
    labelled: Labelled<ByArc>,
}

impl OfPlatform {
    fn new(plain: Arc<dyn Applier>, platform: &str) -> Self {
        let labels = BTreeMap::from([(keys::PLATFORM.to_owned(), platform.to_owned())]);
        Self { labelled: Labelled { inner: ByArc(Arc::clone(&plain)), labels }, plain }
    }
}

impl Applier for OfPlatform {
    fn apply<'a>(&'a self, request: &'a Apply) -> Answer<'a, Result<Object, WriteError>> {
        let is_whole = [keys::MANAGER_APPLYSET, keys::MANAGER, delivery::deploy::MANAGER].contains(&request.manager.as_str());
        let is_parent = request.manager == delivery::deploy::MANAGER && request.key.gvk == delivery::Kind::Deployer.gvk();
        let is_somebodys = request.object.label(keys::PLATFORM).is_some();
        if is_whole && !is_parent && !is_somebodys { self.labelled.apply(request) } else { self.plain.apply(request) }
    }

    fn delete<'a>(&'a self, request: &'a Delete) -> Answer<'a, Result<(), WriteError>> {
        self.plain.delete(request)
    }
}

/// An applier behind a shared pointer.
struct ByArc(Arc<dyn Applier>);

impl Applier for ByArc {
    fn apply<'a>(&'a self, request: &'a Apply) -> Answer<'a, Result<Object, WriteError>> {
        self.0.apply(request)
    }

    fn delete<'a>(&'a self, request: &'a Delete) -> Answer<'a, Result<(), WriteError>> {
        self.0.delete(request)
    }
}
