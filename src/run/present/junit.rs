//! JUnit XML: checks and stages as suites, objects as cases.

use std::fmt::Write;

use jiff::SignedDuration;

use super::lines;
use crate::{
    event::CheckVerdict,
    health::{self, Health},
    outcome::Outcome,
    plan::Stage,
    state::{Check, RunState, SubjectState},
};

/// The report of a run.
pub fn report(state: &RunState) -> String {
    let suites = suites(state);
    let (tests, failures, skipped) = suites.iter().fold((0, 0, 0), |sum, suite| {
        (sum.0 + suite.cases.len(), sum.1 + suite.count(is_failure), sum.2 + suite.count(is_skipped))
    });
    let name = escape(&format!("plinth {}", state.platform));
    let time = seconds(state.elapsed());
    let mut xml = String::from("<?xml version=\"1.0\" encoding=\"UTF-8\"?>\n");
    let _ = writeln!(
        xml,
        "<testsuites name=\"{name}\" tests=\"{tests}\" failures=\"{failures}\" skipped=\"{skipped}\" time=\"{time}\">"
    );
    for suite in &suites {
        suite.print(&mut xml);
    }
    xml.push_str("</testsuites>\n");
    xml
}

struct Suite {
    name: String,
    time: SignedDuration,
    cases: Vec<Case>,
    output: String,
}

struct Case {
    class: String,
    name: String,
    verdict: Verdict,
}

enum Verdict {
    Passed,
    Skipped(String),
    Failed(String),
}

fn is_failure(case: &Case) -> bool {
    matches!(case.verdict, Verdict::Failed(_))
}

fn is_skipped(case: &Case) -> bool {
    matches!(case.verdict, Verdict::Skipped(_))
}

fn suites(state: &RunState) -> Vec<Suite> {
    let checks = suite("preflight".into(), state.checks.iter().map(of_check).collect());
    let stages = state.plan.iter().flat_map(|plan| &plan.stages).map(|stage| of_stage(stage, state));
    let planned: Vec<_> = state.plan.iter().flat_map(crate::plan::Plan::changes).map(|change| &change.subject.key).collect();
    let others = state.subjects.iter().filter(|(key, _)| !planned.contains(key));
    let others = suite("objects known only during the run".into(), others.map(|(_, known)| of_object(known)).collect());
    let mut suites: Vec<Suite> = std::iter::once(checks).chain(stages).chain([others]).collect();
    suites.retain(|suite| !suite.cases.is_empty());
    suites.push(outcome(state));
    suites
}

/// The run as one case: a report is red exactly when the exit code says so.
fn outcome(state: &RunState) -> Suite {
    let outcome = state.outcome_of_replay();
    let message = state.finished.as_ref().map(|finished| finished.message.clone()).unwrap_or_default();
    let verdict = match outcome {
        Outcome::Done | Outcome::Changes => Verdict::Passed,
        _ => Verdict::Failed(format!("{outcome} (exit {}): {message}", outcome.exit_code())),
    };
    let case = Case { class: "run".into(), name: "outcome".into(), verdict };
    Suite { output: lines::totals(&state.summary()), time: state.elapsed(), ..suite("run".into(), vec![case]) }
}

fn suite(name: String, cases: Vec<Case>) -> Suite {
    Suite { name, time: SignedDuration::ZERO, cases, output: String::new() }
}

fn of_check(check: &Check) -> Case {
    let verdict = match check.verdict {
        CheckVerdict::Passed | CheckVerdict::Warned => Verdict::Passed,
        CheckVerdict::Failed => Verdict::Failed(check.message.clone()),
    };
    Case { class: "preflight".into(), name: check.id.to_string(), verdict }
}

fn of_stage(stage: &Stage, state: &RunState) -> Suite {
    let case = |change: &crate::plan::Change| match state.subjects.get(&change.subject.key) {
        Some(known) => of_object(known),
        None => Case {
            class: change.subject.key.gvk.group_kind().to_string(),
            name: change.subject.to_string(),
            verdict: Verdict::Skipped("not reached".into()),
        },
    };
    let name = format!("stage {}: {}", stage.id, stage.title);
    let time = state.stage_duration(stage.id).unwrap_or(SignedDuration::ZERO);
    Suite { time, ..suite(name, stage.changes.iter().map(case).collect()) }
}

fn of_object(known: &SubjectState) -> Case {
    let verdict = match (known.health, &known.skipped) {
        _ if !known.missing.is_empty() => {
            let kinds: Vec<String> = known.missing.iter().map(ToString::to_string).collect();
            Verdict::Skipped(format!("deferred: waits for {}", kinds.join(", ")))
        }
        (Some(Health::Failed), _) => Verdict::Failed(format!("failed: {}", known.why())),
        (Some(Health::Current) | None, Some(reason)) => Verdict::Skipped(lines::skipped(reason)),
        (Some(Health::Current) | None, None) => Verdict::Passed,
        (Some(health), _) => Verdict::Skipped(format!("{}: {}", health::word(health), known.why())),
    };
    Case { class: known.subject.key.gvk.group_kind().to_string(), name: known.subject.to_string(), verdict }
}

impl Suite {
    fn count(&self, which: fn(&Case) -> bool) -> usize {
        self.cases.iter().filter(|case| which(case)).count()
    }

    fn print(&self, xml: &mut String) {
        let _ = writeln!(
            xml,
            "  <testsuite name=\"{}\" tests=\"{}\" failures=\"{}\" skipped=\"{}\" time=\"{}\">",
            escape(&self.name),
            self.cases.len(),
            self.count(is_failure),
            self.count(is_skipped),
            seconds(self.time)
        );
        self.cases.iter().for_each(|case| case.print(xml));
        if !self.output.is_empty() {
            let _ = writeln!(xml, "    <system-out>{}</system-out>", escape(&self.output));
        }
        xml.push_str("  </testsuite>\n");
    }
}

impl Case {
    fn print(&self, xml: &mut String) {
        let _ = write!(xml, "    <testcase classname=\"{}\" name=\"{}\"", escape(&self.class), escape(&self.name));
        let _ = match &self.verdict {
            Verdict::Passed => writeln!(xml, "/>"),
            Verdict::Skipped(why) => writeln!(xml, "><skipped message=\"{}\"/></testcase>", escape(why)),
            Verdict::Failed(why) => writeln!(xml, "><failure message=\"{}\"/></testcase>", escape(why)),
        };
    }
}

fn seconds(duration: SignedDuration) -> String {
    let millis = duration.as_millis().max(0);
    format!("{}.{:03}", millis / 1000, millis % 1000)
}

/// Text for an attribute or an element. What XML 1.0 cannot hold becomes a question mark.
fn escape(text: &str) -> String {
    let mut escaped = String::with_capacity(text.len());
    for c in text.chars() {
        match c {
            '&' => escaped.push_str("&amp;"),
            '<' => escaped.push_str("&lt;"),
            '>' => escaped.push_str("&gt;"),
            '"' => escaped.push_str("&quot;"),
            '\n' => escaped.push_str("&#10;"),
            '\t' => escaped.push_str("&#9;"),
            c if c.is_control() || matches!(c, '\u{FFFE}' | '\u{FFFF}') => escaped.push('?'),
            c => escaped.push(c),
        }
    }
    escaped
}
