//! The watch of the CRDs that keeps a catalog current.

use std::{
    sync::{Weak, atomic::Ordering},
    time::Duration,
};

use futures::future::join_all;
use plinth_api::{GroupVersionKind, Object};
use tokio::{sync::mpsc, time::sleep};

use super::{Catalog, ServedKind, discovery, schemas::CRDS, state::Crd};
use crate::{
    backoff::{Backoff, seed_of},
    http::Transport,
    watch::feed::{Feed, Step},
};

/// Delays between looks at the endpoint of a kind that was just established: it answers within milliseconds, as a rule. They stay
/// short, because everything that waits for the kind waits for the next look too.
const ENDPOINT: Backoff = Backoff { first: Duration::from_millis(5), max: Duration::from_millis(40), jitter: 0.0 };
/// Looks before the kind is announced all the same; writes that come too early are tried again by their callers.
const LOOKS: u32 = 100;

/// Runs until the catalog is dropped.
pub(super) async fn run(catalog: Weak<Catalog>, transport: Transport) {
    let (sender, steps) = mpsc::unbounded_channel();
    // Both ends are in this one future: dropping it ends both.
    tokio::join!(feed(&catalog, transport.clone(), sender), take(&catalog, &transport, steps));
}

/// Unbounded because what waits is at most every CRD of the server, which the list has in memory anyway.
async fn feed(catalog: &Weak<Catalog>, transport: Transport, steps: mpsc::UnboundedSender<Step>) {
    let gvk = GroupVersionKind::new("apiextensions.k8s.io", "v1", "CustomResourceDefinition");
    let mut feed = Feed::new(transport, CRDS.to_owned(), gvk);
    let mut attempt = 0;
    loop {
        let fault = feed
            .run(&mut |step| {
                attempt = 0;
                if let Some(catalog) = catalog.upgrade() {
                    catalog.followed.is_broken.store(false, Ordering::Relaxed);
                    catalog.followed.waiting.fetch_add(1, Ordering::Relaxed);
                }
                let _ = steps.send(step);
            })
            .await;
        let Some(catalog) = catalog.upgrade() else { return };
        catalog.followed.is_broken.store(true, Ordering::Relaxed);
        attempt += 1;
        let next = Backoff::REQUESTS.delay(attempt, seed_of(CRDS));
        tracing::warn!(?fault, attempt, ?next, "the watch of the CRDs failed and will be tried again");
        catalog.lock().forget_built_in();
        drop(catalog);
        sleep(next).await;
    }
}

async fn take(catalog: &Weak<Catalog>, transport: &Transport, mut steps: mpsc::UnboundedReceiver<Step>) {
    while let Some(step) = steps.recv().await {
        let Some(catalog) = catalog.upgrade() else { return };
        let changes = match step {
            Step::Opened => Vec::new(),
            Step::Reset(objects) => catalog.lock().reset(objects.iter().filter_map(Crd::read).collect()),
            Step::Deleted(object) => catalog.lock().remove(object.name()),
            Step::Applied(object) => put(&catalog, transport, &object).await,
        };
        catalog.announce(changes);
        catalog.followed.waiting.fetch_sub(1, Ordering::Relaxed);
    }
}

async fn put(catalog: &Catalog, transport: &Transport, object: &Object) -> Vec<super::SchemaChange> {
    let Some(crd) = Crd::read(object) else { return Vec::new() };
    if crd.is_established() {
        let fresh: Vec<_> = crd.kinds().filter(|kind| catalog.known(&kind.gvk).is_none()).collect();
        join_all(fresh.iter().map(|kind| answers(transport, kind))).await;
    }
    catalog.lock().put(crd)
}

/// Waits until an endpoint exists, as the server's discovery says: it knows of a kind after its endpoint does. Objects of the kind are
/// not asked for, because many kinds come that the identity has nothing to do with and may not list.
async fn answers(transport: &Transport, kind: &ServedKind) {
    for look in 1..=LOOKS {
        match discovery::group(transport, &kind.gvk.group, &kind.gvk.version).await {
            Ok(kinds) if !kinds.iter().any(|other| other.plural == kind.plural) => sleep(ENDPOINT.delay(look, 0)).await,
            _ => return,
        }
    }
    tracing::warn!(kind = %kind.gvk, "a kind is established, but its endpoint does not answer");
}
