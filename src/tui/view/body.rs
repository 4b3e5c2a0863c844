//! The rows of the current view. Only the visible ones are made into text.

use plinth_run::duration;
use ratatui::{
    Frame,
    layout::Rect,
    text::{Line, Span},
    widgets::Paragraph,
};

use super::text::fit;
use crate::{
    model::{Model, Phase},
    rows::Row,
    theme::Role,
};

/// Columns of the state's word.
const WORD: usize = 12;
/// Columns of the age.
const AGE: usize = 8;
/// Columns of the plane, where there are several.
const PLANE: usize = 10;

pub(super) fn draw(model: &Model, frame: &mut Frame<'_>, area: Rect) {
    if area.height == 0 {
        return;
    }
    if model.rows.is_empty() {
        frame.render_widget(Paragraph::new(Span::styled(empty(model), model.ui.theme.style(Role::Dim))), area);
        return;
    }
    let columns = Columns::of(model, area.width);
    let visible = model.rows.iter().enumerate().skip(model.ui.top).take(usize::from(area.height));
    let lines: Vec<Line<'_>> = visible.map(|(index, row)| line(model, &columns, row, index == model.ui.cursor)).collect();
    frame.render_widget(Paragraph::new(lines), area);
}

fn empty(model: &Model) -> &'static str {
    match model.phase() {
        _ if !model.ui.filter.is_empty() || model.ui.unhealthy_only || model.ui.plane.is_some() => {
            " nothing is left: esc shows everything again"
        }
        Phase::Preparing => " resolving the channel and planning …",
        Phase::Review | Phase::Running | Phase::Finished => " nothing here",
    }
}

/// How wide the columns are.
struct Columns {
    title: usize,
    plane: usize,
    detail: usize,
    age: usize,
}

impl Columns {
    fn of(model: &Model, width: u16) -> Self {
        let width = usize::from(width);
        let narrow = width < 60;
        let has_age = !narrow && model.rows.iter().skip(model.ui.top).any(|row| row.since.is_some());
        let age = if has_age { AGE } else { 0 };
        let plane = match (model.planes.len() > 1, narrow) {
            (false, _) => 0,
            (true, true) => 2,
            (true, false) => PLANE,
        };
        let room = width.saturating_sub(WORD + 1 + age + plane);
        // One column for all rows: eyes go down a column, not along a line.
        let title = room * 3 / 5;
        Self { title, plane, detail: room.saturating_sub(title), age }
    }
}

fn line<'a>(model: &Model, columns: &Columns, row: &Row, selected: bool) -> Line<'a> {
    let mark = if selected { '>' } else { ' ' };
    let fold = match row.folded {
        Some(true) => "+ ",
        Some(false) => "- ",
        None => "  ",
    };
    let theme = model.ui.theme;
    let head = format!("{mark}{}{fold}{}", "  ".repeat(row.depth.min(16)), row.title);
    // One letter is a plane's shortest name; an ellipsis would be none.
    let plane = match columns.plane {
        0 => String::new(),
        2 => format!("{:<2}", row.plane().chars().take(1).collect::<String>()),
        width => format!("{} ", fit(row.plane(), width - 1)),
    };
    let age = row.since.filter(|_| columns.age > 0).map(|since| duration::short(model.ui.now.duration_since(since)));
    let style = theme.style(row.role);
    let spans = vec![
        Span::styled(fit(&head, columns.title), if row.role == Role::Heading { style } else { theme.style(Role::Plain) }),
        Span::raw(" "),
        Span::styled(plane, theme.style(Role::Dim)),
        Span::styled(fit(&row.word, WORD), style),
        Span::styled(fit(&row.detail, columns.detail), theme.style(Role::Dim)),
        Span::raw(format!("{:>width$}", age.unwrap_or_default(), width = columns.age)),
    ];
    let line = Line::from(spans);
    if selected && !model.ui.in_detail { line.patch_style(theme.style(Role::Selected)) } else { line }
}
