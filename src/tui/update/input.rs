//! Typing: the filter, the palette and the choice of a cluster.

use plinth_run::{Filter, filter::MAX_FILTER};

use crate::{
    command::{self, Command},
    effect::Effect,
    message::Key,
    model::{Model, Overlay},
};

/// Opens the help, the palette, the filter or the choice of a cluster.
pub(super) fn begin(model: &mut Model, command: Command) {
    let (overlay, input) = match command {
        Command::Filter => (Overlay::Filter, model.ui.filter_text.clone()),
        Command::Palette => (Overlay::Palette, String::new()),
        Command::Contexts => (Overlay::Contexts, String::new()),
        _ => (Overlay::Help, String::new()),
    };
    model.ui.overlay = Some(overlay);
    model.ui.input = input;
    model.ui.input_error = None;
    model.ui.choice = 0;
}

/// Asks for the platform's name.
pub(super) fn ask_name(model: &mut Model) {
    let ui = &mut model.ui;
    (ui.overlay, ui.input_error, ui.choice) = (Some(Overlay::Name), None, 0);
    ui.input.clear();
}

/// A key that no command has: text, where text is asked for.
pub(super) fn typed(model: &mut Model, key: Key) {
    let (Key::Char(letter), command::Context::Input) = (key, command::context(model)) else { return };
    if model.ui.input.chars().count() < MAX_FILTER && !letter.is_control() {
        model.ui.input.push(letter);
        changed(model);
    }
}

/// What a command means while something is typed.
pub(super) fn act(model: &mut Model, command: Command) -> Vec<Effect> {
    match command {
        Command::Erase => {
            model.ui.input.pop();
            changed(model);
        }
        Command::EraseAll => {
            model.ui.input.clear();
            changed(model);
        }
        Command::Up => model.ui.choice = model.ui.choice.saturating_sub(1),
        Command::Down => {
            model.ui.choice = (model.ui.choice + 1).min(offers(model).saturating_sub(1));
        }
        Command::Back => {
            // A filter that was only tried is taken back.
            if model.ui.overlay == Some(Overlay::Filter) {
                let accepted = accepted(model);
                show(model, accepted);
            }
            let is_asked = model.ui.overlay == Some(Overlay::Name);
            model.ui.overlay = is_asked.then_some(Overlay::Question);
        }
        Command::Accept if model.ui.overlay == Some(Overlay::Name) => return accept_name(model),
        Command::Accept if model.ui.overlay == Some(Overlay::Filter) => accept_filter(model),
        Command::Accept if model.ui.overlay == Some(Overlay::Contexts) => return accept_context(model),
        Command::Accept => return accept_command(model),
        _ => {}
    }
    Vec::new()
}

/// A filter shows what it does while it is typed.
fn changed(model: &mut Model) {
    model.ui.choice = 0;
    if model.ui.overlay != Some(Overlay::Filter) {
        return;
    }
    let parsed = Filter::parse(&model.ui.input);
    model.ui.input_error = parsed.as_ref().err().map(ToString::to_string);
    let filter = parsed.unwrap_or_else(|_| accepted(model));
    show(model, filter);
}

/// Rows are made anew only for another filter: with many objects that is what takes long.
fn show(model: &mut Model, filter: Filter) {
    if model.ui.filter != filter {
        model.ui.filter = filter;
        model.rebuild();
    }
}

/// The filter that was taken last.
fn accepted(model: &Model) -> Filter {
    Filter::parse(&model.ui.filter_text).unwrap_or_default()
}

fn accept_filter(model: &mut Model) {
    match Filter::parse(&model.ui.input) {
        Ok(filter) => {
            model.ui.filter_text = std::mem::take(&mut model.ui.input);
            model.ui.overlay = None;
            show(model, filter);
        }
        Err(error) => model.ui.input_error = Some(error.to_string()),
    }
}

/// How many there are to choose from.
fn offers(model: &Model) -> usize {
    match (model.ui.overlay, &model.ui.contexts) {
        (Some(Overlay::Contexts), Some(contexts)) => contexts.offers(&model.ui.input).len(),
        (Some(Overlay::Name), _) => 0,
        _ => command::offers(&model.ui.input).len(),
    }
}

/// Agrees to a plan that takes something away.
fn accept_name(model: &mut Model) -> Vec<Effect> {
    let name = model.run.plan.as_ref().map(|plan| plan.platform.as_str());
    if name != Some(model.ui.input.trim()) {
        model.ui.input_error = Some("that is not its name; esc goes back".to_owned());
        return Vec::new();
    }
    model.ui.overlay = None;
    vec![Effect::Approve]
}

/// Another cluster is looked at only once it is connected to: until then the screen shows the one before.
fn accept_context(model: &mut Model) -> Vec<Effect> {
    let Some(contexts) = &model.ui.contexts else { return Vec::new() };
    let offers = contexts.offers(&model.ui.input);
    let Some(name) = offers.get(model.ui.choice).or(offers.first()).map(|name| (*name).to_owned()) else {
        model.ui.input_error = Some("no context has this name".to_owned());
        return Vec::new();
    };
    model.ui.overlay = None;
    if name == model.ui.place {
        model.ui.notice = Some(format!("{name} is the one that is shown"));
        return Vec::new();
    }
    model.ui.notice = Some(format!("connecting to {name}"));
    vec![Effect::Connect(name)]
}

fn accept_command(model: &mut Model) -> Vec<Effect> {
    let offers = command::offers(&model.ui.input);
    let Some(entry) = offers.get(model.ui.choice).or(offers.first()) else {
        model.ui.input_error = Some("no command has this name".to_owned());
        return Vec::new();
    };
    model.ui.overlay = None;
    super::act(model, entry.command)
}
