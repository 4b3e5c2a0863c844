//! How a run ends, and the one table of exit codes (design.md section 4).

use std::fmt;

use serde::{Deserialize, Serialize};

/// How a run ended; the only thing that an exit code depends on.
#[derive(Clone, Copy, Debug, PartialEq, Eq, PartialOrd, Ord, Hash, Serialize, Deserialize)]
#[serde(rename_all = "lowercase")]
pub enum Outcome {
    /// What was asked for is there.
    Done,
    /// An object or a stage reached a terminal failure.
    Failed,
    /// The plan has changes, and `--detailed-exitcode` asked for them.
    Changes,
    /// The deadline passed; the run can be resumed.
    Deadline,
    /// Nothing was started: preflight, verification, a stale plan, a choice left open.
    Refused,
    /// The command line made no sense.
    Usage,
    /// A defect of ours.
    Internal,
    /// A signal ended it; the run can be resumed.
    Interrupted,
}

/// Every outcome with its exit code and what it means to a script.
pub const EXIT_CODES: [(Outcome, u8, &str); 8] = [
    (Outcome::Done, 0, "done, or nothing to do"),
    (Outcome::Failed, 1, "an object or a stage failed for good"),
    (Outcome::Changes, 2, "the plan has changes (only with --detailed-exitcode)"),
    (Outcome::Deadline, 3, "the deadline passed; run again to resume"),
    (Outcome::Refused, 4, "refused before anything was written"),
    (Outcome::Usage, 64, "usage"),
    (Outcome::Internal, 70, "internal error"),
    (Outcome::Interrupted, 130, "interrupted; run again to resume"),
];

impl Outcome {
    fn row(self) -> &'static (Self, u8, &'static str) {
        EXIT_CODES.iter().find(|(outcome, ..)| *outcome == self).expect("the table has a row for every outcome")
    }

    /// The process's exit code.
    pub fn exit_code(self) -> u8 {
        self.row().1
    }

    /// What it means to a script.
    pub fn meaning(self) -> &'static str {
        self.row().2
    }

    /// Whether running again goes on where this run stopped.
    pub fn is_resumable(self) -> bool {
        matches!(self, Self::Deadline | Self::Interrupted)
    }

    /// The word that lines begin with.
    pub fn word(self) -> &'static str {
        match self {
            Self::Done => "done",
            Self::Failed => "failed",
            Self::Changes => "changes",
            Self::Deadline => "deadline",
            Self::Refused => "refused",
            Self::Usage => "usage",
            Self::Internal => "internal",
            Self::Interrupted => "interrupted",
        }
    }
}

impl fmt::Display for Outcome {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.write_str(self.word())
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn exit_codes_are_those_of_the_design() {
        let codes: Vec<u8> = EXIT_CODES.iter().map(|(outcome, ..)| outcome.exit_code()).collect();
        assert_eq!(codes, [0, 1, 2, 3, 4, 64, 70, 130]);
        for (outcome, _, meaning) in EXIT_CODES {
            assert_eq!(outcome.is_resumable(), meaning.contains("resume"), "{outcome}");
        }
    }
}
