//! Tells a run while it happens: lines, JSON lines, workflow commands, or a JUnit report at its end.

use std::{
    fs::OpenOptions,
    io::Write,
    sync::{Mutex, PoisonError},
    time::Duration,
};

use jiff::Timestamp;
use plinth_bootstrap::settings::DEFAULT_PLATFORM;
use plinth_run::{
    Event, EventKind, Outcome, RunId, RunState, Sink, event as run,
    present::{github, json, junit, lines},
};

use plinth_tui::{log, theme::Role};
use serde_json::json;

use crate::{
    args::{Bundle, Channel, GraphOutput, Output, Rgd, Rollback, RunOutput, Upgrade, Verb},
    exit::Failure,
    load,
    out::{self, Out},
};

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

    /// The same for a run whose end standard error says too ([`crate::wire::Session::tell`]): what takes several lines is said once.
    pub(crate) fn of_run(output: RunOutput, out: Out) -> Self {
        let teller = Self::new(output, out);
        let brief = |form| match form {
            Form::Lines(presenter) => Form::Lines(Box::new(presenter.brief())),
            form @ (Form::Json | Form::Junit(_) | Form::Github(_)) => form,
        };
        Self { form: Mutex::new(brief(teller.form.into_inner().unwrap_or_else(PoisonError::into_inner))), ..teller }
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

    /// Says what is only said at the end, where a run has none: its journal was cut off, or it was killed. JSON says no more than there is.
    pub(crate) fn broken_off(&self, why: &str) {
        let mut form = self.form.lock().unwrap_or_else(PoisonError::into_inner);
        let text = match &mut *form {
            Form::Lines(presenter) => return self.out.told(Role::Waiting, &presenter.broken_off(why)),
            Form::Json => return,
            Form::Junit(state) => junit::report(state),
            Form::Github(presenter) => presenter.broken_off(why),
        };
        self.out.data(text.trim_end_matches('\n'));
        if let Form::Github(presenter) = &*form {
            self.summarize(&github::summary(presenter.state()));
        }
    }
}

/// A sink for what a person must know while an answer is made: attempts, warnings, refusals. The answer itself goes to standard output.
pub(crate) struct Talk {
    out: Out,
    lines: Mutex<lines::Presenter>,
}

impl Talk {
    pub(crate) fn new(out: Out) -> Self {
        Self { out, lines: Mutex::new(lines::Presenter::new(lines::Verbosity::Normal)) }
    }
}

impl Sink for Talk {
    fn take(&self, event: &Event) {
        let line = self.lines.lock().unwrap_or_else(PoisonError::into_inner).line(event);
        let is_good_end = matches!(event.kind, EventKind::RunFinished { outcome: Outcome::Done | Outcome::Changes, .. });
        let is_wait = !self.out.quiet && matches!(event.kind, EventKind::Retry { .. });
        if let Some(line) = line.filter(|_| is_wait || lines::is_loud(&event.kind) && !is_good_end) {
            self.out.error(line.trim_end_matches('\n'));
        }
    }
}

/// What is tried again before there is a run that could tell it.
pub(crate) struct Attempts<'a> {
    what: &'static str,
    sink: &'a dyn Sink,
    number: u32,
}

impl<'a> Attempts<'a> {
    pub(crate) fn new(what: &'static str, sink: &'a dyn Sink) -> Self {
        Self { what, sink, number: 0 }
    }

    /// Tells of an attempt that was in vain, and when the next one comes.
    pub(crate) fn vain(&mut self, message: String, next: Duration) {
        self.number += 1;
        let next_in_ms = u64::try_from(next.as_millis()).unwrap_or(u64::MAX);
        let kind = EventKind::Retry { what: self.what.to_owned(), message, attempt: self.number, next_in_ms };
        self.sink.take(&outside(u64::from(self.number), kind));
    }
}

/// How a verb was asked to answer.
#[derive(Clone, Debug)]
pub(crate) enum Answer {
    /// For people: standard error says it.
    Human,
    /// One JSON document.
    Document,
    /// A run's events in this form.
    Run(RunOutput, run::Verb, Named),
}

/// How the platform is called that a verb is about.
#[derive(Clone, Debug)]
pub(crate) enum Named {
    /// As SOURCE says.
    BySource(String),
    /// As `--platform` says.
    ByFlag(Option<String>),
}

impl Named {
    /// The name, `default` where it is not known.
    fn name(self) -> String {
        match self {
            Self::BySource(source) => load::platform::named(&source),
            Self::ByFlag(name) => name.unwrap_or_else(|| DEFAULT_PLATFORM.to_owned()),
        }
    }
}

impl Answer {
    /// What the command line asks for.
    pub(crate) fn of(verb: &Verb) -> Self {
        let document = |output: Output| if output == Output::Json { Self::Document } else { Self::Human };
        // Without `-o` a terminal may be drawn on; then standard error is what people read.
        let told = |output: Option<RunOutput>, verb, platform: Option<&str>| {
            let named = Named::ByFlag(platform.map(str::to_owned));
            output.map_or(Self::Human, |output| Self::Run(output, verb, named))
        };
        match verb {
            Verb::Up(args) => Self::Run(args.output, run::Verb::Up, Named::BySource(args.source.source.clone())),
            Verb::Upgrade(Upgrade { how, .. }) => told(Some(how.output), run::Verb::Upgrade, how.which.platform.as_deref()),
            Verb::Rollback(Rollback { how }) => told(Some(how.output), run::Verb::Rollback, how.which.platform.as_deref()),
            Verb::Down(args) => told(Some(args.output), run::Verb::Down, args.which.platform.as_deref()),
            Verb::Dash(args) => told(args.output, run::Verb::Controller, args.which.platform.as_deref()),
            Verb::Attach(args) => told(args.output, run::Verb::Up, args.which.platform.as_deref()),
            Verb::Replay(args) => told(args.output, run::Verb::Up, None),
            Verb::Demo(args) => told(args.output, run::Verb::Up, None),
            Verb::Plan(args) => document(args.output),
            Verb::Rehearse(args) => document(args.output),
            Verb::Status(args) => document(args.output),
            Verb::Why(args) => document(args.output),
            Verb::Grant(args) => document(args.output),
            Verb::Diff(args) => document(args.output),
            Verb::Channel { verb } => document(of_channel(verb)),
            Verb::Bundle { verb } => document(of_bundle(verb)),
            Verb::Rgd { verb: Rgd::Check { output, .. } } => document(*output),
            Verb::Rgd { verb: Rgd::Graph { output: GraphOutput::Json, .. } } => Self::Document,
            Verb::Rgd { .. }
            | Verb::Help { .. }
            | Verb::Controller(_)
            | Verb::Name { .. }
            | Verb::Completion { .. }
            | Verb::Man { .. }
            | Verb::Config { .. } => Self::Human,
        }
    }

    /// What the words of a command line ask for that is wrong elsewhere.
    pub(crate) fn of_words(words: &[String]) -> Self {
        let is_flag = |word: &String| word == "-o" || word == "--output";
        let apart = words.windows(2).any(|pair| is_flag(&pair[0]) && pair[1] == "json");
        let together = words.iter().any(|word| matches!(word.as_str(), "-ojson" | "-o=json" | "--output=json"));
        let events = |verb| Self::Run(RunOutput::Json, verb, Named::ByFlag(None));
        match words.iter().find(|word| !word.starts_with('-')).map(String::as_str) {
            _ if !apart && !together => Self::Human,
            Some("up" | "attach" | "replay" | "demo") => events(run::Verb::Up),
            Some("upgrade") => events(run::Verb::Upgrade),
            Some("rollback") => events(run::Verb::Rollback),
            Some("down") => events(run::Verb::Down),
            Some("dash") => events(run::Verb::Controller),
            _ => Self::Document,
        }
    }

    /// Answers in the form that was asked for, where a verb ended before it had an answer: who reads standard output as data finds
    /// the reason there. What has an answer already gets no second one.
    pub(crate) fn refuse(self, failure: &Failure, out: Out) {
        if out::has_data() {
            return;
        }
        match self {
            Self::Human | Self::Run(RunOutput::Lines, ..) => {}
            Self::Document => {
                let Failure { outcome, message, hint } = failure;
                let error = json!({"outcome": outcome.word(), "exitCode": outcome.exit_code(), "message": message, "hint": hint});
                out.data(&json!({"error": error}).to_string());
            }
            Self::Run(output, verb, named) => {
                let teller = Teller::new(output, out);
                for event in never_begun(failure, verb, named.name()) {
                    teller.take(&event);
                }
            }
        }
    }
}

fn of_channel(verb: &Channel) -> Output {
    match verb {
        Channel::Ls(args) => args.output,
        Channel::Show(args) => args.output,
        Channel::Verify(args) => args.output,
        Channel::Diff(args) => args.output,
        Channel::Lock(_) | Channel::Normalise(_) | Channel::Pack { .. } => Output::Human,
    }
}

fn of_bundle(verb: &Bundle) -> Output {
    match verb {
        Bundle::Create(args) => args.output,
        Bundle::Verify(args) => args.output,
        Bundle::Ls(args) => args.output,
        Bundle::Push(_) => Output::Human,
    }
}

/// The events of a run that ended before it began.
fn never_begun(failure: &Failure, verb: run::Verb, platform: String) -> [Event; 2] {
    let started = EventKind::RunStarted { verb, platform, source: String::new(), cluster: None, resumed: None };
    let Failure { outcome, message, hint } = failure.clone();
    [outside(1, started), outside(2, EventKind::RunFinished { outcome, message, hint })]
}

/// An event where there is no run.
fn outside(seq: u64, kind: EventKind) -> Event {
    Event { v: run::VERSION, run: RunId(format!("none-{}", std::process::id())), seq, at: Timestamp::now(), kind }
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
        let role = if matches!(&*form, Form::Lines(_)) { log::role(&event.kind) } else { Role::Plain };
        if let Some(text) = text {
            self.out.told(role, text.trim_end_matches('\n'));
        }
        if let (Form::Github(presenter), EventKind::RunFinished { .. }) = (&*form, &event.kind) {
            self.summarize(&github::summary(presenter.state()));
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_run_that_never_began_is_told_in_every_form() {
        let failure = Failure::refused("the archive is\nbroken").hint("fetch it again");
        let events = never_begun(&failure, run::Verb::Up, "sample".to_owned());
        for event in &events {
            let line = json::line(event).unwrap();
            assert_eq!(plinth_run::journal::decode_line(line.trim_end().as_bytes(), 1).unwrap(), *event);
        }
        let state = RunState::replay(&events);
        assert_eq!((state.exit_code(), state.platform.as_str()), (Some(Outcome::Refused.exit_code()), "sample"));
        let report = junit::report(&state);
        assert!(report.contains("failures=\"1\"") && report.contains("the archive is&#10;broken"), "{report}");
    }
}
