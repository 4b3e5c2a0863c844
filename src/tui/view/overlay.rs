//! What lies over the view, and the footer: both are read off the command table.

use plinth_run::{Action, Plan};
use ratatui::{
    Frame,
    layout::{Constraint, Flex, Layout, Rect},
    text::{Line, Span},
    widgets::{Block, Clear, Paragraph, Wrap},
};

use super::text::{fit, fit_to, lines_of};
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
    let room = (usize::from(area.width.min(WIDTH).saturating_sub(2)), usize::from(area.height.saturating_sub(2)));
    let (title, lines) = match overlay {
        Overlay::Question => (" apply this plan? ".to_owned(), question(model, room)),
        Overlay::Name => (" this takes away what belongs to nothing else ".to_owned(), name(model, room)),
        Overlay::Quit => {
            let ask = vec!["Interrupt it and leave? It can be resumed.".to_owned()];
            (" the run goes on ".to_owned(), [ask, keys(Context::Quit)].concat())
        }
        Overlay::Help => {
            let watches = model.ui.watches.map(|count| format!("({count} watches at the API server) ")).unwrap_or_default();
            (format!(" keys {watches}"), keys(Context::View).iter().map(|line| fit_to(line, room.0)).collect())
        }
        Overlay::Palette => (" command ".to_owned(), palette(model, room)),
        Overlay::Contexts => (" context ".to_owned(), contexts(model, room)),
        // The filter is typed in the footer: the rows that it leaves have to be seen.
        Overlay::Filter => return,
    };
    let height = u16::try_from(tall(&lines, room.0)).unwrap_or(u16::MAX).saturating_add(2);
    let skip = if overlay == Overlay::Help { usize::from(height.saturating_sub(area.height)).min(model.ui.choice) } else { 0 };
    let below = if overlay == Overlay::Help { lines.len().saturating_sub(skip + room.1) } else { 0 };
    let below = if below > 0 { format!(" {below} more below: ↓ ") } else { String::new() };
    let lines: Vec<Line<'_>> = lines.into_iter().skip(skip).map(|line| Line::from(clean(&line))).collect();
    let [area] = Layout::horizontal([Constraint::Max(WIDTH)]).flex(Flex::Center).areas(area);
    let [area] = Layout::vertical([Constraint::Max(height)]).flex(Flex::Center).areas(area);
    frame.render_widget(Clear, area);
    let block = Block::bordered().title(title).title_bottom(below);
    frame.render_widget(Paragraph::new(lines).block(block).wrap(Wrap { trim: false }), area);
}

/// Rows that lines take, broken at their blanks.
fn tall(lines: &[String], width: usize) -> usize {
    lines.iter().map(|line| lines_of(line, width.max(1))).sum()
}

fn keys(context: Context) -> Vec<String> {
    TABLE.iter().filter(|entry| entry.context == context).map(told).collect()
}

fn told(entry: &Entry) -> String {
    format!("{:<17} {}", labels(entry), entry.title)
}

fn labels(entry: &Entry) -> String {
    entry.keys.iter().map(|key| key.label()).collect::<Vec<_>>().join(" ")
}

/// What was typed, and the commands that it may mean with their keys: whoever uses it learns them.
fn palette(model: &Model, (width, height): (usize, usize)) -> Vec<String> {
    let offers = command::offers(&model.ui.input);
    // The mark of the chosen one, and a blank between title and keys.
    let room = width.saturating_sub(3);
    let line = |entry: &&Entry| {
        let keys = labels(entry);
        format!("{} {keys}", fit(entry.title, room.saturating_sub(keys.chars().count()).min(38)))
    };
    choice(model, ':', offers.iter().map(line).collect(), (width, height))
}

/// Clusters that can be looked at instead.
fn contexts(model: &Model, room: (usize, usize)) -> Vec<String> {
    let lines = match &model.ui.contexts {
        None | Some(Contexts::Unread) => return vec!["reading the kubeconfig …".to_owned()],
        Some(Contexts::Unreadable(why)) => return vec![why.clone()],
        Some(contexts) => contexts.offers(&model.ui.input).into_iter().map(|name| {
            let now = if name == model.ui.place { "  (shown now)" } else { "" };
            format!("{name}{now}")
        }),
    };
    choice(model, '@', lines.collect(), room)
}

/// What was typed, what it may mean, and which of that is chosen; how many there are where not all can be seen.
fn choice(model: &Model, prompt: char, offers: Vec<String>, (width, height): (usize, usize)) -> Vec<String> {
    let ui = &model.ui;
    let choice = ui.choice.min(offers.len().saturating_sub(1));
    let window = height.saturating_sub(1).max(1);
    let top = (choice + 1).saturating_sub(window);
    let note = match &ui.input_error {
        Some(error) => format!("  {error}"),
        None if offers.len() > window => format!("  ({} of {})", choice + 1, offers.len()),
        None => String::new(),
    };
    let line = |(index, offer): (usize, String)| fit_to(&format!("{} {offer}", if index == choice { '>' } else { ' ' }), width);
    let seen = offers.into_iter().enumerate().skip(top).take(window).map(line);
    std::iter::once(fit_to(&format!("{prompt}{}_{note}", ui.input), width)).chain(seen).collect()
}

/// What goes, and the name that agrees to it.
fn name(model: &Model, (width, height): (usize, usize)) -> Vec<String> {
    let Some(plan) = &model.run.plan else { return Vec::new() };
    let error = model.ui.input_error.as_ref().map(|error| format!("  {error}")).unwrap_or_default();
    let ask = vec![format!("type {} to agree:", plan.platform), format!("> {}_{error}", model.ui.input)];
    let goes = plan.changes().filter(|change| change.action == Action::Delete && change.subject.parent.is_none());
    let goes: Vec<String> = goes.map(|change| fit_to(&format!("delete {}", change.subject.key.named()), width)).collect();
    [shortened(goes, (width, height.saturating_sub(tall(&ask, width)))), ask].concat()
}

/// The question repeats platform, context, cluster, planes and counts, so that it can be answered without looking elsewhere. Where there is
/// no room for all of that, the answers and what is to be done come first.
fn question(model: &Model, room: (usize, usize)) -> Vec<String> {
    let Some(plan) = &model.run.plan else { return Vec::new() };
    let whole = [facts(model, plan), vec![String::new()], keys(Context::Question)].concat();
    if tall(&whole, room.0) <= room.1 {
        return whole;
    }
    let answers: Vec<String> =
        TABLE.iter().filter(|entry| entry.context == Context::Question && entry.footer).map(told).collect();
    let answers: Vec<String> = answers.iter().map(|line| fit_to(line, room.0)).collect();
    let mut facts = facts(model, plan);
    // What is not checked, and what is done, before where it comes from.
    facts.sort_by_key(|line| !line.starts_with(UNCHECKED) && !line.starts_with(Action::Create.verb()));
    [shortened(facts, (room.0, room.1.saturating_sub(answers.len()))), answers].concat()
}

/// What comes before a check that was switched off.
const UNCHECKED: &str = "NOT CHECKED";

fn facts(model: &Model, plan: &Plan) -> Vec<String> {
    let counts: Vec<String> = [Action::Create, Action::Configure, Action::Delete, Action::Unchanged]
        .into_iter()
        .map(|action| format!("{} {}", action.verb(), plan.count(action)))
        .chain([format!("defer {}", plan.deferred.len())])
        .collect();
    let cluster = plan.cluster.as_ref().map_or_else(|| "unknown".to_owned(), ToString::to_string);
    let context = Some(&model.ui.place).filter(|place| !place.is_empty()).map(|place| format!("context   {place}"));
    let mut planes: Vec<&str> = plan.changes().map(|change| change.subject.plane()).collect();
    planes.sort_unstable();
    planes.dedup();
    let planes = Some(planes).filter(|planes| planes.len() > 1).map(|planes| format!("planes    {}", planes.join(", ")));
    let named = [format!("platform  {}", plan.platform), format!("source    {}", plan.source)];
    let facts = named.into_iter().chain(context).chain([format!("cluster   {cluster}")]).chain(planes).chain([counts.join("  ")]);
    let unverified = plan.unverified.iter().map(|check| format!("{UNCHECKED}: {check}"));
    facts.chain(unverified).collect()
}

/// As many lines as there is room for, and a sign where some are left out.
fn shortened(lines: Vec<String>, (width, height): (usize, usize)) -> Vec<String> {
    if tall(&lines, width) <= height {
        return lines;
    }
    let mut kept: Vec<String> = Vec::new();
    let count = lines.len();
    for line in lines {
        kept.push(line);
        if tall(&kept, width) >= height {
            kept.pop();
            break;
        }
    }
    kept.push(format!("… {} more; esc and look", count - kept.len()));
    kept
}

pub(super) fn draw_footer(model: &Model, frame: &mut Frame<'_>, area: Rect) {
    let width = usize::from(area.width);
    let (text, role) = match (&model.ui.notice, model.ui.overlay) {
        (Some(notice), _) => (format!(" {notice}"), Role::Heading),
        (None, Some(Overlay::Filter)) => {
            let error = model.ui.input_error.as_ref().map(|error| format!("  {error}"));
            let help = error.unwrap_or_else(|| "  kind: plane: ns: state: reason:  ! not".to_owned());
            (format!(" /{}_{help}", model.ui.input), Role::Heading)
        }
        (None, _) => (commands(model, width), Role::Dim),
    };
    frame.render_widget(Paragraph::new(Span::styled(fit_to(&text, width), model.ui.theme.style(role))), area);
}

/// Commands that can be given now, whole ones. The way to all others, and the way out, are never left out.
fn commands(model: &Model, width: usize) -> String {
    let context = command::context(model);
    let shown = TABLE.iter().filter(|entry| entry.footer && entry.context == context);
    // A question that was put aside must not be forgotten.
    let asks = |entry: &Entry| entry.command == Command::Open && model.phase() == Phase::Review;
    let does = |entry: &Entry| if asks(entry) { "answer the question" } else { entry.title };
    let text = |entry: &Entry| format!(" {} {} ", entry.keys[0].label(), does(entry));
    let is_kept = |entry: &Entry| asks(entry) || matches!(entry.command, Command::Help | Command::Quit);
    let mut entries: Vec<(bool, bool, String)> = shown.map(|entry| (!asks(entry), is_kept(entry), text(entry))).collect();
    entries.sort_by_key(|(later, ..)| *later);
    if context != Context::View {
        // Few, and none is more than another: what does not fit is seen to be cut.
        return entries.into_iter().map(|(.., text)| text).collect();
    }
    let long = |text: &String| text.chars().count();
    let kept: usize = entries.iter().filter(|(_, kept, _)| *kept).map(|(.., text)| long(text)).sum();
    let mut room = width.saturating_sub(kept);
    let mut line = String::new();
    let mut is_full = false;
    for (_, kept, text) in entries {
        let fits = kept || !is_full && long(&text) <= room;
        if fits {
            line.push_str(&text);
        }
        if !kept {
            // In order: what comes after a gap would not be found by habit.
            is_full |= !fits;
            room = room.saturating_sub(if fits { long(&text) } else { 0 });
        }
    }
    line
}
