//! Health in the words of the field.

use std::fmt;

use serde::{Deserialize, Serialize};

/// How an object is. Waiting is not failing: three words for three states (ux.md lesson 2).
#[derive(Clone, Copy, Debug, PartialEq, Eq, PartialOrd, Ord, Hash, Serialize, Deserialize)]
pub enum Health {
    /// As it is wanted.
    Current,
    /// On its way.
    InProgress,
    /// Something else has to happen first.
    Waiting,
    /// It will not get there without help.
    Failed,
    /// Being deleted.
    Terminating,
    /// It does not exist.
    NotFound,
    /// It cannot be judged.
    Unknown,
}

impl Health {
    /// All, in the order of the enum.
    pub const ALL: [Self; 7] =
        [Self::Current, Self::InProgress, Self::Waiting, Self::Failed, Self::Terminating, Self::NotFound, Self::Unknown];

    /// The word that people read, lower case.
    pub fn word(self) -> &'static str {
        match self {
            Self::Current => "ready",
            Self::InProgress => "progressing",
            Self::Waiting => "waiting",
            Self::Failed => "failed",
            Self::Terminating => "terminating",
            Self::NotFound => "missing",
            Self::Unknown => "unknown",
        }
    }
}

impl fmt::Display for Health {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.write_str(self.word())
    }
}
