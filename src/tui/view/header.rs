//! Header and tabs: what, where, and how far. The safety line, never dropped.

use plinth_run::{Verb, duration};
use ratatui::{
    Frame,
    layout::Rect,
    text::{Line, Span},
    widgets::Paragraph,
};

use super::text::fit_to;
use crate::{
    model::{Model, Phase, View},
    theme::Role,
};

/// The run in one word, for terminals with room for no more.
pub(super) fn word(model: &Model) -> &'static str {
    match (model.phase(), &model.run.finished) {
        (_, Some(finished)) => finished.outcome.word(),
        _ if model.ui.lost.is_some() => "no connection",
        _ if model.ui.cut.is_some() => "cut off",
        (Phase::Preparing, None) => "preparing",
        (Phase::Review, None) => "review",
        // On day 2 nobody runs anything from here.
        (Phase::Running, None) if model.run.verb == Some(Verb::Controller) => "watching",
        (Phase::Running | Phase::Finished, None) => "running",
    }
}

pub(super) fn draw(model: &Model, frame: &mut Frame<'_>, area: Rect) {
    let width = usize::from(area.width);
    let right = fit_to(&counts(model), width);
    let room = width.saturating_sub(right.chars().count() + 1);
    let place = if model.ui.place.is_empty() { String::new() } else { format!("  {}", model.ui.place) };
    // The counts are the safety line: on a narrow terminal the rest makes room for them.
    let left = fit_to(&format!(" plinth  {}{place}  {}", model.run.platform, model.run.source), room);
    let pad = " ".repeat(width.saturating_sub(left.chars().count() + right.chars().count()));
    let line = Line::from(vec![Span::styled(left, model.ui.theme.style(Role::Heading)), Span::raw(pad), Span::raw(right)]);
    frame.render_widget(Paragraph::new(line), area);
}

/// How the whole stands: ready of all, failed, and what is neither; how long it takes or, of a cluster that does not answer, how
/// old that is.
fn counts(model: &Model) -> String {
    let summary = model.run.summary();
    let now = model.ui.now;
    let time = match &model.ui.lost {
        Some(lost) if model.run.finished.is_none() => now.duration_since(lost.since),
        _ => model.run.elapsed_at(now),
    };
    let (word, time) = (word(model).to_uppercase(), duration::short(time));
    format!("{word} {}/{} !{} ~{} {time} ", summary.ready, summary.total, summary.failed, summary.open())
}

pub(super) fn draw_tabs(model: &Model, frame: &mut Frame<'_>, area: Rect) {
    let tab = |(view, key, title): &(View, char, &str)| match (*view == model.ui.view, area.width < 60) {
        (true, _) => format!(" [{key} {title}]"),
        (false, false) => format!("  {key} {title} "),
        (false, true) => format!(" {key}"),
    };
    let text: String = View::ALL.iter().map(tab).chain(narrowed(model)).collect();
    let text = fit_to(&text, usize::from(area.width));
    frame.render_widget(Paragraph::new(Span::styled(text, model.ui.theme.style(Role::Dim))), area);
}

/// What is left out, and whether the picture stands still: nobody must take a part for the whole.
fn narrowed(model: &Model) -> Vec<String> {
    let ui = &model.ui;
    let mut notes = Vec::new();
    if let Some(cut) = &ui.cut {
        notes.push(cut.clone());
    }
    if ui.frozen {
        notes.push("FROZEN".to_owned());
    }
    if let Some(plane) = &ui.plane {
        notes.push(format!("plane: {plane}"));
    }
    if ui.unhealthy_only {
        notes.push("only what is not ready".to_owned());
    }
    // A term that finds nothing is more urgent than the whole filter.
    if !ui.inactive.is_empty() {
        notes.push(format!("finds nothing: {}", ui.inactive.join(" ")));
    }
    if !ui.filter_text.is_empty() {
        notes.push(format!("filter: {}", ui.filter_text));
    }
    notes.into_iter().map(|note| format!("  {note}")).collect()
}
