//! The rows of the current view. Only the visible ones are made into text.

use plinth_run::{Verb, duration, state::Retrying};
use ratatui::{
    Frame,
    layout::Rect,
    text::{Line, Span},
    widgets::{Paragraph, Wrap},
};

use super::text::{fit, fit_middle};
use crate::{
    model::{Model, Phase, View},
    rows::Row,
    theme::Role,
    why::clean,
};

/// Most columns of the state's word, and of the plane where there are several.
const WORD: usize = 12;
/// Columns of the age.
const AGE: usize = 8;

pub(super) fn draw(model: &Model, frame: &mut Frame<'_>, area: Rect) {
    if area.height == 0 {
        return;
    }
    if model.rows.is_empty() {
        let style = model.ui.theme.style(Role::Dim);
        let lines: Vec<Line<'_>> = empty(model).into_iter().map(|line| Line::from(Span::styled(line, style))).collect();
        frame.render_widget(Paragraph::new(lines).wrap(Wrap { trim: false }), area);
        return;
    }
    let top = model.ui.top.min(model.rows.len());
    let visible = &model.rows[top..(top + usize::from(area.height)).min(model.rows.len())];
    let columns = Columns::of(model, area.width, visible);
    let line = |(index, row): (usize, &'_ Row)| line(model, &columns, row, top + index == model.ui.cursor);
    let lines: Vec<Line<'_>> = visible.iter().enumerate().map(line).collect();
    frame.render_widget(Paragraph::new(lines), area);
}

/// What there is to say without rows: while a run prepares, also what it tries again.
fn empty(model: &Model) -> Vec<String> {
    if let Some(lost) = &model.ui.lost {
        let hint = lost.hint.as_ref().map(|hint| format!(" hint: {hint}"));
        return std::iter::once(format!(" {}", lost.told(model.ui.now))).chain(hint).map(|line| clean(&line)).collect();
    }
    if let Some(why) = &model.ui.nothing {
        return vec![clean(&format!(" {why}"))];
    }
    let first = match model.phase() {
        _ if !model.ui.filter.is_empty() || model.ui.unhealthy_only || model.ui.plane.is_some() => {
            " nothing is left: esc shows everything again"
        }
        Phase::Running if model.run.verb == Some(Verb::Controller) && model.run.subjects.is_empty() => " reading the cluster …",
        Phase::Preparing => " resolving the channel and planning …",
        Phase::Review | Phase::Running | Phase::Finished => nothing(model),
    };
    let retry = |(what, retry): (&String, &Retrying)| {
        let next = duration::short(retry.next.duration_since(model.ui.now));
        let tried = format!(" {what}: attempt {} failed, next in {next}", retry.attempt);
        [clean(&tried), clean(&format!("   {}", retry.message))]
    };
    std::iter::once(first.to_owned()).chain(model.run.retries.iter().flat_map(retry)).collect()
}

/// Why a view has no rows, and where what it would show is to be found.
fn nothing(model: &Model) -> &'static str {
    let looks = model.run.verb == Some(Verb::Controller);
    match model.ui.view {
        View::Plan if looks => " a platform that is only looked at has no plan: plinth diff compares it with its release",
        View::Plan => " this run has made no plan yet",
        View::Tree => " no object is known yet",
        View::Timeline if looks => " a platform that is only looked at has no stages: plinth replay shows those of a run",
        View::Timeline => " no stage has begun yet",
        View::Events => " nothing has happened yet",
        View::Checks if looks => " a platform that is only looked at is not checked: plinth plan does",
        View::Checks => " no check has an answer yet",
    }
}

/// What comes before a row's title: the selection, how deep it lies, and whether it is folded.
fn before(row: &Row, selected: bool) -> String {
    let mark = if selected { '>' } else { ' ' };
    let fold = match row.folded {
        Some(true) => "+ ",
        Some(false) => "- ",
        None => "  ",
    };
    format!("{mark}{}{fold}", "  ".repeat(row.depth.min(16)))
}

/// The row's title in a column. Where an object's whole name does not fit, `Kind/name` is said, and of its workspace the last part:
/// groups, namespaces and paths are long and seldom tell objects apart, and the strip below has them.
fn title(row: &Row, selected: bool, width: usize) -> String {
    let whole = format!("{}{}", before(row, selected), row.title);
    let short = match (&row.key, &row.group) {
        _ if whole.chars().count() <= width => whole,
        (Some(key), _) => {
            let cluster = &key.cluster.0;
            let last = cluster.rsplit(':').next().unwrap_or(cluster);
            let short = whole.replace(&key.named(), &format!("{}/{}", key.gvk.kind, key.name));
            short.replace(&format!("@{cluster}"), &format!("@{last}"))
        }
        (None, Some(group)) => whole.replace(&group.kind, group.kind.split('.').next().unwrap_or_default()),
        (None, None) => whole,
    };
    fit_middle(&short, width)
}

/// How wide the columns are.
struct Columns {
    title: usize,
    plane: usize,
    word: usize,
    detail: usize,
    age: usize,
}

impl Columns {
    /// One column for all rows that are seen: eyes go down a column, not along a line. A name may take what the details leave, and
    /// the details what the names leave.
    fn of(model: &Model, width: u16, rows: &[Row]) -> Self {
        let width = usize::from(width);
        let narrow = width < 60;
        let has_age = !narrow && rows.iter().any(|row| row.since.is_some());
        let age = if has_age { AGE } else { 0 };
        let widest = |text: fn(&Row) -> &str| rows.iter().map(|row| text(row).chars().count()).max().unwrap_or_default();
        let word = (widest(|row| &row.word) + 1).min(WORD);
        let plane = match (model.planes.len() > 1, narrow) {
            (false, _) => 0,
            (true, true) => 2,
            (true, false) => (widest(Row::plane) + 1).min(WORD),
        };
        let room = width.saturating_sub(word + 1 + age + plane);
        let share = room * 2 / 5;
        let names = rows.iter().map(|row| before(row, false).len() + row.title.chars().count()).max().unwrap_or_default();
        let details = widest(|row| &row.detail);
        let title = names.clamp(share, room - details.min(share));
        Self { title, plane, word, detail: room.saturating_sub(title), age }
    }
}

fn line<'a>(model: &Model, columns: &Columns, row: &Row, selected: bool) -> Line<'a> {
    let theme = model.ui.theme;
    // One letter is a plane's shortest name; an ellipsis would be none.
    let plane = match columns.plane {
        0 => String::new(),
        2 => format!("{:<2}", row.plane().chars().take(1).collect::<String>()),
        width => format!("{} ", fit(row.plane(), width - 1)),
    };
    let age = row.since.filter(|_| columns.age > 0).map(|since| duration::short(model.ui.now.duration_since(since)));
    let style = theme.style(row.role);
    let spans = vec![
        Span::styled(
            title(row, selected, columns.title),
            if row.role == Role::Heading { style } else { theme.style(Role::Plain) },
        ),
        Span::raw(" "),
        Span::styled(plane, theme.style(Role::Dim)),
        Span::styled(fit(&row.word, columns.word), style),
        Span::styled(fit(&row.detail, columns.detail), theme.style(Role::Dim)),
        Span::raw(format!("{:>width$}", age.unwrap_or_default(), width = columns.age)),
    ];
    if selected && !model.ui.in_detail {
        // One bar: reversed, every colour would be a block of its own. The word says the state.
        let text: String = spans.iter().map(|span| span.content.as_ref()).collect();
        return Line::from(Span::styled(text, theme.style(Role::Selected)));
    }
    Line::from(spans)
}
