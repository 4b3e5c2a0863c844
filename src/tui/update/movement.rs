//! Moving: the cursor, the views, what is folded.

use crate::{
    command::{Command, TABLE},
    model::{Model, View},
    view,
};

/// What a command that only moves means now.
pub(super) fn act(model: &mut Model, command: Command) {
    model.ui.chosen = true;
    match command {
        Command::View(key) => show(model, View::ALL.iter().find(|(_, number, _)| *number == key).map(|(view, ..)| *view)),
        Command::NextView => {
            let now = View::ALL.iter().position(|(view, ..)| *view == model.ui.view).unwrap_or_default();
            show(model, Some(View::ALL[(now + 1) % View::ALL.len()].0));
        }
        Command::LastView => show(model, model.ui.trail.last()),
        Command::HistoryBack => {
            let view = model.ui.trail.back(model.ui.view);
            place(model, view);
        }
        Command::HistoryForward => {
            let view = model.ui.trail.forward(model.ui.view);
            place(model, view);
        }
        Command::NextPane | Command::PreviousPane => other_pane(model),
        Command::Collapse | Command::Expand => {
            fold(model, command == Command::Collapse);
            model.rebuild();
        }
        Command::NextMatch | Command::PreviousMatch => next_match(model, command == Command::NextMatch),
        _ if model.ui.in_detail => scroll_detail(model, command),
        _ => {
            let page = usize::from(view::body_height(model)).max(1);
            model.ui.cursor = moved(model.ui.cursor, command, page, model.rows.len().saturating_sub(1));
            model.scroll();
        }
    }
}

/// Keys in the help scroll it or close it.
pub(super) fn in_help(model: &mut Model, command: Command) {
    match command {
        Command::Back => model.ui.overlay = None,
        command => model.ui.choice = moved(model.ui.choice, command, 10, TABLE.len()),
    }
}

fn moved(from: usize, command: Command, page: usize, last: usize) -> usize {
    match command {
        Command::Up => from.saturating_sub(1),
        Command::Down => from + 1,
        Command::PageUp => from.saturating_sub(page),
        Command::PageDown => from + page,
        Command::First => 0,
        Command::Last => last,
        _ => from,
    }
    .min(last)
}

fn scroll_detail(model: &mut Model, command: Command) {
    let height = usize::from(view::detail_height(model)).max(1);
    if let Some(detail) = &mut model.ui.detail {
        detail.top = moved(detail.top, command, height, detail.lines.len().saturating_sub(height));
    }
}

fn other_pane(model: &mut Model) {
    if model.ui.detail.is_some() {
        model.ui.in_detail = !model.ui.in_detail;
        model.scroll();
        model.refresh_detail();
    } else {
        model.ui.notice = Some("there is one pane; enter opens the selected object beside it".to_owned());
    }
}

fn show(model: &mut Model, view: Option<View>) {
    let Some(view) = view.filter(|view| *view != model.ui.view) else { return };
    model.ui.trail.leave(model.ui.view);
    place(model, Some(view));
}

fn place(model: &mut Model, view: Option<View>) {
    let Some(view) = view else { return };
    model.ui.view = view;
    (model.ui.cursor, model.ui.chosen) = (0, false);
    model.ui.top = 0;
    model.ui.detail = None;
    model.ui.in_detail = false;
    model.rows.clear();
    model.rebuild();
}

fn next_match(model: &mut Model, forward: bool) {
    let (rows, cursor) = (&model.rows, model.ui.cursor);
    let is_hit = |index: &usize| rows.get(*index).is_some_and(|row| row.hit);
    let found = if forward {
        (cursor + 1..rows.len()).chain(0..=cursor).find(is_hit)
    } else {
        (0..cursor).rev().chain((cursor..rows.len()).rev()).find(is_hit)
    };
    match found {
        Some(found) => model.ui.cursor = found,
        None => model.ui.notice = Some("nothing matches".to_owned()),
    }
    model.scroll();
}

/// Folds the selected row away or back; on a row that cannot be folded, goes to the one above it.
pub(super) fn fold(model: &mut Model, away: bool) {
    let Some(row) = model.selected().cloned() else { return };
    let folds = &mut model.ui.folds;
    match (row.folded, row.key, row.group) {
        (Some(_), _, Some(group)) if away => {
            folds.opened.remove(&group);
        }
        (Some(_), _, Some(group)) => {
            folds.opened.insert(group);
        }
        (Some(false), Some(key), None) if away => {
            folds.collapsed.insert(key);
        }
        (Some(true), Some(key), None) if !away => {
            folds.collapsed.remove(&key);
        }
        _ if away => {
            let above = model.rows[..model.ui.cursor].iter().rposition(|other| other.depth < row.depth);
            model.ui.cursor = above.unwrap_or(model.ui.cursor);
        }
        _ => {}
    }
}
