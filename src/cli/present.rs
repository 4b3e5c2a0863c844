//! Tells a run while it happens: lines, JSON lines, workflow commands, or a JUnit report at its end.

use std::{
    fs::OpenOptions,
    io::Write,
    sync::{Mutex, PoisonError},
};

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
    /// Appends the step summary to the file that GitHub names. Elsewhere there is none.
    fn summarize(&self, text: &str) {
        let Some(path) = std::env::var_os("GITHUB_STEP_SUMMARY").filter(|path| !path.is_empty()) else { return };
        let written =
            OpenOptions::new().append(true).create(true).open(&path).and_then(|mut file| file.write_all(text.as_bytes()));
        if let Err(error) = written {
            self.out.error(&format!("note: write the step summary to {}: {error}", path.display()));
        }
    }

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
        if let (Form::Github(presenter), EventKind::RunFinished { .. }) = (&*form, &event.kind) {
            self.summarize(&github::summary(presenter.state()));
        }
    }
}
