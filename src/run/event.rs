//! The one stream of events. Closed and versioned: a reader of version 1 knows every kind there is.

use jiff::Timestamp;
use plinth_api::{GroupVersionKind, lock::LockedRef};
use serde::{Deserialize, Serialize};

use crate::{
    health::Health,
    outcome::Outcome,
    plan::{Action, Plan},
    subject::{CheckId, ClusterIdentity, RunId, StageId, Subject},
};

/// The version of the event schema that this crate writes and reads.
pub const VERSION: u32 = 1;

/// One thing that happened. As JSON, the fields of `kind` lie beside `v`, `run`, `seq` and `at`.
#[derive(Clone, Debug, PartialEq, Serialize, Deserialize)]
pub struct Event {
    /// Version of the schema.
    pub v: u32,
    /// The run.
    pub run: RunId,
    /// Position in the run, from 1, without gaps.
    pub seq: u64,
    /// When it was recorded or, of what began before anybody looked, when it began.
    pub at: Timestamp,
    /// What happened.
    #[serde(flatten)]
    pub kind: EventKind,
}

/// What happened.
#[derive(Clone, Debug, PartialEq, Serialize, Deserialize)]
#[serde(tag = "kind", rename_all_fields = "camelCase")]
pub enum EventKind {
    /// A run began, or a killed one goes on.
    RunStarted {
        /// What it was asked to do.
        verb: Verb,
        /// Name of the platform.
        platform: String,
        /// The SOURCE, without credentials.
        source: String,
        /// The cluster, where it is known already.
        #[serde(default, skip_serializing_if = "Option::is_none")]
        cluster: Option<ClusterIdentity>,
        /// The earlier run in the same journal that this one goes on with.
        #[serde(default, skip_serializing_if = "Option::is_none")]
        resumed: Option<RunId>,
    },
    /// The channel is resolved.
    Resolved {
        /// The component that was asked for.
        root: LockedRef,
        /// The closure.
        components: Vec<LockedRef>,
    },
    /// A preflight check has an answer.
    CheckFinished {
        /// Which check.
        id: CheckId,
        /// Its answer.
        verdict: CheckVerdict,
        /// What was found.
        message: String,
        /// The next step, where there is one.
        #[serde(default, skip_serializing_if = "Option::is_none")]
        hint: Option<String>,
    },
    /// The plan is made.
    Planned {
        /// The plan.
        plan: Plan,
    },
    /// Somebody agreed to the plan.
    Approved {
        /// `--apply`, `question`, `plan file`.
        by: String,
    },
    /// A stage began.
    StageStarted {
        /// Which.
        stage: StageId,
        /// Its title.
        title: String,
    },
    /// An object was written or deleted.
    ChangeApplied {
        /// The object.
        subject: Subject,
        /// What was done.
        action: Action,
        /// Digest of what was applied: resume proves by it that nothing is left to write.
        digest: String,
        /// `metadata.generation` that the server answered with.
        generation: i64,
        /// Digest of the applied fields as the server answered them: the loop sees drift by it, also after a restart.
        #[serde(default, skip_serializing_if = "Option::is_none")]
        result: Option<String>,
        /// `metadata.uid` that the server answered with; another object of the same name is another object.
        #[serde(default, skip_serializing_if = "Option::is_none")]
        uid: Option<String>,
    },
    /// An object needed no write.
    ChangeSkipped {
        /// The object.
        subject: Subject,
        /// Why.
        reason: SkipReason,
    },
    /// An object's kind (or a kind that it needs) is not served yet. Not an error.
    ChangeDeferred {
        /// The object.
        subject: Subject,
        /// The kinds it waits for.
        missing: Vec<GroupVersionKind>,
        /// Who probably brings them.
        #[serde(default, skip_serializing_if = "Option::is_none")]
        expected_from: Option<String>,
    },
    /// A kind is served now.
    SchemaServed {
        /// The kind.
        gvk: GroupVersionKind,
    },
    /// An object's verdict changed.
    HealthChanged {
        /// The object.
        subject: Subject,
        /// Its health now.
        health: Health,
        /// One word in UpperCamelCase, empty where there is none.
        #[serde(default)]
        reason: String,
        /// A sentence, empty where there is none.
        #[serde(default)]
        message: String,
        /// Why, from the nearest cause to the root.
        #[serde(default, skip_serializing_if = "Vec::is_empty")]
        causes: Vec<Cause>,
    },
    /// Something did not work and will be tried again.
    Retry {
        /// What, such as `ask API server https://…`.
        what: String,
        /// What went wrong this time.
        message: String,
        /// The attempt that failed, from 1.
        attempt: u32,
        /// Milliseconds until the next one.
        next_in_ms: u64,
    },
    /// Nothing changed for a while.
    Heartbeat {
        /// The stage that is being worked on.
        #[serde(default, skip_serializing_if = "Option::is_none")]
        stage: Option<StageId>,
        /// Objects that are ready.
        ready: usize,
        /// Objects that are known.
        total: usize,
        /// Who waits longest, longest first, a few.
        longest: Vec<LongWait>,
    },
    /// A stage ended.
    StageFinished {
        /// Which.
        stage: StageId,
        /// How.
        outcome: Outcome,
    },
    /// Something that people should know and that changes nothing.
    Warning {
        /// The object, where it is about one.
        #[serde(default, skip_serializing_if = "Option::is_none")]
        subject: Option<Subject>,
        /// One word in UpperCamelCase.
        reason: String,
        /// A sentence.
        message: String,
    },
    /// The run ended.
    RunFinished {
        /// How.
        outcome: Outcome,
        /// Why, empty where all is well.
        #[serde(default)]
        message: String,
        /// The next step, where there is one.
        #[serde(default, skip_serializing_if = "Option::is_none")]
        hint: Option<String>,
    },
}

/// What a run was asked to do.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Serialize, Deserialize)]
#[serde(rename_all = "lowercase")]
pub enum Verb {
    /// Bring a platform up.
    Up,
    /// Plan only.
    Plan,
    /// Rehearse in the embedded control plane.
    Rehearse,
    /// Move to another version.
    Upgrade,
    /// Move back.
    Rollback,
    /// Remove a platform.
    Down,
    /// The loop in the cluster.
    Controller,
}

impl Verb {
    /// Whether a run of the one goes on with what a run of the other began: all that bring a platform to a release do the same.
    pub fn goes_on_with(self, other: Self) -> bool {
        let brings = |verb: Self| matches!(verb, Self::Up | Self::Upgrade | Self::Rollback);
        self == other || brings(self) && brings(other)
    }
}

/// The answer of a check.
#[derive(Clone, Copy, Debug, PartialEq, Eq, PartialOrd, Ord, Serialize, Deserialize)]
#[serde(rename_all = "lowercase")]
pub enum CheckVerdict {
    /// All is well.
    Passed,
    /// Worth knowing, stops nothing.
    Warned,
    /// Stops the run.
    Failed,
}

/// Why an object was not written.
#[derive(Clone, Debug, PartialEq, Eq, Serialize, Deserialize)]
#[serde(tag = "why", rename_all = "camelCase", rename_all_fields = "camelCase")]
pub enum SkipReason {
    /// The journal proves that the same input was applied, and the object has not moved since.
    Proven {
        /// Digest of the input.
        digest: String,
        /// Generation of the object.
        generation: i64,
    },
    /// The live object already has all that would be applied.
    Unchanged,
    /// `includeWhen` says no.
    NotIncluded,
    /// It was to be deleted and is gone already.
    Gone,
    /// Another tool owns it, and nobody asked to take it over.
    Foreign {
        /// The owner: a field manager or a label's value.
        owner: String,
    },
}

/// One step of an explanation.
#[derive(Clone, Debug, PartialEq, Eq, Serialize, Deserialize)]
pub struct Cause {
    /// The object that is the cause, where it is one.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub subject: Option<Subject>,
    /// One word in UpperCamelCase.
    #[serde(default)]
    pub reason: String,
    /// A sentence.
    pub message: String,
}

/// An object that is not ready, and for how long.
#[derive(Clone, Debug, PartialEq, Eq, Serialize, Deserialize)]
#[serde(rename_all = "camelCase")]
pub struct LongWait {
    /// The object.
    pub subject: Subject,
    /// Its health.
    pub health: Health,
    /// Reason and message in one, possibly empty.
    pub message: String,
    /// Milliseconds since its health last changed.
    pub for_ms: u64,
}
