//! What lies over the view, and the footer: both are read off the command table.

use plinth_run::Action;
use ratatui::{
    Frame,
    layout::{Constraint, Flex, Layout, Rect},
    text::{Line, Span},
    widgets::{Block, Clear, Paragraph, Wrap},
};

use super::text::fit;
use crate::{
    command::{self, Command, Context, Entry, TABLE},
    model::{Contexts, Model, Overlay, Phase},
    theme::Role,
    why::clean,
};

/// Columns of a box, its border included.
const WIDTH: u16 = 64;

pub(super) fn draw(model: &Model, frame: &mut Frame<'_>, area: Rect) {
    let Some(overlay) = model.ui.overlay else { return };
    let (title, lines) = match overlay {
        Overlay::Question => (" apply this plan? ".to_owned(), [question(model), keys(Context::Question)].concat()),
        Overlay::Quit => {
            let ask = vec!["Interrupt it and leave? It can be resumed.".to_owned()];
            (" the run goes on ".to_owned(), [ask, keys(Context::Quit)].concat())
        }
        Overlay::Help => {
            let watches = model.ui.watches.map(|count| format!("({count} watches at the API server) ")).unwrap_or_default();
            (format!(" keys {watches}"), keys(Context::View))
        }
        Overlay::Palette => (" command ".to_owned(), palette(model, usize::from(area.height.saturating_sub(3)))),
        Overlay::Contexts => (" context ".to_owned(), contexts(model, usize::from(area.height.saturating_sub(3)))),
        // The filter is typed in the footer: the rows that it leaves have to be seen.
        Overlay::Filter => return,
    };
    let height = u16::try_from(lines.len()).unwrap_or(u16::MAX).saturating_add(2);
    let skip = if overlay == Overlay::Help { usize::from(height.saturating_sub(area.height)).min(model.ui.choice) } else { 0 };
    let lines: Vec<Line<'_>> = lines.into_iter().skip(skip).map(|line| Line::from(clean(&line))).collect();
    let [area] = Layout::horizontal([Constraint::Max(WIDTH)]).flex(Flex::Center).areas(area);
    let [area] = Layout::vertical([Constraint::Max(height)]).flex(Flex::Center).areas(area);
    frame.render_widget(Clear, area);
    frame.render_widget(Paragraph::new(lines).block(Block::bordered().title(title)).wrap(Wrap { trim: false }), area);
}

fn keys(context: Context) -> Vec<String> {
    TABLE.iter().filter(|entry| entry.context == context).map(|entry| format!("{:<17} {}", labels(entry), entry.title)).collect()
}

fn labels(entry: &Entry) -> String {
    entry.keys.iter().map(|key| key.label()).collect::<Vec<_>>().join(" ")
}

/// What was typed, and the commands that it may mean with their keys: whoever uses it learns them.
fn palette(model: &Model, height: usize) -> Vec<String> {
    let offers = command::offers(&model.ui.input);
    let lines = offers.iter().map(|entry| format!("{} {}", fit(entry.title, 38), labels(entry))).collect();
    choice(model, ':', lines, height)
}

/// Clusters that can be looked at instead.
fn contexts(model: &Model, height: usize) -> Vec<String> {
    let lines = match &model.ui.contexts {
        None | Some(Contexts::Unread) => return vec!["reading the kubeconfig …".to_owned()],
        Some(Contexts::Unreadable(why)) => return vec![why.clone()],
        Some(contexts) => contexts.offers(&model.ui.input).into_iter().map(|name| {
            let now = if name == model.ui.place { "  (shown now)" } else { "" };
            format!("{name}{now}")
        }),
    };
    choice(model, '@', lines.collect(), height)
}

/// What was typed, what it may mean, and which of that is chosen.
fn choice(model: &Model, prompt: char, offers: Vec<String>, height: usize) -> Vec<String> {
    let ui = &model.ui;
    let choice = ui.choice.min(offers.len().saturating_sub(1));
    let window = height.saturating_sub(1).max(1);
    let top = (choice + 1).saturating_sub(window);
    let error = ui.input_error.as_ref().map(|error| format!("  {error}")).unwrap_or_default();
    let line = |(index, offer): (usize, String)| format!("{} {offer}", if index == choice { '>' } else { ' ' });
    let seen = offers.into_iter().enumerate().skip(top).take(window).map(line);
    std::iter::once(format!("{prompt}{}_{error}", ui.input)).chain(seen).collect()
}

/// The question repeats platform, context, cluster, planes and counts, so that it can be answered without looking elsewhere.
fn question(model: &Model) -> Vec<String> {
    let Some(plan) = &model.run.plan else { return Vec::new() };
    let counts: Vec<String> = [Action::Create, Action::Configure, Action::Delete, Action::Unchanged]
        .into_iter()
        .map(|action| format!("{} {}", action.verb(), plan.count(action)))
        .chain([format!("defer {}", plan.deferred.len())])
        .collect();
    let cluster = plan.cluster.as_ref().map_or_else(|| "unknown".to_owned(), ToString::to_string);
    let context = Some(&model.ui.place).filter(|place| !place.is_empty()).map(|place| format!("context   {place}"));
    let written = plan.stages.iter().flat_map(|stage| &stage.changes);
    let mut planes: Vec<&str> = written.map(|change| change.subject.plane()).collect();
    planes.sort_unstable();
    planes.dedup();
    let planes = Some(planes).filter(|planes| planes.len() > 1).map(|planes| format!("planes    {}", planes.join(", ")));
    let named = [format!("platform  {}", plan.platform), format!("source    {}", plan.source)];
    let facts = named.into_iter().chain(context).chain([format!("cluster   {cluster}")]).chain(planes).chain([counts.join("  ")]);
    let unverified = plan.unverified.iter().map(|check| format!("NOT CHECKED: {check}"));
    facts.chain(unverified).chain([String::new()]).collect()
}

pub(super) fn draw_footer(model: &Model, frame: &mut Frame<'_>, area: Rect) {
    let theme = model.ui.theme;
    let span = match (&model.ui.notice, model.ui.overlay) {
        (Some(notice), _) => Span::styled(format!(" {}", clean(notice)), theme.style(Role::Heading)),
        (None, Some(Overlay::Filter)) => {
            let error = model.ui.input_error.as_ref().map(|error| format!("  {error}"));
            let help = error.unwrap_or_else(|| "  kind: plane: ns: state: reason:  ! not".to_owned());
            Span::styled(clean(&format!(" /{}_{help}", model.ui.input)), theme.style(Role::Heading))
        }
        (None, _) => {
            let context = command::context(model);
            let shown = TABLE.iter().filter(|entry| entry.footer && entry.context == context);
            // A question that was put aside must not be forgotten.
            let asks = |entry: &Entry| entry.command == Command::Open && model.phase() == Phase::Review;
            let does = |entry: &Entry| if asks(entry) { "answer the question" } else { entry.title };
            let mut text: Vec<(bool, String)> =
                shown.map(|entry| (!asks(entry), format!(" {} {} ", entry.keys[0].label(), does(entry)))).collect();
            text.sort_by_key(|(later, _)| *later);
            let text: Vec<String> = text.into_iter().map(|(_, text)| text).collect();
            Span::styled(text.concat(), theme.style(Role::Dim))
        }
    };
    frame.render_widget(Paragraph::new(span), area);
}
