//! The stages: the run's own steps, the levels of the graphs, and at the end what has to wait for kinds.

use std::collections::{BTreeMap, BTreeSet};

use plinth_api::GroupVersionKind;
use plinth_run::{Action, Change, Stage, StageId, Subject, plan::Writer};

use super::{Draft, expand::Place, live::Found};
use crate::wanted::{Step, Wanted};

/// How many kinds a title names.
const NAMED: usize = 4;

/// Lays all changes out in stages; none is empty.
pub(super) fn lay_out(draft: &Draft, found: &Found) -> Vec<Stage> {
    let own = [Step::Foundation, Step::Controller, Step::Definitions, Step::Instance].map(|step| own_stage(step, draft, found));
    let (waiting, free): (Vec<&Place>, Vec<&Place>) = draft.places.iter().partition(|place| !place.waits_for.is_empty());
    let levels = by_level(&free).into_values().map(|places| {
        let changes: Vec<Change> = places.iter().map(|place| free_change(place, found)).collect();
        (titled(&changes), changes, "all of them are ready".to_owned())
    });
    let deferred = by_level(&waiting).into_values().map(|places| {
        let kinds: BTreeSet<&GroupVersionKind> = places.iter().flat_map(|place| &place.waits_for).collect();
        let kinds: Vec<String> = kinds.into_iter().map(ToString::to_string).collect();
        let changes: Vec<Change> = places.iter().map(|place| waiting_change(place)).collect();
        (format!("deferred: {}", titled(&changes)), changes, format!("{} served and all of them ready", are(&kinds)))
    });
    let all = own.into_iter().chain(levels).chain(deferred).filter(|(_, changes, _)| !changes.is_empty());
    all.zip(1..).map(|((title, changes, until), id)| Stage { id: StageId(id), title, changes, until }).collect()
}

fn own_stage(step: Step, draft: &Draft, found: &Found) -> (String, Vec<Change>, String) {
    let changes = draft.wanted.iter().filter(|wanted| wanted.step == step).map(|wanted| own_change(wanted, found)).collect();
    let (title, until) = match step {
        Step::Foundation => ("foundation", "the kinds of definitions and delivery are served"),
        Step::Controller => ("controller", "it is written; it goes on with the platform as soon as a pod of it is ready"),
        Step::Definitions => ("definitions", "the kinds that they define are served"),
        Step::Instance => ("instance", "it is ready, and with it every stage below"),
    };
    (title.to_owned(), changes, until.to_owned())
}

fn own_change(wanted: &Wanted, found: &Found) -> Change {
    let mut change = change(Subject::root(wanted.key.clone()), Writer::Run, found);
    change.digest.clone_from(&wanted.digest);
    change
}

fn free_change(place: &Place, found: &Found) -> Change {
    let mut change = change(place.subject.clone(), Writer::Loop, found);
    if !place.is_named() {
        change.note = Some("its name is known only during the run".into());
    }
    change
}

fn waiting_change(place: &Place) -> Change {
    let kinds: Vec<String> = place.waits_for.iter().map(ToString::to_string).collect();
    Change {
        subject: place.subject.clone(),
        action: Action::Defer,
        by: Writer::Loop,
        digest: String::new(),
        resource_version: None,
        fields: Vec::new(),
        note: Some(format!("waits for {}", kinds.join(", "))),
    }
}

fn change(subject: Subject, by: Writer, found: &Found) -> Change {
    let standing = found.get(&subject.key);
    Change {
        action: standing.map_or(Action::Create, |standing| standing.action),
        by,
        digest: String::new(),
        resource_version: standing.and_then(|standing| standing.resource_version.clone()),
        fields: standing.map(|standing| standing.fields.clone()).unwrap_or_default(),
        note: standing.and_then(|standing| standing.note.clone()),
        subject,
    }
}

fn by_level<'a>(places: &[&'a Place]) -> BTreeMap<usize, Vec<&'a Place>> {
    let mut levels: BTreeMap<usize, Vec<&Place>> = BTreeMap::new();
    for place in places {
        levels.entry(place.level).or_default().push(place);
    }
    levels
}

/// The kinds in it, with counts: `2 Component, Deployment, and 3 more kinds`.
fn titled(changes: &[Change]) -> String {
    let mut counts: Vec<(&str, usize)> = Vec::new();
    for change in changes {
        let kind = change.subject.key.gvk.kind.as_str();
        match counts.iter_mut().find(|(known, _)| *known == kind) {
            Some((_, count)) => *count += 1,
            None => counts.push((kind, 1)),
        }
    }
    let more = counts.len().saturating_sub(NAMED);
    let print = |(kind, count): &(&str, usize)| if *count == 1 { (*kind).to_owned() } else { format!("{count} {kind}") };
    let mut parts: Vec<String> = counts.iter().take(NAMED).map(print).collect();
    if more > 0 {
        parts.push(format!("and {more} more kinds"));
    }
    parts.join(", ")
}

fn are(kinds: &[String]) -> String {
    format!("{} {}", kinds.join(", "), if kinds.len() == 1 { "is" } else { "are" })
}
