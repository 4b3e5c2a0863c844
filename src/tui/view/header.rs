//! Header and tabs: what, where, and how far. The safety line, never dropped.

use plinth_run::duration;
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
        (Phase::Running | Phase::Finished, None) => "running",
    }
}

pub(super) fn draw(model: &Model, frame: &mut Frame<'_>, area: Rect) {
    let summary = model.run.summary();
    let elapsed = duration::short(model.run.elapsed());
    let right = format!(
        "{} {}/{} !{} ~{} {elapsed} ",
        word(model).to_uppercase(),
        summary.ready,
        summary.total,
        summary.failed,
        summary.deferred
    );
    let room = usize::from(area.width).saturating_sub(right.chars().count() + 1);
    let left: String = format!(" plinth  {}  {}", model.run.platform, model.run.source).chars().take(room).collect();
    let pad = " ".repeat(usize::from(area.width).saturating_sub(left.chars().count() + right.chars().count()));
    let line = Line::from(vec![Span::styled(left, model.ui.theme.style(Role::Heading)), Span::raw(pad), Span::raw(right)]);
    frame.render_widget(Paragraph::new(line), area);
}

pub(super) fn draw_tabs(model: &Model, frame: &mut Frame<'_>, area: Rect) {
    let mut text: String = View::ALL
        .iter()
        .map(|(view, key, title)| if *view == model.ui.view { format!(" [{key} {title}]") } else { format!("  {key} {title} ") })
        .collect();
    if model.ui.unhealthy_only {
        text.push_str("  only what is not ready");
    }
    frame.render_widget(Paragraph::new(Span::styled(text, model.ui.theme.style(Role::Dim))), area);
}
