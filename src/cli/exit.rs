//! Exit codes (design.md section 4) and the error that carries one.

use std::process::ExitCode;

/// How the process ends.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
#[repr(u8)]
pub enum Exit {
    /// Done.
    Done = 0,
    /// Failed.
    Failed = 1,
    /// There are changes (only with `--detailed-exitcode`).
    Changes = 2,
    /// A deadline passed; the run can be resumed.
    Deadline = 3,
    /// Refused before anything was written.
    Refused = 4,
    /// The command line is wrong.
    Usage = 64,
    /// An invariant of plinth does not hold.
    Internal = 70,
    /// Interrupted; the run can be resumed.
    Interrupted = 130,
}

impl From<Exit> for ExitCode {
    fn from(exit: Exit) -> Self {
        Self::from(exit as u8)
    }
}

/// Why a verb ended early: what to say, what to do next, and how the process ends.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Failure {
    /// How the process ends.
    pub exit: Exit,
    /// What was being done to which thing, and what was wrong. May have several lines, one a finding.
    pub message: String,
    /// The next step.
    pub hint: Option<String>,
}

impl Failure {
    /// Refused before anything was written.
    pub fn refused(message: impl Into<String>) -> Self {
        Self { exit: Exit::Refused, message: message.into(), hint: None }
    }

    /// Failed while it ran.
    pub fn failed(message: impl Into<String>) -> Self {
        Self { exit: Exit::Failed, message: message.into(), hint: None }
    }

    /// The same failure with a next step.
    #[must_use]
    pub fn hint(mut self, hint: impl Into<String>) -> Self {
        self.hint = Some(hint.into());
        self
    }
}
