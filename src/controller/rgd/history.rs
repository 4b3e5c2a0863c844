//! The shell around revisions: reads, issues, adopts, drops them, and goes back to one.
//!
//! Invariant: a cluster that does not serve revisions, or does not let them be written, has no history and is no worse otherwise. A right
//! that is missing is said, in a condition that Ready does not count and in an event.

use std::{sync::Arc, time::Duration};

use plinth_api::{ClusterKey, GroupVersionKind, Object, ObjectKey, rgd};
use plinth_engine::{
    graph::{Compiled, Graph},
    naming::keys,
    ports::{Apply, Delete, Query, ReadError, WriteError},
};
use plinth_manager::{reconcile::Outcome, status::write_if_changed};
use plinth_run::{Action, EventKind, Subject};

use super::{
    crd, definition,
    reconcile::{Definitions, Trouble, crd_key, digest},
    revision::{self, Revision},
};

/// When leftovers are looked for again where the server did not answer.
const LATER: Duration = Duration::from_mins(1);
/// The rule that keeping a history takes.
const REVISIONS: &str =
    "{apiGroups: [internal.kro.run], resources: [graphrevisions], verbs: [get, list, watch, create, patch, update, delete]}";
/// The rule that its status takes.
const STATUS: &str = "{apiGroups: [internal.kro.run], resources: [graphrevisions/status], verbs: [patch]}";

/// The revision that a definition's instances run by.
#[derive(Clone, Debug, Default, PartialEq, Eq)]
pub(super) struct Issued {
    /// Its number; 0 before the first.
    pub(super) number: i64,
    hash: String,
}

/// Asks for a pass over revisions whose definitions are gone.
pub(crate) fn leftovers(cluster: &ClusterKey) -> ObjectKey {
    ObjectKey { cluster: cluster.clone(), gvk: revision::gvk(), namespace: None, name: String::new() }
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
            Err(ReadError::NotServed(_)) => return Ok(None),
            Err(error @ ReadError::Forbidden { .. }) => {
                self.refused(key, &error.to_string(), REVISIONS);
                return Ok(None);
            }
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
        self.set_history(key, None);
        let too_many = revision::surplus(&revisions, usize::from(newest.is_none()), number);
        for old in too_many {
            self.drop_revision(key, &old.object).await?;
        }
        self.set_issued(key, Issued { number, hash });
        self.verified(key, number, compiled).await.map(Some)
    }

    /// Says which right is missing, once for as long as it is.
    fn refused(&self, key: &ObjectKey, error: &str, rule: &str) {
        let message = format!("the definition has no history: {error}: the controller needs the rule {rule}");
        if self.set_history(key, Some(message.clone())) {
            let subject = Some(Subject::root(key.clone()));
            self.world.recorder.record(EventKind::Warning { subject, reason: "RevisionNotPermitted".to_owned(), message });
        }
    }

    /// Deletes revisions of definitions that are gone. Their owner goes without its finalizer where somebody takes that off, and a
    /// server without garbage collection keeps them for ever.
    pub(super) async fn swept(&self, cluster: &ClusterKey) -> Outcome {
        if !self.world.removing
            && let Err(trouble) = self.sweep(cluster).await
        {
            tracing::debug!(%cluster, %trouble, "revisions of definitions that are gone were not looked for");
            return Outcome::RequeueAfter(LATER);
        }
        Outcome::Done
    }

    async fn sweep(&self, cluster: &ClusterKey) -> Result<(), Trouble> {
        let list = |gvk, selector| Query { cluster: cluster.clone(), gvk, namespace: None, selector };
        let own = list(revision::gvk(), format!("{}=true", keys::OWNED));
        // In this order: a definition is there before its first revision is.
        let revisions = match self.world.reader.list(&own).await {
            Err(ReadError::NotServed(_) | ReadError::Forbidden { .. }) => return Ok(()),
            answer => answer?,
        };
        if revisions.is_empty() {
            return Ok(());
        }
        let definitions = GroupVersionKind::new(rgd::KRO_GROUP, rgd::VERSION, rgd::KIND);
        let definitions = self.world.reader.list(&list(definitions, String::new())).await?;
        for (definition, orphan) in revision::orphans(&revisions, &definitions) {
            let gvk = GroupVersionKind::new(rgd::KRO_GROUP, rgd::VERSION, rgd::KIND);
            let key = ObjectKey { cluster: cluster.clone(), gvk, namespace: None, name: definition };
            self.drop_revision(&key, orphan).await?;
        }
        Ok(())
    }

    /// Writes what compiling said into the revision in use; answers with its number.
    async fn verified(&self, key: &ObjectKey, number: i64, compiled: &Compiled) -> Result<i64, Trouble> {
        let word = format!("{:?}", compiled.missing());
        if self.is_verified(key, number, &word) {
            return Ok(number);
        }
        let at = revision::key(&key.cluster, &key.name, number);
        let revision = match self.world.reader.get(&at).await {
            Err(error @ ReadError::Forbidden { .. }) => {
                self.refused(key, &error.to_string(), REVISIONS);
                return Ok(number);
            }
            answer => answer?,
        };
        if let Some(revision) = revision {
            let status = revision::status(&revision, compiled, self.world.clock.now());
            match write_if_changed(&*self.world.applier, &at, &revision, status, keys::MANAGER).await {
                Ok(written) => self.tell_of(key, &at, written.as_ref().unwrap_or(&revision)),
                Err(error @ WriteError::Forbidden { .. }) => {
                    self.refused(key, &words(&error), STATUS);
                    self.tell_of(key, &at, &revision);
                    return Ok(number);
                }
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
            Err(error @ WriteError::Forbidden { .. }) => {
                self.refused(key, &words(&error), REVISIONS);
                return Ok(false);
            }
            Err(error @ WriteError::NotServed(_)) => {
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

    async fn drop_revision(&self, key: &ObjectKey, revision: &Object) -> Result<(), Trouble> {
        let Some(at) = revision.key(&key.cluster) else { return Ok(()) };
        let uid = revision.uid().map(str::to_owned);
        match self.world.applier.delete(&Delete { key: at.clone(), uid: uid.clone() }).await {
            // It stays until the garbage collector finds its owner gone, and holds up nothing.
            Err(error @ WriteError::Forbidden { .. }) => {
                self.refused(key, &words(&error), REVISIONS);
                return Ok(());
            }
            answer => answer?,
        }
        // kro puts its finalizer on revisions; a revision of ours has none.
        if revision.finalizers().contains(&keys::FINALIZER) {
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
            self.drop_revision(key, &revision.object).await?;
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

/// A refusal with the server's own words: it may be another rule than that of revisions, such as that of their owner's finalizers.
fn words(error: &WriteError) -> String {
    match error {
        WriteError::Forbidden { message, .. } => format!("{error} ({message})"),
        other => other.to_string(),
    }
}
