//! What lies over the view, and the footer: both are read off the command table.

use plinth_run::Action;
use ratatui::{
    Frame,
    layout::{Constraint, Flex, Layout, Rect},
    text::{Line, Span},
    widgets::{Block, Clear, Paragraph, Wrap},
};

use crate::{
    command::{self, TABLE},
    model::{Model, Overlay},
    theme::Role,
};

pub(super) fn draw(model: &Model, frame: &mut Frame<'_>, area: Rect) {
    let Some(overlay) = model.ui.overlay else { return };
    let (title, lines) = match overlay {
        Overlay::Question => (" apply this plan? ", question(model)),
        Overlay::Quit => (" the run goes on ", vec!["Interrupt it and leave? It can be resumed.".to_owned()]),
        Overlay::Help => (" keys ", Vec::new()),
    };
    let context = command::context(model);
    let wanted = if overlay == Overlay::Help { command::Context::View } else { context };
    let keys = TABLE.iter().filter(|entry| entry.context == wanted).map(|entry| {
        let keys: Vec<String> = entry.keys.iter().map(|key| key.label()).collect();
        format!("{:<14} {}", keys.join(" "), entry.title)
    });
    let lines: Vec<Line<'_>> = lines.into_iter().chain(keys).map(Line::from).collect();
    let height = u16::try_from(lines.len()).unwrap_or(u16::MAX).saturating_add(2);
    let [area] = Layout::horizontal([Constraint::Max(64)]).flex(Flex::Center).areas(area);
    let [area] = Layout::vertical([Constraint::Max(height)]).flex(Flex::Center).areas(area);
    frame.render_widget(Clear, area);
    frame.render_widget(Paragraph::new(lines).block(Block::bordered().title(title)).wrap(Wrap { trim: false }), area);
}

/// The question repeats platform, cluster and counts, so that it can be answered without looking elsewhere.
fn question(model: &Model) -> Vec<String> {
    let Some(plan) = &model.run.plan else { return Vec::new() };
    let counts: Vec<String> = [Action::Create, Action::Configure, Action::Delete, Action::Unchanged]
        .into_iter()
        .map(|action| format!("{} {}", action.verb(), plan.count(action)))
        .chain([format!("defer {}", plan.deferred.len())])
        .collect();
    let cluster = plan.cluster.as_ref().map_or_else(|| "unknown".to_owned(), ToString::to_string);
    vec![
        format!("platform  {}", plan.platform),
        format!("source    {}", plan.source),
        format!("cluster   {cluster}"),
        counts.join("  "),
        String::new(),
    ]
}

pub(super) fn draw_footer(model: &Model, frame: &mut Frame<'_>, area: Rect) {
    let context = command::context(model);
    let shown = TABLE.iter().filter(|entry| entry.footer && entry.context == context);
    let text = shown.map(|entry| format!(" {} {} ", entry.keys[0].label(), entry.title)).collect::<Vec<_>>().concat();
    frame.render_widget(Paragraph::new(Span::styled(text, model.ui.theme.style(Role::Dim))), area);
}
