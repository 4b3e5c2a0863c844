//! Where a platform may have left something: every kind that can be listed. What may not be looked at is said.

use std::{
    collections::{BTreeMap, BTreeSet},
    sync::Arc,
    time::Duration,
};

use futures::{StreamExt, stream};
use plinth_api::{ClusterKey, GroupKind, GroupVersionKind};
use plinth_engine::ports::{Query, ReadError};

use super::survey::{self, Found};
use crate::{error::Error, ports::Ports};

/// Lists at a time.
const AT_ONCE: usize = 8;
/// How often a kind is asked for of which only discovery knows: a server behind the server may be away for good. While the server
/// itself is away, that says nothing of a kind, and does not count.
const ATTEMPTS: u32 = 20;
/// Between two attempts.
const PAUSE: Duration = Duration::from_secs(1);
/// Kinds that a sentence names.
const NAMED: usize = 5;

/// The kinds that are looked through.
#[derive(Clone, Debug, Default, PartialEq)]
pub struct Scope {
    /// Kinds that the platform names itself: of its graphs, of its journal, of every run.
    known: BTreeSet<GroupVersionKind>,
    /// Kinds of which discovery alone knows.
    others: BTreeSet<GroupVersionKind>,
    /// Kinds whose objects live in namespaces.
    namespaced: BTreeSet<GroupKind>,
    /// What could not be looked at, and why.
    pub unseen: BTreeMap<String, String>,
}

/// What a look through all kinds found.
#[derive(Debug, Default)]
pub(super) struct Looked {
    /// Objects, each once, whatever versions its kind is served in.
    pub(super) found: Vec<Found>,
    /// What could not be looked at, and why.
    pub(super) unseen: BTreeMap<String, String>,
    /// Kinds whose objects live in namespaces.
    pub(super) namespaced: BTreeSet<GroupKind>,
}

impl Scope {
    /// The kinds that are known and those that discovery names.
    pub(super) async fn of(known: BTreeSet<GroupVersionKind>, ports: &Ports) -> Self {
        let mut scope = Self { known, ..Self::default() };
        let has: BTreeSet<GroupKind> = scope.known.iter().map(GroupVersionKind::group_kind).collect();
        match ports.schemas.listable().await {
            Ok(kinds) => {
                scope.namespaced = kinds.iter().filter(|kind| kind.namespaced).map(|kind| kind.gvk.group_kind()).collect();
                let news = kinds.into_iter().map(|kind| kind.gvk).filter(|gvk| !has.contains(&gvk.group_kind()));
                scope.others = news.collect();
            }
            Err(error) => drop(scope.unseen.insert("kinds that no graph names".to_owned(), error.to_string())),
        }
        scope
    }

    /// All objects with a label. `plain` asks once, `patient` until there is an answer.
    pub(super) async fn labelled(&self, selector: &str, plain: &Ports, patient: &Ports) -> Result<Looked, Error> {
        self.look(self.known.iter().chain(&self.others), None, selector, plain, patient).await
    }

    /// All objects in a namespace.
    pub(super) async fn inside(&self, namespace: &str, plain: &Ports, patient: &Ports) -> Result<Looked, Error> {
        let kinds = self.known.iter().chain(&self.others).filter(|gvk| self.namespaced.contains(&gvk.group_kind()));
        self.look(kinds, Some(namespace), "", plain, patient).await
    }

    async fn look(
        &self,
        kinds: impl Iterator<Item = &GroupVersionKind>,
        namespace: Option<&str>,
        selector: &str,
        plain: &Ports,
        patient: &Ports,
    ) -> Result<Looked, Error> {
        let query = |gvk: &GroupVersionKind| Query {
            cluster: ClusterKey::host(),
            gvk: gvk.clone(),
            namespace: namespace.map(str::to_owned),
            selector: selector.to_owned(),
        };
        let queries: Vec<(Query, bool)> = kinds.map(|gvk| (query(gvk), self.known.contains(gvk))).collect();
        let asked = stream::iter(queries).map(async |(query, is_known)| {
            let answer =
                if is_known { survey::ask(patient.reader.as_ref(), &query).await } else { some(&query, plain, patient).await };
            (query.gvk, is_known, answer)
        });
        let answers: Vec<_> = asked.buffered(AT_ONCE).collect().await;
        let mut looked = Looked { unseen: self.unseen.clone(), namespaced: self.namespaced.clone(), found: Vec::new() };
        let mut uids = BTreeSet::new();
        for (gvk, is_known, answer) in answers {
            match answer {
                // What has no UID is no object of the store, but computed where it is asked for.
                Ok(found) => looked
                    .found
                    .extend(found.into_iter().filter(|found| found.object.uid().is_some_and(|uid| uids.insert(uid.to_owned())))),
                Err(error @ ReadError::Unavailable(_)) if is_known => return Err(error.into()),
                Err(error) => drop(looked.unseen.insert(gvk.group_kind().to_string(), error.to_string())),
            }
        }
        Ok(looked)
    }
}

/// Asks a few times, each time a server that is there.
async fn some(query: &Query, plain: &Ports, patient: &Ports) -> Result<Vec<Found>, ReadError> {
    let clock = Arc::clone(plain.log.clock());
    let mut attempt = 1;
    loop {
        match survey::ask(plain.reader.as_ref(), query).await {
            Err(ReadError::Unavailable(_)) if attempt < ATTEMPTS => {
                attempt += 1;
                clock.sleep(PAUSE).await;
                // Waits for it.
                patient.access.identity().await?;
            }
            answer => return answer,
        }
    }
}

/// What could not be looked at, in one sentence.
pub(super) fn unseen(unseen: &BTreeMap<String, String>) -> Option<String> {
    let (_, why) = unseen.first_key_value()?;
    let names: Vec<&str> = unseen.keys().take(NAMED).map(String::as_str).collect();
    let more = unseen.len().saturating_sub(NAMED);
    let more = if more > 0 { format!(" and {more} more") } else { String::new() };
    Some(format!("{}{more} could not be looked at: {why}", names.join(", ")))
}
