//! An explanation as lines: the chain from an object to the root cause, and the next step.

use plinth_run::{Cause, Health, RunState, SubjectState, Verb, health};

use crate::{log::joined, planes::Planes, rows::waits_for};

/// One line a cause, nearest first; what it waits for where nobody gave a cause. Where the chain comes to another plane, that is said.
/// Nothing from outside can steer the terminal.
pub fn chain(known: &SubjectState, run: &RunState, planes: &Planes) -> Vec<String> {
    let mut place = planes.place(&known.subject);
    let mut lines = own(known);
    for (depth, cause) in known.causes.iter().enumerate() {
        let because = because(cause, run, planes, &mut place);
        lines.push(format!("{}because {because}", "  ".repeat(depth.min(8))));
    }
    lines.extend(next(known, run));
    lines.iter().map(|line| clean(line)).collect()
}

/// The same where there is no room for the steps between: the object, the root cause, the next step.
pub fn brief(known: &SubjectState, run: &RunState, planes: &Planes) -> Vec<String> {
    let mut place = planes.place(&known.subject);
    let between = if known.causes.len() > 1 { "… " } else { "" };
    let root = known.causes.last().map(|root| format!("because {between}{}", because(root, run, planes, &mut place)));
    own(known).into_iter().chain(root).chain(next(known, run)).map(|line| clean(&line)).collect()
}

fn own(known: &SubjectState) -> Vec<String> {
    // Who only hands on what its cause says has nothing to add.
    let is_echo = known.causes.first().is_some_and(|cause| cause.message == known.message);
    let own = joined(&known.reason, if is_echo { "" } else { &known.message });
    let told = if !known.missing.is_empty() && known.health != Some(Health::Current) {
        Some(waits_for(&known.missing, known.expected_from.as_deref()))
    } else if own.is_empty() {
        None
    } else {
        Some(format!("{}: {own}", known.health.map_or("known", health::word)))
    };
    told.into_iter().collect()
}

/// A cause, with its place where that is another than the one before.
fn because(cause: &Cause, run: &RunState, planes: &Planes, place: &mut String) -> String {
    let subject = cause.subject.as_ref().map(|subject| run.known(subject));
    let crossed = subject.map(|subject| planes.place(subject)).filter(|other| other != place);
    let subject = subject.map(|subject| subject.key.named());
    let words: Vec<String> = crossed.iter().cloned().chain(subject).chain([joined(&cause.reason, &cause.message)]).collect();
    *place = crossed.unwrap_or_else(|| std::mem::take(place));
    words.join(" ")
}

/// What to do. A run that goes on makes what is not there yet; on day 2 nobody does.
fn next(known: &SubjectState, run: &RunState) -> Option<String> {
    let goes_on = run.finished.is_none() && run.verb != Some(Verb::Controller);
    known.next(goes_on).map(|next| format!("next: {next}"))
}

/// The text without control characters.
pub(crate) fn clean(text: &str) -> String {
    text.chars().map(|c| if c.is_control() { ' ' } else { c }).collect()
}
