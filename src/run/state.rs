//! What is known about a run: the fold of its events, and nothing else.

mod fold;
mod summary;
#[cfg(test)]
mod tests;
mod told;

use std::collections::{BTreeMap, BTreeSet};

use jiff::Timestamp;
use plinth_api::{GroupVersionKind, ObjectKey, lock::LockedRef};
use serde::{Deserialize, Serialize};

use crate::{
    event::{Cause, CheckVerdict, Event, SkipReason, Verb},
    health::Health,
    outcome::Outcome,
    plan::{Action, Plan},
    subject::{CheckId, ClusterIdentity, RunId, StageId, Subject},
};

pub use summary::{Standing, Summary};

/// How many warnings a state holds; older ones are only counted.
pub const MAX_WARNINGS: usize = 200;

/// The state of the newest run of a journal. What earlier runs proved stays.
#[derive(Clone, Debug, Default, PartialEq, Serialize, Deserialize)]
#[serde(rename_all = "camelCase", default)]
pub struct RunState {
    /// The run; `None` before the first event.
    pub run: Option<RunId>,
    /// Number of the last event.
    pub seq: u64,
    /// What it was asked to do.
    pub verb: Option<Verb>,
    /// Name of the platform.
    pub platform: String,
    /// The SOURCE, without credentials.
    pub source: String,
    /// The cluster.
    pub cluster: Option<ClusterIdentity>,
    /// The run that this one goes on with.
    pub resumed: Option<RunId>,
    /// First event.
    pub started: Option<Timestamp>,
    /// Newest event.
    pub now: Option<Timestamp>,
    /// Newest event that was a change, not a heartbeat or a retry.
    pub changed: Option<Timestamp>,
    /// The component that was asked for.
    pub root: Option<LockedRef>,
    /// The closure.
    pub components: Vec<LockedRef>,
    /// Checks, in the order in which they first finished.
    pub checks: Vec<Check>,
    /// The plan.
    pub plan: Option<Plan>,
    /// Who agreed to it.
    pub approved: Option<String>,
    /// Stages that began.
    pub stages: BTreeMap<StageId, StageState>,
    /// Objects.
    #[serde(with = "entries")]
    pub subjects: BTreeMap<ObjectKey, SubjectState>,
    /// What is proven to be applied, this run's and earlier ones': the ground of resume (contracts 22).
    #[serde(with = "entries")]
    pub applied: BTreeMap<ObjectKey, Applied>,
    /// Kinds that came to be served during the run.
    pub served: BTreeSet<GroupVersionKind>,
    /// What is being tried again, by what it is.
    pub retries: BTreeMap<String, Retrying>,
    /// Newest warnings, oldest first.
    pub warnings: Vec<Warned>,
    /// How many warnings there were.
    pub warning_count: usize,
    /// How the run ended; `None` while it goes on, and for ever when it was killed.
    pub finished: Option<Finished>,
}

/// A check that has its answer.
#[derive(Clone, Debug, PartialEq, Eq, Serialize, Deserialize)]
#[serde(rename_all = "camelCase")]
pub struct Check {
    /// Which check.
    pub id: CheckId,
    /// Its answer.
    pub verdict: CheckVerdict,
    /// What was found.
    pub message: String,
    /// The next step.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub hint: Option<String>,
}

/// A stage that began.
#[derive(Clone, Debug, PartialEq, Eq, Serialize, Deserialize)]
#[serde(rename_all = "camelCase")]
pub struct StageState {
    /// Its title.
    pub title: String,
    /// When it began.
    pub started: Timestamp,
    /// When it ended.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub finished: Option<Timestamp>,
    /// How it ended.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub outcome: Option<Outcome>,
}

/// What is known about an object.
#[derive(Clone, Debug, PartialEq, Eq, Serialize, Deserialize)]
#[serde(rename_all = "camelCase")]
pub struct SubjectState {
    /// The object and its place.
    pub subject: Subject,
    /// What this run did to it; a creation is not forgotten when a configuration follows.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub action: Option<Action>,
    /// Why it was not written.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub skipped: Option<SkipReason>,
    /// Kinds it waits for.
    #[serde(default, skip_serializing_if = "Vec::is_empty")]
    pub missing: Vec<GroupVersionKind>,
    /// Who probably brings them.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub expected_from: Option<String>,
    /// Its health; `None` until somebody has judged it.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub health: Option<Health>,
    /// One word in UpperCamelCase.
    #[serde(default)]
    pub reason: String,
    /// A sentence.
    #[serde(default)]
    pub message: String,
    /// Why, from the nearest cause to the root.
    #[serde(default, skip_serializing_if = "Vec::is_empty")]
    pub causes: Vec<Cause>,
    /// Since when its health is what it is.
    pub since: Timestamp,
}

/// Proof that an object was applied.
#[derive(Clone, Debug, PartialEq, Eq, Serialize, Deserialize)]
#[serde(rename_all = "camelCase")]
pub struct Applied {
    /// Digest of what was applied.
    pub digest: String,
    /// `metadata.generation` that the server answered with.
    pub generation: i64,
    /// Digest of the applied fields as the server answered them.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub result: Option<String>,
    /// `metadata.uid` that the server answered with.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub uid: Option<String>,
}

/// Something that is being tried again.
#[derive(Clone, Debug, PartialEq, Eq, Serialize, Deserialize)]
#[serde(rename_all = "camelCase")]
pub struct Retrying {
    /// What went wrong last.
    pub message: String,
    /// The attempt that failed last.
    pub attempt: u32,
    /// When the next one begins.
    pub next: Timestamp,
}

/// A warning.
#[derive(Clone, Debug, PartialEq, Eq, Serialize, Deserialize)]
#[serde(rename_all = "camelCase")]
pub struct Warned {
    /// The object, where it is about one.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub subject: Option<Subject>,
    /// One word in UpperCamelCase.
    pub reason: String,
    /// A sentence.
    pub message: String,
}

/// How a run ended.
#[derive(Clone, Debug, PartialEq, Eq, Serialize, Deserialize)]
#[serde(rename_all = "camelCase")]
pub struct Finished {
    /// How.
    pub outcome: Outcome,
    /// Why.
    #[serde(default)]
    pub message: String,
    /// The next step.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub hint: Option<String>,
}

impl RunState {
    /// The fold of a whole journal.
    pub fn replay<'a>(events: impl IntoIterator<Item = &'a Event>) -> Self {
        let mut state = Self::default();
        events.into_iter().for_each(|event| state.fold(event));
        state
    }

    /// The exit code; `None` while the run goes on.
    pub fn exit_code(&self) -> Option<u8> {
        self.finished.as_ref().map(|finished| finished.outcome.exit_code())
    }

    /// Whether the journal proves that this very input was applied and that the object is still the one that came of it.
    pub fn proves(&self, key: &ObjectKey, digest: &str, generation: i64, uid: Option<&str>) -> bool {
        self.applied
            .get(key)
            .is_some_and(|applied| applied.digest == digest && applied.generation == generation && applied.uid.as_deref() == uid)
    }

    /// An object as it is known, with the role of its cluster; a cause often says no more than its key.
    pub fn known<'a>(&'a self, subject: &'a Subject) -> &'a Subject {
        self.subjects.get(&subject.key).map_or(subject, |known| &known.subject)
    }

    /// The stage that began last and has not ended.
    pub fn stage(&self) -> Option<StageId> {
        self.stages.iter().rev().find(|(_, stage)| stage.finished.is_none()).map(|(id, _)| *id)
    }
}

/// Maps with keys that are not strings, as lists of pairs.
mod entries {
    use std::collections::BTreeMap;

    use serde::{Deserialize, Deserializer, Serialize, Serializer};

    pub(super) fn serialize<K, V, S>(map: &BTreeMap<K, V>, serializer: S) -> Result<S::Ok, S::Error>
    where
        K: Serialize,
        V: Serialize,
        S: Serializer,
    {
        serializer.collect_seq(map)
    }

    pub(super) fn deserialize<'de, K, V, D>(deserializer: D) -> Result<BTreeMap<K, V>, D::Error>
    where
        K: Deserialize<'de> + Ord,
        V: Deserialize<'de>,
        D: Deserializer<'de>,
    {
        Ok(Vec::<(K, V)>::deserialize(deserializer)?.into_iter().collect())
    }
}
