//! The why strip: the chain from the selected object to the root cause, and the next step.

use plinth_run::{RunState, SubjectState};
use ratatui::{
    Frame,
    layout::Rect,
    text::{Line, Span},
    widgets::{Paragraph, Wrap},
};

use super::text::{fit, lines_of, rule};
use crate::{
    model::{Model, View},
    planes::Planes,
    rows::Row,
    theme::Role,
    why::{self, clean},
};

pub(super) fn draw(model: &Model, frame: &mut Frame<'_>, area: Rect) {
    if area.height == 0 {
        return;
    }
    let title = model.selected().map_or_else(|| "── why ".to_owned(), |row| format!("── why: {} ", clean(&called(model, row))));
    let title = if title.chars().count() > usize::from(area.width) { fit(&title, usize::from(area.width)) } else { title };
    let mut lines = vec![Line::from(Span::styled(rule(&title, area.width), model.ui.theme.style(Role::Dim)))];
    let (width, height) = (usize::from(area.width).max(1), usize::from(area.height - 1));
    lines.extend(fitted(model, width, height).into_iter().map(Line::from));
    frame.render_widget(Paragraph::new(lines).wrap(Wrap { trim: false }), area);
}

/// A row's name where nothing above it says its workspace.
fn called(model: &Model, row: &Row) -> String {
    let known = row.key.as_ref().and_then(|key| model.run.subjects.get(key));
    known.filter(|_| model.ui.view == View::Tree).map_or_else(|| row.title.clone(), |known| model.planes.title(&known.subject))
}

/// The explanation in the room there is. Where the whole chain does not fit, its steps between go first: the root cause and the next
/// step are what the person needs.
fn fitted(model: &Model, width: usize, height: usize) -> Vec<String> {
    let tall = |lines: &[String]| lines.iter().map(|line| lines_of(line, width)).sum::<usize>();
    let whole = chain(model, why::chain);
    if tall(&whole) <= height {
        return whole;
    }
    let brief = chain(model, why::brief);
    let spare = height.saturating_sub(brief.len());
    match brief.as_slice() {
        _ if tall(&brief) <= height => brief,
        [own, root, next] => vec![fit(own, width), fit(root, width * (1 + spare)), fit(next, width)],
        _ => brief,
    }
}

type Explain = fn(&SubjectState, &RunState, &Planes) -> Vec<String>;

/// One line a cause, nearest first; the end of the run where there is one and nothing is selected.
fn chain(model: &Model, explain: Explain) -> Vec<String> {
    let Some(row) = model.selected() else { return finished(model) };
    let known = row.key.as_ref().and_then(|key| model.run.subjects.get(key));
    match known.map(|known| explain(known, &model.run, &model.planes)).filter(|lines| !lines.is_empty()) {
        Some(lines) => lines,
        None if row.detail.is_empty() => vec![clean(&format!("{} is {}", row.title, row.word))],
        None => vec![clean(&row.detail)],
    }
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
