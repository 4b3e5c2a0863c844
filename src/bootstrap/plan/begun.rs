//! How a move begins: which definitions it cannot wait for.
//!
//! A move waits at each definition until its instances are ready. Where one was not ready before and what comes later in the same move
//! may mend it (a graph that gives it other values), waiting would never end: such a platform could go neither on nor back.

use std::collections::BTreeSet;

use plinth_api::{ClusterKey, ObjectKey, lock::ReleaseLock};
use plinth_engine::{
    health::{Health, judge},
    ports::{Query, ReadError, Reader},
};
use plinth_run::Action;

use super::{Built, Draft, Found, Place, is_workload, live};
use crate::{
    error::Error,
    release::{self, Begun, Releases},
    runner::says_ready,
    settings::{Settings, Way},
};

/// What the cluster says of the move that is under way, or what it is to say of the one that begins.
pub(super) async fn look(
    draft: &Draft,
    settings: &Settings,
    (lock, there): (&ReleaseLock, &Releases),
    reader: &dyn Reader,
) -> Result<Begun, Error> {
    let current = there.current.as_ref().filter(|_| !release::begins(settings, lock, there));
    if let Some(current) = current {
        return Ok(current.begun.clone());
    }
    let not_awaited = if there.current.is_some() { not_awaited(draft, settings, reader).await? } else { BTreeSet::new() };
    Ok(Begun { not_awaited, is_back: settings.way == Way::Back })
}

async fn not_awaited(draft: &Draft, settings: &Settings, reader: &dyn Reader) -> Result<BTreeSet<String>, Error> {
    let mut open = Vec::new();
    for built in &draft.built {
        if !is_ready(built, &draft.places, reader).await? {
            open.push(built);
        }
    }
    if open.is_empty() {
        return Ok(BTreeSet::new());
    }
    let found = live::look(draft, settings, reader).await?;
    let changes = Changes { draft, found };
    Ok(open.into_iter().filter(|built| changes.may_mend(built)).map(|built| built.key.name.clone()).collect())
}

/// Whether all instances of a definition are ready, and the programs that they made have rolled out.
async fn is_ready(built: &Built, places: &[Place], reader: &dyn Reader) -> Result<bool, Error> {
    let gvk = built.graph.instance.gvk.clone();
    let query = Query { cluster: ClusterKey::host(), gvk: gvk.clone(), namespace: None, selector: String::new() };
    let instances = match reader.list(&query).await {
        // Who may not look finds out by waiting.
        Err(ReadError::NotServed(_) | ReadError::Forbidden { .. }) => return Ok(true),
        other => other?,
    };
    if !instances.iter().all(says_ready) {
        return Ok(false);
    }
    let of_kind = |place: &&Place| place.subject.parent.as_ref().is_some_and(|parent| parent.gvk == gvk);
    let programs = places.iter().filter(of_kind).filter(|place| place.is_named() && is_workload(&place.subject.key.gvk));
    for place in programs {
        let program = live::read(reader, &place.subject.key).await?;
        if program.is_some_and(|program| judge(&program).health != Health::Current) {
            return Ok(false);
        }
    }
    Ok(true)
}

/// What a move writes.
struct Changes<'a> {
    draft: &'a Draft,
    found: Found,
}

impl Changes<'_> {
    /// Whether something that is written after a definition may mend its instances: nothing of the definition itself will, or they get
    /// other values.
    fn may_mend(&self, built: &Built) -> bool {
        let of_kind = |place: &&Place| place.subject.key.gvk == built.graph.instance.gvk;
        !self.is_written(&built.key) || self.draft.places.iter().filter(of_kind).any(|place| self.may_change(place))
    }

    /// Whether an instance gets other values, as far as they are known; those that are not are by a graph that changes.
    fn may_change(&self, place: &Place) -> bool {
        let by = self.draft.built.iter().find(|built| built.key.name == place.rgd);
        self.is_written(&place.subject.key) || !place.unresolved.is_empty() && by.is_some_and(|by| self.is_written(&by.key))
    }

    fn is_written(&self, key: &ObjectKey) -> bool {
        self.found.get(key).is_some_and(|standing| matches!(standing.action, Action::Create | Action::Configure))
    }
}
