//! Header and tabs: what, where, and how far. The safety line, never dropped.

use plinth_run::{Verb, duration};
use ratatui::{
    Frame,
    layout::Rect,
    text::{Line, Span},
    widgets::Paragraph,
};

use crate::{
    model::{Model, Phase, View},
    theme::Role,
};

/// The run in one word, for terminals with room for no more.
pub(super) fn word(model: &Model) -> &'static str {
    match (model.phase(), &model.run.finished) {
        (_, Some(finished)) => finished.outcome.word(),
        (Phase::Preparing, None) => "preparing",
        (Phase::Review, None) => "review",
        // On day 2 nobody runs anything from here.
        (Phase::Running, None) if model.run.verb == Some(Verb::Controller) => "watching",
        (Phase::Running | Phase::Finished, None) => "running",
    }
}

pub(super) fn draw(model: &Model, frame: &mut Frame<'_>, area: Rect) {
    let summary = model.run.summary();
    let elapsed = duration::short(model.run.elapsed_at(model.ui.now));
    let right = format!(
        "{} {}/{} !{} ~{} {elapsed} ",
        word(model).to_uppercase(),
        summary.ready,
        summary.total,
        summary.failed,
        summary.deferred
    );
    let room = usize::from(area.width).saturating_sub(right.chars().count() + 1);
    let place = if model.ui.place.is_empty() { String::new() } else { format!("  {}", model.ui.place) };
    // The counts are the safety line: on a narrow terminal the rest makes room for them.
    let left: String = format!(" plinth  {}{place}  {}", model.run.platform, model.run.source).chars().take(room).collect();
    let left = crate::why::clean(&left);
    let pad = " ".repeat(usize::from(area.width).saturating_sub(left.chars().count() + right.chars().count()));
    let line = Line::from(vec![Span::styled(left, model.ui.theme.style(Role::Heading)), Span::raw(pad), Span::raw(right)]);
    frame.render_widget(Paragraph::new(line), area);
}

pub(super) fn draw_tabs(model: &Model, frame: &mut Frame<'_>, area: Rect) {
    let tab = |(view, key, title): &(View, char, &str)| match (*view == model.ui.view, area.width < 60) {
        (true, _) => format!(" [{key} {title}]"),
        (false, false) => format!("  {key} {title} "),
        (false, true) => format!(" {key}"),
    };
    let text: String = View::ALL.iter().map(tab).chain(narrowed(model)).collect();
    frame.render_widget(Paragraph::new(Span::styled(text, model.ui.theme.style(Role::Dim))), area);
}

/// What is left out, and whether the picture stands still: nobody must take a part for the whole.
fn narrowed(model: &Model) -> Vec<String> {
    let ui = &model.ui;
    let mut notes = Vec::new();
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
