//! The CRD of a definition: compared, written, and what the server says of it.

use std::{borrow::Cow, time::Duration};

use plinth_api::{Object, ObjectKey};
use plinth_cluster::{
    backoff::{Backoff, seed_of},
    watch::{Look, Owner, WatchSet},
};
use plinth_engine::{
    graph::{Compiled, Graph},
    naming::{keys, label_value},
    ports::{Apply, Query, WriteError},
};
use plinth_run::{Action, EventKind, Subject};

use super::{Definitions, REFUSED, ROLE, Trouble, crd_key, digest};
use crate::rgd::{
    crd::{self, Serving, Step},
    definition,
};

/// When a CRD that the server refused is written again: mostly the definition has to change first, and that is seen at once.
const REFUSED_CRD: Backoff = Backoff { first: Duration::from_secs(2), max: REFUSED, jitter: 0.25 };

impl Definitions {
    /// The CRD's place in the world, or why it may not be written.
    pub(super) async fn ensure_crd(
        &self,
        key: &ObjectKey,
        object: &Object,
        compiled: &Compiled,
        graph: &Graph,
    ) -> Result<Result<Serving, String>, Trouble> {
        let crd = crd_key(key, graph.crd.name());
        let live = self.installed(key, &crd).await?;
        // While kinds are missing, a status that reads them has no types. Nobody changed anything, so that is no change.
        let wanted = match &live {
            Some(live) if !compiled.missing().is_empty() => Cow::Owned(crd::with_known_status(live, &graph.crd)),
            _ => Cow::Borrowed(&graph.crd),
        };
        let heir_of = match &live {
            Some(live) => self.gone_owner(key, live, &graph.name).await?,
            None => None,
        };
        let owner = heir_of.as_deref().unwrap_or(&graph.name);
        let step = crd::step(live.as_ref(), &wanted, owner, definition::allows_breaking_changes(object));
        match step {
            Step::Refuse(message) => {
                self.count_refusal(key, false);
                Ok(Err(message))
            }
            Step::Keep => {
                self.count_refusal(key, false);
                live.iter().for_each(|live| self.tell_of(key, &crd, live));
                Ok(Ok(live.as_ref().map_or(Serving::Pending, crd::serving)))
            }
            Step::Write { breaking } => {
                let action = if live.is_some() { Action::Configure } else { Action::Create };
                let written = self.write_crd(key, &crd, &wanted, action, breaking).await;
                let refusal = written.as_ref().err().and_then(|trouble| refusal(&crd, action, trouble));
                self.count_refusal(key, refusal.is_some());
                refusal.map_or(written.map(Ok), |message| Ok(Err(message)))
            }
        }
    }

    /// The definition whose CRD this was, by its label, where it is gone: whoever wants the kind too takes it over. While it is there, its
    /// end is waited for.
    async fn gone_owner(&self, key: &ObjectKey, live: &Object, rgd: &str) -> Result<Option<String>, Trouble> {
        let Some(owner) = crd::other_owner(live, rgd) else { return Ok(None) };
        let query = Query { cluster: key.cluster.clone(), gvk: key.gvk.clone(), namespace: None, selector: String::new() };
        let definitions = match self.world.index.list(&query) {
            Some(list) => list,
            None => self.world.reader.list(&query).await?.into_iter().map(Into::into).collect(),
        };
        let there = definitions.iter().find(|definition| label_value(definition.name()) == owner);
        let Some(there) = there.and_then(|definition| definition.key(&key.cluster)) else { return Ok(Some(owner.to_owned())) };
        let mut set = WatchSet::default();
        set.objects.insert(there);
        self.world.index.extend(&Owner { role: ROLE, key: key.clone() }, set);
        Ok(None)
    }

    /// The CRD as it is now; from here on its changes are followed.
    async fn installed(&self, key: &ObjectKey, crd: &ObjectKey) -> Result<Option<Object>, Trouble> {
        let mut set = WatchSet::default();
        set.objects.extend([key.clone(), crd.clone()]);
        self.world.index.declare(&Owner { role: ROLE, key: key.clone() }, set);
        self.lock().entry(key.clone()).or_default().crd = Some(crd.name.clone());
        match self.world.index.look(crd) {
            Look::Present(live) => Ok(Some(self.newest(key, crd, &live))),
            Look::Absent | Look::Unwatched | Look::Unknown => Ok(self.world.reader.get(crd).await?),
        }
    }

    async fn write_crd(
        &self,
        key: &ObjectKey,
        crd: &ObjectKey,
        wanted: &Object,
        action: Action,
        breaking: Option<String>,
    ) -> Result<Serving, Trouble> {
        let apply =
            Apply { key: crd.clone(), object: wanted.clone(), manager: keys::MANAGER.to_owned(), force: true, subresource: None };
        let written = self.world.applier.apply(&apply).await?;
        let subject = Subject { parent: Some(key.clone()), ..Subject::root(crd.clone()) };
        if let Some(message) = breaking {
            let reason = "BreakingChange".to_owned();
            self.world.recorder.record(EventKind::Warning { subject: Some(subject.clone()), reason, message });
        }
        self.world.recorder.record(EventKind::ChangeApplied {
            subject,
            action,
            digest: digest(wanted),
            generation: written.generation(),
            result: None,
            uid: written.uid().map(str::to_owned),
        });
        self.tell_of(key, crd, &written);
        self.lock().entry(key.clone()).or_default().crd_written = Some(written.generation());
        let serving = crd::serving(&written);
        self.wrote(key, crd, written);
        Ok(serving)
    }

    fn count_refusal(&self, key: &ObjectKey, is_refused: bool) {
        let mut shared = self.lock();
        let known = shared.entry(key.clone()).or_default();
        known.refusals = if is_refused { known.refusals.saturating_add(1) } else { 0 };
    }

    /// When a CRD that the server refused is tried again; `None` where it did not.
    pub(super) fn next_attempt(&self, key: &ObjectKey) -> Option<Duration> {
        let refusals = self.lock().get(key).map(|known| known.refusals).filter(|refusals| *refusals > 0)?;
        Some(REFUSED_CRD.delay(refusals, seed_of(&key.name)))
    }
}

/// What the server has against a CRD; `None` where it is about something else.
fn refusal(crd: &ObjectKey, action: Action, trouble: &Trouble) -> Option<String> {
    let Trouble::Write(WriteError::Invalid { message, .. } | WriteError::Denied { message, .. }) = trouble else { return None };
    let verb = if action == Action::Create { "create" } else { "update" };
    Some(format!("failed to {verb} CRD {}: {message}", crd.name))
}
