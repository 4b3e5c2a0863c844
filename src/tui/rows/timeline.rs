//! Stages with when they began, how long they took, and how long they usually take.

use jiff::Timestamp;
use plinth_run::{History, RunState, StageId, duration};

use super::Row;
use crate::theme::Role;

/// One word for a stage.
pub(super) fn word(run: &RunState, stage: StageId) -> &'static str {
    run.stages.get(&stage).map_or("planned", |state| state.outcome.map_or("running", plinth_run::Outcome::word))
}

/// A row for every stage, and one for the whole run.
pub fn timeline_rows(run: &RunState, history: &History, now: Timestamp) -> Vec<Row> {
    let planned = run.plan.iter().flat_map(|plan| &plan.stages).map(|stage| (stage.id, stage.title.as_str()));
    let mut stages: Vec<(StageId, &str)> = planned.collect();
    let known: Vec<StageId> = stages.iter().map(|(id, _)| *id).collect();
    stages.extend(run.stages.iter().filter(|(id, _)| !known.contains(id)).map(|(id, stage)| (*id, stage.title.as_str())));
    if stages.is_empty() {
        return Vec::new();
    }
    let mut rows: Vec<Row> = stages.iter().map(|(id, title)| stage_row(run, history, now, *id, title)).collect();
    rows.push(whole(run, history, now));
    rows
}

fn stage_row(run: &RunState, history: &History, now: Timestamp, id: StageId, title: &str) -> Row {
    let state = run.stages.get(&id);
    let usual = match history.usual(title) {
        Some(estimate) if estimate.runs == 1 => format!("{} in one earlier run", duration::short(estimate.usual)),
        Some(estimate) => format!("usually {}, {} runs", duration::short(estimate.usual), estimate.runs),
        None => "no history".to_owned(),
    };
    let began =
        state.zip(run.started).map(|(state, start)| format!("from +{}", duration::short(state.started.duration_since(start))));
    let detail = match state.map(|state| (state, state.finished)) {
        Some((state, Some(finished))) => format!("took {}  {usual}", duration::short(finished.duration_since(state.started))),
        Some((state, None)) => format!("{} so far  {usual}", duration::short(now.duration_since(state.started))),
        None => usual,
    };
    let word = word(run, id);
    Row {
        title: format!("stage {id} {title}"),
        word: word.to_owned(),
        detail: began.map_or_else(|| detail.clone(), |began| format!("{began}  {detail}")),
        role: match word {
            "done" => Role::Ready,
            "running" => Role::Progressing,
            "planned" => Role::Plain,
            _ => Role::Failed,
        },
        ..Row::default()
    }
}

fn whole(run: &RunState, history: &History, now: Timestamp) -> Row {
    let elapsed = run.elapsed_at(now);
    let left = match (&run.finished, history.remaining(run, now)) {
        (Some(_), _) => String::new(),
        (None, Some(left)) => format!("  about {} left", duration::short(left)),
        (None, None) => "  no history to say how long it will take".to_owned(),
    };
    Row {
        title: "whole run".to_owned(),
        word: run.finished.as_ref().map_or("running", |finished| finished.outcome.word()).to_owned(),
        detail: format!("{}{left}", duration::short(elapsed)),
        role: Role::Heading,
        ..Row::default()
    }
}
