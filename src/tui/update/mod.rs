//! The one place where the model changes.

mod input;
mod movement;
mod open;

use plinth_run::Plan;

use crate::{
    command::{self, Command},
    effect::Effect,
    message::{Answer, Fetched, Key, Message},
    model::{Contexts, Mode, Model, Overlay, Phase, View},
};

/// Applies one message. Synchronous, no I/O; what is to happen outside comes back as effects.
pub fn update(model: &mut Model, message: Message) -> Vec<Effect> {
    match message {
        Message::Run(event) => {
            let before = model.phase();
            model.run.fold(&event);
            model.log.take(&event);
            enter_phase(model, before);
            // Rows are made when somebody looks: a thousand events between two frames cost one list.
            model.stale = true;
        }
        Message::History(history) => {
            model.history = *history;
            model.stale = true;
        }
        Message::Fetched(fetched) => take(model, *fetched),
        Message::Contexts(found) => {
            let known = found.map_or_else(Contexts::Unreadable, Contexts::Known);
            model.ui.contexts = model.ui.contexts.take().map(|_| known);
        }
        Message::Connected(place) => model.connected(place),
        Message::Link(lost) => {
            model.ui.lost = lost;
            settle_places(model);
        }
        Message::Close => return vec![Effect::Quit],
        Message::Nothing(why) => model.ui.nothing = why,
        Message::Watches(count) => model.ui.watches = Some(count),
        Message::Notice(text) => model.ui.notice = Some(text),
        Message::Key(key) => return press(model, key),
        Message::Resize { width, height } => {
            model.ui.size = (width, height);
            model.scroll();
            model.refresh_detail();
        }
        Message::Tick(now) => {
            model.ui.now = now;
            settle(model);
        }
    }
    Vec::new()
}

/// Brings rows up to date, unless the person asked for a still picture. What counts seconds is made anew every time.
fn settle(model: &mut Model) {
    let counts_seconds = model.ui.view == View::Timeline;
    if (model.stale || counts_seconds) && !model.ui.frozen {
        model.rebuild();
    } else if model.ui.detail.is_some() {
        model.refresh_detail();
    }
}

fn take(model: &mut Model, fetched: Fetched) {
    if let Ok(Answer::Events(events)) = &fetched.answer {
        events.iter().for_each(|event| model.log.take_cluster(event));
        model.stale = true;
    }
    if let Some(detail) = &mut model.ui.detail {
        detail.take(fetched);
        model.refresh_detail();
    }
}

/// The view follows the run: the question comes up with the plan, the tree with the first write.
fn enter_phase(model: &mut Model, before: Phase) {
    let now = model.phase();
    if before == now || model.ui.mode == Mode::Watch {
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
    model.ui.notice = None;
    if model.stale && !model.ui.frozen {
        model.rebuild();
    }
    if let Some(command) = command::find(model, key) {
        return act(model, command);
    }
    input::typed(model, key);
    Vec::new()
}

/// Does what a command means now.
fn act(model: &mut Model, command: Command) -> Vec<Effect> {
    if command == Command::Suspend {
        return vec![Effect::Suspend];
    }
    let context = command::context(model);
    if context == command::Context::Input {
        return input::act(model, command);
    }
    if context == command::Context::Help {
        movement::in_help(model, command);
        return Vec::new();
    }
    if let Some(why) = command::disabled(model, command) {
        model.ui.notice = Some(why.to_owned());
        return Vec::new();
    }
    match command {
        Command::Approve if model.run.plan.as_ref().is_some_and(Plan::takes_away) => {
            input::ask_name(model);
            return Vec::new();
        }
        Command::Approve => {
            model.ui.overlay = None;
            return vec![Effect::Approve];
        }
        Command::Decline => return vec![Effect::Decline, Effect::Quit],
        Command::Interrupt => return interrupt(model),
        Command::Quit => return quit(model),
        Command::Refresh => {
            model.ui.notice = Some("reading everything anew".to_owned());
            return vec![Effect::Refresh];
        }
        Command::Copy => return copy(model),
        Command::Open | Command::Yaml | Command::Describe | Command::Diff | Command::ObjectEvents | Command::Logs => {
            return open::open(model, command);
        }
        Command::Back if !back(model) => return settle_places(model),
        Command::Back => {}
        Command::Contexts => {
            model.ui.contexts = Some(Contexts::Unread);
            input::begin(model, command);
            return vec![Effect::Contexts];
        }
        Command::Help | Command::Palette | Command::Filter => {
            input::begin(model, command);
            return Vec::new();
        }
        Command::Why => {
            model.ui.why = !model.ui.why;
            return settle_places(model);
        }
        Command::Unhealthy => model.ui.unhealthy_only = !model.ui.unhealthy_only,
        Command::Plane => next_plane(model),
        Command::Follow => model.ui.frozen = !model.ui.frozen,
        movement => {
            movement::act(model, movement);
            return Vec::new();
        }
    }
    model.rebuild();
    Vec::new()
}

/// There is another amount of room for the same rows.
fn settle_places(model: &mut Model) -> Vec<Effect> {
    model.scroll();
    model.refresh_detail();
    Vec::new()
}

/// Closes what lies on top, and says whether other rows are to be shown now. It never leaves the terminal.
fn back(model: &mut Model) -> bool {
    let ui = &mut model.ui;
    if ui.overlay.take().is_some() {
        return false;
    }
    if ui.detail.take().is_some() {
        ui.in_detail = false;
        return false;
    }
    if !ui.filter.is_empty() {
        ui.filter = plinth_run::Filter::default();
        ui.filter_text.clear();
        return true;
    }
    let narrowed = ui.unhealthy_only || ui.plane.is_some();
    ui.plane = None;
    ui.unhealthy_only = false;
    narrowed
}

/// Leaving the question is an answer to it.
fn quit(model: &mut Model) -> Vec<Effect> {
    if model.ui.mode == Mode::Own && model.phase() == Phase::Review {
        return vec![Effect::Decline, Effect::Quit];
    }
    interrupt(model)
}

/// What a signal would do: no answer. Only a run that writes is asked about first, once.
fn interrupt(model: &mut Model) -> Vec<Effect> {
    let is_asked = model.ui.overlay == Some(Overlay::Quit);
    match model.phase() {
        _ if model.ui.mode == Mode::Watch => vec![Effect::Quit],
        Phase::Finished => vec![Effect::Quit],
        Phase::Running if !is_asked => {
            model.ui.overlay = Some(Overlay::Quit);
            Vec::new()
        }
        Phase::Review | Phase::Preparing | Phase::Running => vec![Effect::Interrupt, Effect::Quit],
    }
}

fn copy(model: &mut Model) -> Vec<Effect> {
    let Some(key) = model.selected().and_then(|row| row.key.clone()) else { return Vec::new() };
    model.ui.notice = Some(format!("copied {key}"));
    vec![Effect::Copy(key.to_string())]
}

/// All planes, then each one.
fn next_plane(model: &mut Model) {
    model.ui.plane = model.planes.after(model.ui.plane.as_deref());
}
