//! An open object: its tabs, and the lines of one of them.

use ratatui::{
    Frame,
    layout::Rect,
    text::{Line, Span},
    widgets::{Paragraph, Wrap},
};

use super::text::rule;
use crate::{
    detail::{Detail, Tab},
    model::Model,
    theme::Role,
    why::clean,
};

pub(super) fn draw(model: &Model, detail: &Detail, frame: &mut Frame<'_>, area: Rect) {
    let theme = model.ui.theme;
    let tabs: Vec<String> =
        Tab::ALL.iter().map(|(tab, title)| if *tab == detail.tab { format!("[{title}]") } else { (*title).to_owned() }).collect();
    let mark = if model.ui.in_detail { '>' } else { ' ' };
    let title = format!("─{mark}{} {} ", detail.key.name, tabs.join(" "));
    let mut lines = vec![Line::from(Span::styled(rule(&title, area.width), theme.style(Role::Dim)))];
    let visible = detail.lines.iter().skip(detail.top).take(usize::from(area.height));
    lines.extend(visible.map(|line| Line::from(Span::styled(clean(line), theme.style(role(detail.tab, line))))));
    frame.render_widget(Paragraph::new(lines).wrap(Wrap { trim: false }), area);
}

/// What is there and what is wanted, told apart by their signs first.
fn role(tab: Tab, line: &str) -> Role {
    match (tab, line.trim_start().chars().next()) {
        (Tab::Diff, Some('-')) => Role::Failed,
        (Tab::Diff, Some('+')) => Role::Ready,
        (Tab::Events, _) if line.starts_with("warning") => Role::Waiting,
        _ => Role::Plain,
    }
}
