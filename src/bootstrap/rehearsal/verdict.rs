//! What a rehearsal found.

use std::collections::{BTreeMap, BTreeSet};

use plinth_api::{GroupVersionKind, Permission, platform::API_VERSION};
use plinth_run::{CheckVerdict, Health, Outcome, RunState};
use serde::Serialize;

use super::{survey::Survey, worse};

/// The end of a rehearsal: how `up` would end, and everything that would be missing. Lists are sorted.
#[derive(Clone, Debug, PartialEq, Serialize)]
#[serde(rename_all = "camelCase")]
pub struct Verdict {
    /// `plinth.dev/v1alpha1`.
    pub api_version: String,
    /// `Rehearsal`.
    pub kind: String,
    /// The SOURCE.
    pub source: String,
    /// How `up` would end; the exit code follows from it.
    pub outcome: Outcome,
    /// How the run itself ended, empty where all is well.
    pub message: String,
    /// Milliseconds from the run's first event to its last.
    pub took_ms: u64,
    /// Objects that are ready, of those that are known.
    pub ready: usize,
    /// Objects that are known.
    pub total: usize,
    /// Images that cannot be pulled.
    pub images: Vec<MissingImage>,
    /// Kinds that nobody brings.
    pub kinds: Vec<MissingKind>,
    /// What the identity may not do.
    pub permissions: Vec<String>,
    /// Nodes that were deferred and never resolved.
    pub deferred: Vec<Unresolved>,
    /// What workloads lack besides images: a Secret, a ServiceAccount.
    pub lacking: Vec<Trouble>,
    /// Objects that are not ready.
    pub unready: Vec<Unready>,
    /// What stops nothing and is worth knowing, such as images that are in the mirror under other names and rules of the
    /// scenario that did not do what they say.
    #[serde(skip_serializing_if = "Vec::is_empty")]
    pub warnings: Vec<String>,
}

/// An image that cannot be pulled.
#[derive(Clone, Debug, PartialEq, Eq, Serialize)]
#[serde(rename_all = "camelCase")]
pub struct MissingImage {
    /// The reference.
    pub image: String,
    /// Objects that name it.
    pub needed_by: Vec<String>,
}

/// A kind that nobody brings.
#[derive(Clone, Debug, PartialEq, Eq, Serialize)]
#[serde(rename_all = "camelCase")]
pub struct MissingKind {
    /// The kind.
    pub kind: GroupVersionKind,
    /// Who was expected to bring it, where something points to one.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub expected_from: Option<String>,
}

/// A node that waited to the end.
#[derive(Clone, Debug, PartialEq, Eq, Serialize)]
#[serde(rename_all = "camelCase")]
pub struct Unresolved {
    /// The definition.
    pub subject: String,
    /// The node.
    pub node: String,
    /// The kinds that it waits for.
    pub missing: Vec<GroupVersionKind>,
}

/// An object and what is wrong with it.
#[derive(Clone, Debug, PartialEq, Eq, PartialOrd, Ord, Serialize)]
pub struct Trouble {
    /// The object.
    pub subject: String,
    /// One word in UpperCamelCase.
    pub reason: String,
    /// A sentence.
    pub message: String,
}

/// An object that is not ready.
#[derive(Clone, Debug, PartialEq, Eq, Serialize)]
pub struct Unready {
    /// The object.
    pub subject: String,
    /// How it is: waiting, progressing and failed are three words.
    pub health: Health,
    /// Why, in a sentence.
    pub message: String,
}

/// Puts together what is known. `ended` is how the run ended by itself.
pub(super) fn judge(ended: Option<Outcome>, state: &RunState, found: Survey, missing: &BTreeSet<Permission>) -> Verdict {
    let images: Vec<MissingImage> = found
        .images
        .into_iter()
        .map(|(image, needed_by)| MissingImage { image, needed_by: needed_by.into_iter().collect() })
        .collect();
    let is_done = ended == Some(Outcome::Done);
    let summary = state.summary();
    let warnings = state.checks.iter().filter(|check| check.verdict == CheckVerdict::Warned);
    let mut verdict = Verdict {
        api_version: API_VERSION.into(),
        kind: "Rehearsal".to_owned(),
        source: state.source.clone(),
        outcome: worse(ended),
        message: state.finished.as_ref().map(|finished| finished.message.clone()).unwrap_or_default(),
        took_ms: u64::try_from(state.elapsed().as_millis()).unwrap_or_default(),
        ready: summary.ready,
        total: summary.total,
        images,
        kinds: kinds(state, &found.unserved),
        permissions: missing.iter().map(ToString::to_string).collect(),
        deferred: unresolved(state, &found.unserved),
        lacking: found.troubles.into_iter().collect(),
        unready: if is_done { Vec::new() } else { unready(state) },
        warnings: warnings.map(|check| check.message.clone()).collect(),
    };
    verdict.outcome = verdict.concluded(ended, summary.failed > 0);
    verdict
}

impl Verdict {
    /// Whether nothing is missing.
    pub fn is_complete(&self) -> bool {
        self.outcome == Outcome::Done
    }

    /// How `up` would end: refused before the first write, failed, or waiting in vain.
    fn concluded(&self, ended: Option<Outcome>, failed: bool) -> Outcome {
        match ended {
            Some(Outcome::Done) | None if !self.permissions.is_empty() => Outcome::Refused,
            Some(Outcome::Done) | None if !self.images.is_empty() || !self.lacking.is_empty() => Outcome::Failed,
            None if failed => Outcome::Failed,
            other => worse(other),
        }
    }
}

fn kinds(state: &RunState, unserved: &BTreeSet<GroupVersionKind>) -> Vec<MissingKind> {
    let mut expected: BTreeMap<&GroupVersionKind, &str> = BTreeMap::new();
    for deferred in state.plan.iter().flat_map(|plan| &plan.deferred) {
        if let Some(from) = &deferred.expected_from {
            expected.extend(deferred.missing.iter().map(|gvk| (gvk, from.as_str())));
        }
    }
    let missing = |gvk: &GroupVersionKind| MissingKind {
        kind: gvk.clone(),
        expected_from: expected.get(gvk).map(|from| (*from).to_owned()),
    };
    unserved.iter().map(missing).collect()
}

fn unresolved(state: &RunState, unserved: &BTreeSet<GroupVersionKind>) -> Vec<Unresolved> {
    let deferred = state.plan.iter().flat_map(|plan| &plan.deferred);
    let open = deferred.map(|deferred| Unresolved {
        subject: deferred.subject.to_string(),
        node: deferred.node.clone(),
        missing: deferred.missing.iter().filter(|gvk| unserved.contains(gvk)).cloned().collect(),
    });
    open.filter(|open| !open.missing.is_empty()).collect()
}

fn unready(state: &RunState) -> Vec<Unready> {
    let unwell = state.subjects.values().filter_map(|known| {
        let health = known.health.filter(|health| *health != Health::Current)?;
        Some(Unready { subject: known.subject.to_string(), health, message: known.why() })
    });
    unwell.collect()
}
