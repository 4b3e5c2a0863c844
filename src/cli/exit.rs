//! Why a verb ended early, and the exit code that goes with it. The table of codes is [`plinth_run::Outcome`]'s.

use std::process::ExitCode;

use plinth_run::Outcome;

/// What to say, what to do next, and how the process ends.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Failure {
    /// How the process ends.
    pub outcome: Outcome,
    /// What was being done to which thing, and what was wrong. May have several lines, one a finding. Empty where it was said already.
    pub message: String,
    /// The next step.
    pub hint: Option<String>,
}

impl Failure {
    /// A failure that ends with `outcome`; logins of URLs in the message are hidden.
    pub fn new(outcome: Outcome, message: impl Into<String>) -> Self {
        Self { outcome, message: plinth_api::login::hidden(&message.into()), hint: None }
    }

    /// Refused before anything was written.
    pub fn refused(message: impl Into<String>) -> Self {
        Self::new(Outcome::Refused, message)
    }

    /// Failed while it ran.
    pub fn failed(message: impl Into<String>) -> Self {
        Self::new(Outcome::Failed, message)
    }

    /// The same failure with a next step.
    #[must_use]
    pub fn hint(mut self, hint: impl Into<String>) -> Self {
        self.hint = Some(hint.into());
        self
    }
}

/// The process's exit code.
pub fn code(outcome: Outcome) -> ExitCode {
    ExitCode::from(outcome.exit_code())
}
