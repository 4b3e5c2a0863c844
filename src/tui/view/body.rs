//! The rows of the current view. Only the visible ones are made into text.

use plinth_run::duration;
use ratatui::{
    Frame,
    layout::Rect,
    text::{Line, Span},
    widgets::Paragraph,
};

use crate::{
    model::{Model, Phase},
    rows::Row,
    theme::Role,
};

/// Columns of the state's word.
const WORD: usize = 12;
/// Columns of the age.
const AGE: usize = 8;

pub(super) fn draw(model: &Model, frame: &mut Frame<'_>, area: Rect) {
    if model.rows.is_empty() {
        frame.render_widget(Paragraph::new(Span::styled(empty(model), model.ui.theme.style(Role::Dim))), area);
        return;
    }
    let visible = model.rows.iter().enumerate().skip(model.ui.top).take(usize::from(area.height));
    let lines: Vec<Line<'_>> = visible.map(|(index, row)| line(model, row, index == model.ui.cursor, area.width)).collect();
    frame.render_widget(Paragraph::new(lines), area);
}

fn empty(model: &Model) -> &'static str {
    match model.phase() {
        Phase::Preparing => " resolving the channel and planning …",
        Phase::Review | Phase::Running | Phase::Finished => " nothing here",
    }
}

fn line<'a>(model: &Model, row: &Row, selected: bool, width: u16) -> Line<'a> {
    let width = usize::from(width);
    let mark = if selected { '>' } else { ' ' };
    let fold = match row.folded {
        Some(true) => "+ ",
        Some(false) => "- ",
        None => "  ",
    };
    let age = row.since.filter(|_| width >= 60).map(|since| duration::short(model.ui.now.duration_since(since)));
    let age = age.unwrap_or_default();
    let tail = if age.is_empty() { 0 } else { AGE };
    let head = format!("{mark}{}{fold}{}", "  ".repeat(row.depth.min(16)), row.title);
    let room = width.saturating_sub(WORD + 1 + tail);
    // One column for all rows: eyes go down a column, not along a line.
    let title_width = room * 3 / 5;
    let title = fit(&head, title_width);
    let detail = fit(&row.detail, room.saturating_sub(title_width));
    let style = model.ui.theme.style(row.role);
    let spans = vec![
        Span::styled(title, if row.role == Role::Heading { style } else { model.ui.theme.style(Role::Plain) }),
        Span::raw(" "),
        Span::styled(fit(&row.word, WORD), style),
        Span::styled(detail, model.ui.theme.style(Role::Dim)),
        Span::raw(format!("{age:>tail$}")),
    ];
    let line = Line::from(spans);
    if selected { line.patch_style(model.ui.theme.style(Role::Selected)) } else { line }
}

/// The text in exactly `width` columns, with an ellipsis where it does not fit. Control characters never reach the terminal.
pub(super) fn fit(text: &str, width: usize) -> String {
    let clean: Vec<char> = text.chars().map(|c| if c.is_control() { ' ' } else { c }).collect();
    if clean.len() <= width {
        return format!("{:<width$}", clean.into_iter().collect::<String>());
    }
    clean.into_iter().take(width.saturating_sub(1)).chain(['…']).take(width).collect()
}
