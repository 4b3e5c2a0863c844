//! `plinth rgd check` and `crd`.

use plinth_engine::diagnostic::Severity;
use plinth_run::Outcome;
use serde_json::json;

use super::load::Checked;
use crate::{args::Output, out::Out};

/// Prints all findings of all definitions; failed where one is refused.
pub(super) fn present(checked: &[Checked], output: Output, out: Out) -> Outcome {
    match output {
        Output::Human => checked.iter().for_each(|one| human(one, out)),
        Output::Json => out.data(&json!(checked.iter().map(document).collect::<Vec<_>>()).to_string()),
    }
    if checked.iter().any(|one| one.verdict() == "rejected") { Outcome::Failed } else { Outcome::Done }
}

/// Prints the CRDs that the definitions generate.
pub(super) fn print_crds(checked: &[Checked], out: Out) -> Outcome {
    for one in checked {
        let Some(graph) = one.graph() else {
            human(one, out);
            return Outcome::Failed;
        };
        out.data(&serde_json::to_string_pretty(&graph.crd).expect("a CRD is JSON"));
    }
    Outcome::Done
}

/// A line with the verdict, then one for each finding; with `--quiet` only errors.
pub(super) fn human(one: &Checked, out: Out) {
    lines(one, out.quiet).iter().for_each(|line| out.data(line));
}

/// The same lines where standard output is for something else.
pub(super) fn complain(one: &Checked, out: Out) {
    lines(one, out.quiet).iter().for_each(|line| out.error(line));
}

fn lines(one: &Checked, only_errors: bool) -> Vec<String> {
    let file = one.file.display();
    let mut lines = vec![format!("{}  {file}  {}", one.verdict(), one.name).trim_end().to_owned()];
    for finding in one.findings().iter().filter(|finding| !only_errors || finding.severity == Severity::Error) {
        let word = match finding.severity {
            Severity::Error => "error",
            Severity::Warning => "warning",
        };
        let marked = finding.marked().into_iter().enumerate();
        let gap = if finding.location.is_some() { ":" } else { ": " };
        let line = |(index, line)| if index == 0 { format!("  {word:<8}  {file}{gap}{line}") } else { format!("      {line}") };
        lines.extend(marked.map(line));
    }
    let missing = if only_errors { &[] } else { one.missing() };
    lines.extend(missing.iter().map(|missing| format!("  deferred  node {} waits for {}", missing.node, missing.gvk)));
    lines
}

fn document(one: &Checked) -> serde_json::Value {
    let missing = one.missing().iter().map(|missing| json!({"node": missing.node, "kind": missing.gvk.to_string()}));
    json!({
        "file": one.file,
        "name": one.name,
        "verdict": one.verdict(),
        "errors": one.errors(),
        "diagnostics": one.findings(),
        "deferred": missing.collect::<Vec<_>>(),
    })
}
