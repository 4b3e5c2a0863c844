//! The one place where the model changes.

use crate::{
    command::{self, Command},
    effect::Effect,
    message::{Key, Message},
    model::{Model, Overlay, Phase, View},
};

/// Applies one message. Synchronous, no I/O; what is to happen outside comes back as effects.
pub fn update(model: &mut Model, message: Message) -> Vec<Effect> {
    match message {
        Message::Run(event) => {
            let before = model.phase();
            model.run.fold(&event);
            enter_phase(model, before);
            model.rebuild();
            Vec::new()
        }
        Message::Key(key) => press(model, key),
        Message::Resize { width, height } => {
            model.ui.size = (width, height);
            model.scroll();
            Vec::new()
        }
        Message::Tick(now) => {
            model.ui.now = now;
            Vec::new()
        }
    }
}

/// The view follows the run: the question comes up with the plan, the tree with the first write.
fn enter_phase(model: &mut Model, before: Phase) {
    let now = model.phase();
    if before == now {
        return;
    }
    match now {
        Phase::Review => {
            model.ui.view = View::Plan;
            model.ui.overlay = Some(Overlay::Question);
        }
        Phase::Running => {
            model.ui.view = View::Tree;
            model.ui.overlay = None;
        }
        Phase::Finished if model.ui.overlay != Some(Overlay::Help) => model.ui.overlay = None,
        Phase::Preparing | Phase::Finished => {}
    }
}

fn press(model: &mut Model, key: Key) -> Vec<Effect> {
    let Some(command) = command::find(model, key) else { return Vec::new() };
    match command {
        Command::Approve if model.ui.overlay == Some(Overlay::Question) => {
            model.ui.overlay = None;
            return vec![Effect::Approve];
        }
        Command::Approve => model.ui.overlay = Some(Overlay::Question),
        Command::Decline => return vec![Effect::Decline, Effect::Quit],
        Command::Interrupt => return vec![Effect::Interrupt, Effect::Quit],
        Command::Quit => return quit(model),
        Command::Back => model.ui.overlay = None,
        Command::Help => model.ui.overlay = Some(Overlay::Help),
        Command::View(key) => show(model, View::ALL.iter().position(|(_, number, _)| *number == key)),
        Command::NextView => step_view(model, 1),
        Command::PreviousView => step_view(model, View::ALL.len() - 1),
        Command::Why => model.ui.why = !model.ui.why,
        Command::Unhealthy => model.ui.unhealthy_only = !model.ui.unhealthy_only,
        Command::Collapse => fold(model, true),
        Command::Expand => fold(model, false),
        movement => move_cursor(model, movement),
    }
    model.rebuild();
    Vec::new()
}

fn quit(model: &mut Model) -> Vec<Effect> {
    match model.phase() {
        Phase::Finished => vec![Effect::Quit],
        Phase::Review => vec![Effect::Decline, Effect::Quit],
        Phase::Preparing => vec![Effect::Interrupt, Effect::Quit],
        Phase::Running => {
            model.ui.overlay = Some(Overlay::Quit);
            Vec::new()
        }
    }
}

fn show(model: &mut Model, index: Option<usize>) {
    let Some((view, ..)) = index.and_then(|index| View::ALL.get(index)) else { return };
    model.ui.view = *view;
    model.ui.cursor = 0;
    model.ui.top = 0;
}

fn step_view(model: &mut Model, by: usize) {
    let now = View::ALL.iter().position(|(view, ..)| *view == model.ui.view).unwrap_or_default();
    show(model, Some((now + by) % View::ALL.len()));
}

fn fold(model: &mut Model, away: bool) {
    let Some(row) = model.selected() else { return };
    let (Some(key), Some(_)) = (row.key.clone(), row.folded) else { return };
    if away {
        model.ui.collapsed.insert(key);
    } else {
        model.ui.collapsed.remove(&key);
    }
}

fn move_cursor(model: &mut Model, movement: Command) {
    let page = usize::from(crate::view::body_height(model)).max(1);
    let last = model.rows.len().saturating_sub(1);
    let cursor = model.ui.cursor;
    model.ui.cursor = match movement {
        Command::Up => cursor.saturating_sub(1),
        Command::Down => cursor + 1,
        Command::PageUp => cursor.saturating_sub(page),
        Command::PageDown => cursor + page,
        Command::First => 0,
        Command::Last => last,
        _ => cursor,
    }
    .min(last);
}
