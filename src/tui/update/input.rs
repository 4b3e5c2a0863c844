//! Typing: the filter and the palette.

use plinth_run::{Filter, filter::MAX_FILTER};

use crate::{
    command::{self, Command},
    effect::Effect,
    message::Key,
    model::{Model, Overlay},
};

/// Opens the help, the palette or the filter.
pub(super) fn begin(model: &mut Model, command: Command) {
    let (overlay, input) = match command {
        Command::Filter => (Overlay::Filter, model.ui.filter_text.clone()),
        Command::Palette => (Overlay::Palette, String::new()),
        _ => (Overlay::Help, String::new()),
    };
    model.ui.overlay = Some(overlay);
    model.ui.input = input;
    model.ui.input_error = None;
    model.ui.choice = 0;
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
            let last = command::offers(&model.ui.input).len().saturating_sub(1);
            model.ui.choice = (model.ui.choice + 1).min(last);
        }
        Command::Back => {
            // A filter that was only tried is taken back.
            if model.ui.overlay == Some(Overlay::Filter) {
                let accepted = accepted(model);
                show(model, accepted);
            }
            model.ui.overlay = None;
        }
        Command::Accept if model.ui.overlay == Some(Overlay::Filter) => accept_filter(model),
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

fn accept_command(model: &mut Model) -> Vec<Effect> {
    let offers = command::offers(&model.ui.input);
    let Some(entry) = offers.get(model.ui.choice).or(offers.first()) else {
        model.ui.input_error = Some("no command has this name".to_owned());
        return Vec::new();
    };
    model.ui.overlay = None;
    super::act(model, entry.command)
}
