//! The why strip: the chain from the selected object to the root cause, and the next step.

use ratatui::{
    Frame,
    layout::Rect,
    text::{Line, Span},
    widgets::{Paragraph, Wrap},
};

use crate::{model::Model, theme::Role};

pub(super) fn draw(model: &Model, frame: &mut Frame<'_>, area: Rect) {
    if area.height == 0 {
        return;
    }
    let title = model.selected().map_or_else(|| "── why ".to_owned(), |row| format!("── why: {} ", row.title));
    let rule = "─".repeat(usize::from(area.width).saturating_sub(title.chars().count()));
    let mut lines = vec![Line::from(Span::styled(format!("{title}{rule}"), model.ui.theme.style(Role::Dim)))];
    lines.extend(chain(model).into_iter().map(Line::from));
    frame.render_widget(Paragraph::new(lines).wrap(Wrap { trim: false }), area);
}

/// One line a cause, nearest first; the end of the run where there is one and nothing is selected.
fn chain(model: &Model) -> Vec<String> {
    let Some(row) = model.selected() else { return finished(model) };
    let Some(known) = row.key.as_ref().and_then(|key| model.run.subjects.get(key)) else {
        return vec![clean(&row.detail)];
    };
    if known.causes.is_empty() {
        let text = if row.detail.is_empty() { format!("{} is {}", row.title, row.word) } else { row.detail.clone() };
        return vec![clean(&text)];
    }
    known
        .causes
        .iter()
        .enumerate()
        .map(|(depth, cause)| {
            let subject = cause.subject.as_ref().map(|subject| format!("{subject} ")).unwrap_or_default();
            let reason = if cause.reason.is_empty() { String::new() } else { format!("{}: ", cause.reason) };
            clean(&format!("{}because {subject}{reason}{}", "  ".repeat(depth), cause.message))
        })
        .collect()
}

fn finished(model: &Model) -> Vec<String> {
    let Some(finished) = &model.run.finished else { return Vec::new() };
    [Some(finished.message.clone()), finished.hint.as_ref().map(|hint| format!("next: {hint}"))]
        .into_iter()
        .flatten()
        .filter(|line| !line.is_empty())
        .map(|line| clean(&line))
        .collect()
}

fn clean(text: &str) -> String {
    text.chars().map(|c| if c.is_control() { ' ' } else { c }).collect()
}
