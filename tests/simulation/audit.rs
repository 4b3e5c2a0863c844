//! Looks at every request that a process makes while it is made, and holds it against the promises.

use std::{
    collections::{BTreeMap, BTreeSet},
    fmt,
    sync::{Arc, Mutex},
};

use bytes::Bytes;
use http::Uri;
use plinth_api::Object;
use plinth_engine::naming::keys;
use plinth_run::{Event, EventKind, RunState, Sink};

use crate::{door::Door, trace::Trace};

/// One request.
#[derive(Clone, Debug)]
pub(crate) struct Asked {
    method: String,
    path: String,
    query: String,
    body: Bytes,
}

impl Asked {
    pub(crate) fn new(method: &str, uri: &Uri, body: Bytes) -> Self {
        Self { method: method.to_owned(), path: uri.path().to_owned(), query: uri.query().unwrap_or_default().to_owned(), body }
    }

    pub(crate) fn is_watch(&self) -> bool {
        self.query.contains("watch=true")
    }

    /// Whether it is about what is at this path, or creates it there.
    pub(crate) fn is_of(&self, path: &str) -> bool {
        self.path == path || self.method == "POST" && path.rsplit_once('/').is_some_and(|(collection, _)| collection == self.path)
    }

    /// Whether it changes an object; reviews are questions.
    pub(crate) fn is_write(&self) -> bool {
        self.method != "GET" && !self.path.contains("/selfsubject") && !self.query.contains("dryRun")
    }

    fn manager(&self) -> &str {
        self.query.split('&').find_map(|pair| pair.strip_prefix("fieldManager=")).unwrap_or_default()
    }

    /// Whether the write is one that an event tells of: whole objects, but neither a status nor what is only put onto the
    /// object of somebody else.
    fn is_told(&self) -> bool {
        let whole = [keys::MANAGER, keys::MANAGER_APPLYSET].iter().any(|name| name.replace('/', "%2F") == self.manager());
        whole && !self.path.ends_with("/status")
    }
}

/// Prints the method, the path, and for an apply its field manager.
impl fmt::Display for Asked {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        write!(f, "{} {}", self.method, self.path)?;
        match self.manager() {
            "" => Ok(()),
            manager => write!(f, " as {manager}"),
        }
    }
}

/// What was applied last by a manager to an object.
#[derive(Clone, Debug)]
struct Applied {
    body: Bytes,
    /// The object that came of it.
    result: Object,
    uid: String,
    generation: i64,
    /// Whether events tell of such writes.
    is_told: bool,
    /// Whether the process that is alive knows.
    is_known: bool,
}

/// Which deletions are in order.
#[derive(Clone, Debug, Default)]
pub(crate) enum Deletions {
    /// None is.
    #[default]
    None,
    /// These paths may go, once all of the others are there.
    Prune { going: BTreeSet<String>, staying: BTreeSet<String> },
    /// Everything that is ours.
    All,
}

/// The memory of one simulation.
pub(crate) struct Audit {
    door: Door,
    trace: Arc<Trace>,
    inner: Mutex<Inner>,
}

#[derive(Default)]
struct Inner {
    applied: BTreeMap<(String, String), Applied>,
    /// Digests of inputs by the UID of the object and the body of the request, as events told of them.
    digests: BTreeMap<(String, Bytes), String>,
    deletions: Deletions,
    writes: usize,
}

impl Audit {
    pub(crate) fn new(door: Door, trace: Arc<Trace>) -> Arc<Self> {
        Arc::new(Self { door, trace, inner: Mutex::default() })
    }

    /// Says which deletions are in order from now on.
    pub(crate) fn allow(&self, deletions: Deletions) {
        self.inner.lock().unwrap().deletions = deletions;
    }

    /// A process begins with this journal: only what it proves is known to it. That is the input by its digest and the
    /// generation that came of it (contracts 22). The generation alone proves nothing: a ConfigMap has none, so that an older
    /// input of the same object would stand for one whose process died before the journal had it.
    pub(crate) fn begin(&self, journal: &RunState) {
        let mut inner = self.inner.lock().unwrap();
        let Inner { applied, digests, .. } = &mut *inner;
        for ((path, _), applied) in applied {
            let digest = digests.get(&(applied.uid.clone(), applied.body.clone()));
            applied.is_known = journal.applied.iter().any(|(key, proof)| {
                path.ends_with(&format!("/{}", key.name))
                    && proof.uid.as_ref() == Some(&applied.uid)
                    && proof.generation == applied.generation
                    && (!applied.is_told || digest == Some(&proof.digest))
            });
        }
    }

    /// Writes that were carried out.
    pub(crate) fn writes(&self) -> usize {
        self.inner.lock().unwrap().writes
    }

    /// Just before a request has its effect.
    pub(crate) async fn before(&self, asked: &Asked) {
        if asked.method != "DELETE" {
            return;
        }
        let deletions = self.inner.lock().unwrap().deletions.clone();
        match deletions {
            Deletions::All => {}
            Deletions::Prune { going, staying } if going.contains(&asked.path) => {
                for path in staying {
                    if self.door.get(&path).await.is_none() {
                        self.trace.broken("prune only after a complete pass", &format!("{asked} while {path} is missing"));
                    }
                }
            }
            Deletions::Prune { .. } | Deletions::None => {
                // What is gone already, or will be with its owner, is not deleted by this.
                if self.door.get(&asked.path).await.is_some() {
                    self.trace.broken("never delete on failure", &format!("{asked}: nothing is to go"));
                }
            }
        }
    }

    /// A request had its effect.
    pub(crate) fn after(&self, asked: &Asked, code: u16, answer: Option<Object>, is_delivered: bool) {
        if !asked.is_write() || code >= 300 {
            return;
        }
        let mut inner = self.inner.lock().unwrap();
        inner.writes += 1;
        if asked.method != "PATCH" {
            return;
        }
        let Some(result) = answer else { return };
        let (uid, generation) = (result.uid().unwrap_or_default().to_owned(), result.generation());
        let is_status = asked.path.ends_with("/status");
        let key = (asked.path.clone(), asked.manager().to_owned());
        let next =
            Applied { body: asked.body.clone(), result, uid, generation, is_told: asked.is_told(), is_known: is_delivered };
        if let Some(before) = inner.applied.insert(key, next.clone())
            && before.is_known
            && before.uid == next.uid
            && before.body == next.body
            && settled(before.result, is_status) == settled(next.result, is_status)
        {
            self.trace.broken("nothing twice", &format!("{asked}: the same again, and it was known to be there"));
        }
    }

    /// Somebody else changed the object: whatever was applied to it may have to be applied again, also by a process that begins
    /// later and reads in the journal that it was applied.
    pub(crate) fn moved(&self, path: &str) {
        self.inner.lock().unwrap().applied.retain(|(at, _), _| at != path);
    }

    /// The answer to a request got lost on its way.
    pub(crate) fn undelivered(&self, asked: &Asked) {
        let key = (asked.path.clone(), asked.manager().to_owned());
        if let Some(applied) = self.inner.lock().unwrap().applied.get_mut(&key) {
            applied.is_known = false;
        }
    }
}

/// Learns which input a body is.
impl Sink for Audit {
    fn take(&self, event: &Event) {
        let EventKind::ChangeApplied { digest, uid: Some(uid), .. } = &event.kind else { return };
        let mut inner = self.inner.lock().unwrap();
        let Inner { applied, digests, .. } = &mut *inner;
        for applied in applied.values().filter(|applied| applied.is_told && applied.uid == *uid) {
            digests.insert((uid.clone(), applied.body.clone()), digest.clone());
        }
    }
}

/// An object without what others and the server move.
fn settled(mut object: Object, is_status: bool) -> Object {
    let metadata = object.metadata_mut();
    metadata.remove("resourceVersion");
    metadata.remove("managedFields");
    metadata.remove("generation");
    if !is_status {
        object.0.remove("status");
    }
    object
}
