//! Tells a run while it happens: lines, JSON lines, workflow commands, or a JUnit report at its end.

use std::sync::{Mutex, PoisonError};

use plinth_run::{
    Event, EventKind, RunState, Sink,
    present::{github, json, junit, lines},
};

use crate::{args::RunOutput, out::Out};

/// A sink that prints.
pub(crate) struct Teller {
    out: Out,
    form: Mutex<Form>,
}

/// What is printed, with what it has to remember.
enum Form {
    Lines(Box<lines::Presenter>),
    Json,
    Junit(Box<RunState>),
    Github(Box<github::Presenter>),
}

impl Teller {
    pub(crate) fn new(output: RunOutput, out: Out) -> Self {
        let verbosity = if out.quiet { lines::Verbosity::Quiet } else { lines::Verbosity::Normal };
        let form = match output {
            RunOutput::Lines => Form::Lines(Box::new(lines::Presenter::new(verbosity))),
            RunOutput::Json => Form::Json,
            RunOutput::Junit => Form::Junit(Box::default()),
            RunOutput::Github => Form::Github(Box::new(github::Presenter::new(verbosity))),
        };
        Self { out, form: Mutex::new(form) }
    }
}

impl Teller {
    /// Says what is only said at the end, where a run has none: its journal was cut off.
    pub(crate) fn end(&self) {
        let form = self.form.lock().unwrap_or_else(PoisonError::into_inner);
        if let Form::Junit(state) = &*form
            && state.finished.is_none()
        {
            self.out.data(junit::report(state).trim_end_matches('\n'));
        }
    }
}

impl Sink for Teller {
    fn take(&self, event: &Event) {
        let mut form = self.form.lock().unwrap_or_else(PoisonError::into_inner);
        let text = match &mut *form {
            Form::Lines(presenter) => presenter.line(event),
            Form::Github(presenter) => presenter.line(event),
            // An event that is too long for a line is in no journal either; the run has said so.
            Form::Json => json::line(event).ok(),
            Form::Junit(state) => {
                state.fold(event);
                matches!(event.kind, EventKind::RunFinished { .. }).then(|| junit::report(state))
            }
        };
        if let Some(text) = text {
            self.out.data(text.trim_end_matches('\n'));
        }
    }
}
