//! An explanation as lines: the chain from an object to the root cause, and the next step.

use plinth_run::{Health, RunState, SubjectState, health};

use crate::{log::joined, planes::Planes, rows::waits_for};

/// One line a cause, nearest first; what it waits for where nobody gave a cause. Where the chain comes to another plane, that is said.
/// Nothing from outside can steer the terminal.
pub fn chain(known: &SubjectState, run: &RunState, planes: &Planes) -> Vec<String> {
    let mut lines: Vec<String> = Vec::new();
    let own = joined(&known.reason, &known.message);
    if !known.missing.is_empty() && known.health != Some(Health::Current) {
        lines.push(waits_for(&known.missing, known.expected_from.as_deref()));
    } else if !own.is_empty() {
        let word = known.health.map_or("known", health::word);
        lines.push(format!("{word}: {own}"));
    }
    let mut place = planes.place(&known.subject);
    for (depth, cause) in known.causes.iter().enumerate() {
        let subject = cause.subject.as_ref().map(|subject| run.known(subject));
        let crossed = subject.map(|subject| planes.place(subject)).filter(|other| *other != place);
        let subject = subject.map(|subject| subject.key.named());
        let subject: String = crossed.iter().chain(&subject).map(|part| format!("{part} ")).collect();
        place = crossed.unwrap_or(place);
        lines.push(format!("{}because {subject}{}", "  ".repeat(depth.min(8)), joined(&cause.reason, &cause.message)));
    }
    lines.extend(known.advice().map(|advice| format!("next: {} ({})", advice.next, advice.id)));
    lines.into_iter().map(|line| clean(&line)).collect()
}

/// The text without control characters.
pub(crate) fn clean(text: &str) -> String {
    text.chars().map(|c| if c.is_control() { ' ' } else { c }).collect()
}
