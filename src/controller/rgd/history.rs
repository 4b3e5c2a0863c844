//! The shell around revisions: reads, issues, adopts, drops them, and goes back to one.
//!
//! Invariant: a cluster that does not serve revisions, or does not let them be written, has no history and is no worse otherwise.

use std::sync::Arc;

use plinth_api::{Object, ObjectKey, rgd};
use plinth_engine::{
    graph::{Compiled, Graph},
    naming::keys,
    ports::{Apply, Delete, Query, ReadError, WriteError},
};
use plinth_manager::status::write_if_changed;
use plinth_run::{Action, EventKind, Subject};

use super::{
    crd, definition,
    reconcile::{Definitions, Trouble, crd_key, digest},
    revision::{self, Revision},
};

/// The revision that a definition's instances run by.
#[derive(Clone, Debug, Default, PartialEq, Eq)]
pub(super) struct Issued {
    /// Its number; 0 before the first.
    pub(super) number: i64,
    hash: String,
}

impl Definitions {
    /// All revisions of a definition, oldest first; `None` where the cluster has none to offer.
    pub(super) async fn revisions(&self, key: &ObjectKey) -> Result<Option<Vec<Revision>>, Trouble> {
        if key.gvk.group != rgd::KRO_GROUP {
            return Ok(None);
        }
        let query = Query {
            cluster: key.cluster.clone(),
            gvk: revision::gvk(),
            namespace: None,
            selector: format!("{}=true", keys::OWNED),
        };
        let objects = match self.world.reader.list(&query).await {
            Ok(objects) => objects,
            Err(ReadError::NotServed(_) | ReadError::Forbidden { .. }) => return Ok(None),
            Err(error) => return Err(error.into()),
        };
        Ok(Some(revision::of(&key.name, &objects)))
    }

    /// Issues a revision where the definition is not as the newest one, and says which one is in use.
    pub(super) async fn issue(&self, key: &ObjectKey, object: &Object, compiled: &Compiled) -> Result<Option<i64>, Trouble> {
        let hash = plinth_engine::graph::spec_hash(object.spec());
        let known = self.issued(key);
        if known.hash == hash {
            return self.verified(key, known.number, compiled).await.map(Some);
        }
        let Some(revisions) = self.revisions(key).await? else { return Ok(None) };
        let last = object.status()["lastIssuedRevision"].as_i64().unwrap_or_default().max(known.number);
        let newest = revisions.last().filter(|newest| newest.hash == hash);
        let number = match newest {
            Some(newest) => newest.number,
            None => revisions.last().map_or(0, |newest| newest.number).max(last) + 1,
        };
        if newest.is_none() && !self.write_revision(key, revision::issue(object, number), Action::Create).await? {
            return Ok(None);
        }
        for adopted in revisions.iter().filter_map(|old| revision::adopt(object, old)) {
            self.write_revision(key, adopted, Action::Configure).await?;
        }
        let too_many = revision::surplus(&revisions, usize::from(newest.is_none()), number);
        for old in too_many {
            self.drop_revision(key, old).await?;
        }
        self.set_issued(key, Issued { number, hash });
        self.verified(key, number, compiled).await.map(Some)
    }

    /// Writes what compiling said into the revision in use; answers with its number.
    async fn verified(&self, key: &ObjectKey, number: i64, compiled: &Compiled) -> Result<i64, Trouble> {
        let word = format!("{:?}", compiled.missing());
        if self.is_verified(key, number, &word) {
            return Ok(number);
        }
        let at = revision::key(&key.cluster, &key.name, number);
        if let Some(revision) = self.world.reader.get(&at).await? {
            let status = revision::status(&revision, compiled, self.world.clock.now());
            match write_if_changed(&*self.world.applier, &at, &revision, status, keys::MANAGER).await {
                Ok(written) => self.tell_of(key, &at, written.as_ref().unwrap_or(&revision)),
                Err(WriteError::Forbidden { .. }) => self.tell_of(key, &at, &revision),
                Err(WriteError::NotFound { .. }) => {}
                Err(error) => return Err(error.into()),
            }
        }
        self.set_verified(key, number, word);
        Ok(number)
    }

    /// Whether it could be written.
    async fn write_revision(&self, key: &ObjectKey, object: Object, action: Action) -> Result<bool, Trouble> {
        let at = object.key(&key.cluster).expect("a revision has kind and name");
        let digest = digest(&object);
        let apply = Apply { key: at.clone(), object, manager: keys::MANAGER.to_owned(), force: true, subresource: None };
        let written = match self.world.applier.apply(&apply).await {
            Ok(written) => written,
            Err(error @ (WriteError::Forbidden { .. } | WriteError::NotServed(_))) => {
                tracing::warn!(definition = %key, %error, "the definition has no revisions: going back to one will not be possible");
                return Ok(false);
            }
            Err(error) => return Err(error.into()),
        };
        if action == Action::Create {
            self.world.figures.count("rgd_graph_revision_issue_total", &[("name", &key.name)]);
            self.world.figures.count("graph_revision_compile_total", &[("result", "success")]);
        }
        self.world.recorder.record(EventKind::ChangeApplied {
            subject: Subject { parent: Some(key.clone()), ..Subject::root(at.clone()) },
            action,
            digest,
            generation: written.generation(),
            result: None,
            uid: written.uid().map(str::to_owned),
        });
        // A new one is told of once it is verified.
        if action != Action::Create {
            self.tell_of(key, &at, &written);
        }
        Ok(true)
    }

    async fn drop_revision(&self, key: &ObjectKey, revision: &Revision) -> Result<(), Trouble> {
        let Some(at) = revision.object.key(&key.cluster) else { return Ok(()) };
        let uid = revision.object.uid().map(str::to_owned);
        self.world.applier.delete(&Delete { key: at.clone(), uid: uid.clone() }).await?;
        // kro puts its finalizer on revisions; a revision of ours has none.
        if revision.object.finalizers().contains(&keys::FINALIZER) {
            self.world.finalizers.remove(&at, keys::FINALIZER).await?;
        }
        self.world.figures.count("rgd_graph_revision_gc_deleted_total", &[("name", &key.name)]);
        self.world.recorder.record(EventKind::ChangeApplied {
            subject: Subject { parent: Some(key.clone()), ..Subject::root(at) },
            action: Action::Delete,
            digest: String::new(),
            generation: 0,
            result: None,
            uid,
        });
        Ok(())
    }

    /// Drops all revisions of a definition that goes. An API server without garbage collection would keep them for ever.
    pub(super) async fn drop_revisions(&self, key: &ObjectKey) -> Result<(), Trouble> {
        for revision in self.revisions(key).await?.into_iter().flatten() {
            self.drop_revision(key, &revision).await?;
        }
        Ok(())
    }

    /// The graph in use or, after a restart, that of the newest revision that compiles and whose CRD is there.
    pub(super) async fn last_good(&self, key: &ObjectKey, object: &Object) -> Result<Option<Arc<Graph>>, Trouble> {
        if let Some(published) = self.graphs.of_definition(key) {
            return Ok(Some(published.graph));
        }
        for old in self.revisions(key).await?.into_iter().flatten().rev() {
            let Ok(definition) = definition::read(&revision::restored(&old, object)) else { continue };
            let uses = self.uses(key);
            let compiled = self.compile(key, &definition).await?;
            self.also_uses(key, uses);
            let Some(graph) = compiled.graph() else { continue };
            let live = self.world.reader.get(&crd_key(key, graph.crd.name())).await?;
            if live.is_some_and(|live| crd::serving(&live) == crd::Serving::Established) {
                self.set_issued(key, Issued { number: old.number, hash: old.hash });
                self.publish(key, graph);
                return Ok(Some(Arc::clone(graph)));
            }
        }
        Ok(None)
    }
}
