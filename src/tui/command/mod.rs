//! The command table: the one list that makes keys, footer, help, palette and the page of keys, and that the clash check reads.

mod page;
mod table;

use crate::{
    message::Key,
    model::{Model, Overlay, Phase},
};

pub use page::page;
pub use table::TABLE;

/// Everything a person can do.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Command {
    /// Agree to the plan.
    Approve,
    /// Turn the plan down.
    Decline,
    /// Leave, after a question where the run goes on.
    Quit,
    /// Interrupt the run and leave.
    Interrupt,
    /// Close what lies over the view, else the detail, else the filter.
    Back,
    /// Show all keys.
    Help,
    /// Choose a command by its name.
    Palette,
    /// Say what is to be shown.
    Filter,
    /// The next row that the filter asked for.
    NextMatch,
    /// The one before.
    PreviousMatch,
    /// Take what was typed.
    Accept,
    /// Take back the last character.
    Erase,
    /// Take back all that was typed.
    EraseAll,
    /// One row up.
    Up,
    /// One row down.
    Down,
    /// One page up.
    PageUp,
    /// One page down.
    PageDown,
    /// To the first row.
    First,
    /// To the last row.
    Last,
    /// Fold a subtree away.
    Collapse,
    /// Unfold a subtree.
    Expand,
    /// Open the selected row; before the first write, the question.
    Open,
    /// The view with this number key.
    View(char),
    /// The other pane.
    NextPane,
    /// The same, the other way round.
    PreviousPane,
    /// The next view.
    NextView,
    /// The view that was shown before.
    LastView,
    /// One step back in what was looked at.
    HistoryBack,
    /// One step forward.
    HistoryForward,
    /// Open or close the explanation.
    Why,
    /// The selected object as YAML.
    Yaml,
    /// The selected object described.
    Describe,
    /// How the selected object differs from what is wanted.
    Diff,
    /// The log of the selected object's worst pod.
    Logs,
    /// Events about the selected object.
    ObjectEvents,
    /// Leave ready rows out.
    Unhealthy,
    /// The next plane.
    Plane,
    /// Another cluster, by its context.
    Contexts,
    /// Follow the run, or stand still.
    Follow,
    /// The selected object's name to the clipboard.
    Copy,
    /// Read everything anew.
    Refresh,
    /// Give the terminal back to the shell until the process is told to go on.
    Suspend,
}

/// When a command can be used.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Context {
    /// Nothing lies over the view.
    View,
    /// The one question is asked.
    Question,
    /// Quit while the run goes on?
    Quit,
    /// The help is open.
    Help,
    /// Something is being typed.
    Input,
    /// Everywhere.
    Always,
}

/// A row of the table.
#[derive(Clone, Copy, Debug)]
pub struct Entry {
    /// The command.
    pub command: Command,
    /// Its keys; the first is the one the footer shows.
    pub keys: &'static [Key],
    /// Where its keys count.
    pub context: Context,
    /// What it does, a few words.
    pub title: &'static str,
    /// Whether the footer shows it.
    pub footer: bool,
}

/// The context that keys are read in.
pub fn context(model: &Model) -> Context {
    match model.ui.overlay {
        Some(Overlay::Question) => Context::Question,
        Some(Overlay::Quit) => Context::Quit,
        Some(Overlay::Help) => Context::Help,
        Some(Overlay::Palette | Overlay::Filter | Overlay::Contexts | Overlay::Name) => Context::Input,
        None => Context::View,
    }
}

/// The command that a key means now.
pub fn find(model: &Model, key: Key) -> Option<Command> {
    let context = context(model);
    let here = |entry: &&Entry| entry.context == context || entry.context == Context::Always;
    let entry = TABLE.iter().filter(here).find(|entry| entry.keys.contains(&key))?;
    Some(entry.command)
}

/// Commands that the palette offers for what was typed, best first; all of them for nothing.
pub fn offers(typed: &str) -> Vec<&'static Entry> {
    let wanted: String = typed.to_lowercase().split_whitespace().collect();
    let mut found: Vec<(usize, &Entry)> = TABLE
        .iter()
        .filter(|entry| entry.context == Context::View && entry.command != Command::Palette)
        .filter_map(|entry| Some((plinth_run::filter::fuzzy(&wanted, entry.title)?, entry)))
        .collect();
    found.sort_by(|(one, _), (other, _)| other.cmp(one));
    found.into_iter().map(|(_, entry)| entry).collect()
}

/// Why a command does nothing now; `None` where it does something. A key that does nothing says why.
pub fn disabled(model: &Model, command: Command) -> Option<&'static str> {
    let has_object = model.selected().is_some_and(|row| row.key.is_some());
    match command {
        Command::Yaml | Command::Describe | Command::Diff | Command::Logs | Command::ObjectEvents | Command::Copy
            if !has_object =>
        {
            Some("no object is selected")
        }
        Command::Open if !has_object && model.phase() != Phase::Review => {
            let can_fold = model.selected().is_some_and(|row| row.folded.is_some());
            (!can_fold).then_some("this row is no object")
        }
        Command::NextMatch | Command::PreviousMatch if model.ui.filter.is_empty() => Some("there is no filter; / sets one"),
        Command::Plane if model.planes.len() < 2 && model.ui.plane.is_none() => Some("there is one plane"),
        Command::Contexts if model.ui.contexts.is_none() => Some("only plinth dash changes the cluster"),
        Command::HistoryBack if !model.ui.trail.has_back() => Some("nothing was shown before"),
        Command::HistoryForward if !model.ui.trail.has_forward() => Some("nothing was shown after"),
        _ => None,
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn no_key_means_two_things() {
        for (index, one) in TABLE.iter().enumerate() {
            for other in &TABLE[index + 1..] {
                let clash = one.keys.iter().find(|key| other.keys.contains(key));
                let meet = one.context == other.context || [one.context, other.context].contains(&Context::Always);
                assert!(!meet || clash.is_none(), "{clash:?} in {:?}", one.context);
            }
        }
    }

    #[test]
    fn the_palette_finds_a_command_by_some_of_its_letters() {
        assert_eq!(offers("why").first().map(|entry| entry.command), Some(Command::Why));
        assert_eq!(offers("yml").first().map(|entry| entry.command), Some(Command::Yaml));
        assert!(offers("").len() > 30 && offers("zzzz").is_empty());
    }
}
