//! Opening an object.

use crate::{
    command::Command,
    detail::{Detail, Tab},
    effect::Effect,
    model::{Model, Overlay, Phase},
};

/// Opens the selected object, or unfolds what is no object; before the first write, enter asks the question again.
pub(super) fn open(model: &mut Model, command: Command) -> Vec<Effect> {
    if command == Command::Open && model.phase() == Phase::Review {
        model.ui.overlay = Some(Overlay::Question);
        return Vec::new();
    }
    model.ui.chosen = true;
    let Some(row) = model.selected() else { return Vec::new() };
    let Some(key) = row.key.clone() else {
        let folded = row.folded == Some(true);
        super::movement::fold(model, !folded);
        model.rebuild();
        return Vec::new();
    };
    let tab = match command {
        Command::Yaml => Tab::Yaml,
        Command::Diff => Tab::Diff,
        Command::ObjectEvents => Tab::Events,
        Command::Logs => Tab::Logs,
        _ => Tab::Describe,
    };
    match &mut model.ui.detail {
        // What was fetched for another tab of the same object is still good.
        Some(detail) if detail.key == key => {
            detail.tab = tab;
            detail.top = 0;
        }
        detail => *detail = Some(Detail::open(key, tab)),
    }
    model.ui.in_detail = true;
    model.refresh_detail();
    model.ui.detail.as_ref().map(|detail| Effect::Fetch(detail.ask())).into_iter().collect()
}
