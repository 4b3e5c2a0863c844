//! The words for health.

use serde::{Deserialize, Serialize};

/// How something is. Waiting, progressing and failed are three words.
#[derive(Clone, Copy, Debug, PartialEq, Eq, PartialOrd, Ord, Hash, Serialize, Deserialize)]
pub enum Health {
    /// As wanted.
    Current,
    /// Its controller is at work on it.
    InProgress,
    /// Waits for something else.
    Waiting,
    /// Will not get better by waiting.
    Failed,
    /// Being deleted.
    Terminating,
    /// Not there.
    NotFound,
    /// Nothing says how it is.
    Unknown,
}

/// A judgement of one object.
#[derive(Clone, Debug, PartialEq, Eq, Serialize, Deserialize)]
#[serde(rename_all = "camelCase")]
pub struct Verdict {
    /// How it is.
    pub health: Health,
    /// One word in UpperCamelCase, for machines.
    pub reason: String,
    /// A sentence, for people; empty where there is nothing to add.
    pub message: String,
    /// Generation that the judgement is about, where the object says so.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub observed_generation: Option<i64>,
}

impl Verdict {
    /// A verdict without a generation.
    pub fn new(health: Health, reason: impl Into<String>, message: impl Into<String>) -> Self {
        Self { health, reason: reason.into(), message: message.into(), observed_generation: None }
    }

    /// The verdict on an object that is not there.
    pub fn not_found() -> Self {
        Self::new(Health::NotFound, "NotFound", "it does not exist")
    }
}

impl Health {
    /// How much it asks for attention: the root cause is looked for in this order. `Current` asks for none.
    pub(super) fn urgency(self) -> u8 {
        match self {
            Self::Current => 0,
            Self::Unknown => 1,
            Self::Waiting => 2,
            Self::InProgress => 3,
            Self::Terminating => 4,
            Self::NotFound => 5,
            Self::Failed => 6,
        }
    }
}

/// One link of an explanation.
#[derive(Clone, Debug, PartialEq, Eq, Serialize, Deserialize)]
pub struct Cause<S> {
    /// What it is about.
    pub subject: S,
    /// How that is.
    pub verdict: Verdict,
}

/// Why something is as it is: from the subject asked about down to the root cause.
#[derive(Clone, Debug, PartialEq, Eq, Serialize, Deserialize)]
pub struct Explanation<S> {
    /// The chain, the asked subject first; never empty.
    pub chain: Vec<Cause<S>>,
    /// Whether the chain comes back to a subject that is already in it.
    pub cyclic: bool,
}

impl<S> Explanation<S> {
    /// The last link: what everything before it waits for. [`super::explain`] always gives one.
    pub fn root(&self) -> Option<&Cause<S>> {
        self.chain.last()
    }
}
