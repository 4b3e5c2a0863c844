//! The command table: the one list that makes keys, footer and help, and that the clash check reads.

use crate::{
    message::Key,
    model::{Model, Overlay, Phase},
};

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
    /// Close what lies over the view.
    Back,
    /// Show all keys.
    Help,
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
    /// The view with this number key.
    View(char),
    /// The next view.
    NextView,
    /// The previous view.
    PreviousView,
    /// Open or close the explanation.
    Why,
    /// Leave ready rows out.
    Unhealthy,
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

const fn entry(context: Context, command: Command, keys: &'static [Key], title: &'static str, footer: bool) -> Entry {
    Entry { command, keys, context, title, footer }
}

/// The table. Nothing in it deletes.
pub const TABLE: &[Entry] = &[
    entry(Context::Question, Command::Approve, &[Key::Char('y')], "apply the plan", true),
    entry(
        Context::Question,
        Command::Decline,
        &[Key::Char('n'), Key::Char('q'), Key::Ctrl('c')],
        "write nothing and leave",
        true,
    ),
    entry(Context::Question, Command::Back, &[Key::Esc], "look at the plan first", true),
    entry(Context::Quit, Command::Interrupt, &[Key::Char('y'), Key::Ctrl('c')], "interrupt the run (it can be resumed)", true),
    entry(Context::Quit, Command::Back, &[Key::Char('n'), Key::Esc], "stay", true),
    entry(Context::Help, Command::Back, &[Key::Esc, Key::Char('?'), Key::Char('q')], "close", true),
    entry(Context::View, Command::Down, &[Key::Down, Key::Char('j')], "down", true),
    entry(Context::View, Command::Up, &[Key::Up, Key::Char('k')], "up", true),
    entry(Context::View, Command::Expand, &[Key::Right, Key::Char('l')], "unfold", false),
    entry(Context::View, Command::Collapse, &[Key::Left, Key::Char('h')], "fold", false),
    entry(Context::View, Command::PageDown, &[Key::PageDown, Key::Ctrl('f'), Key::Ctrl('d')], "page down", false),
    entry(Context::View, Command::PageUp, &[Key::PageUp, Key::Ctrl('b'), Key::Ctrl('u')], "page up", false),
    entry(Context::View, Command::First, &[Key::Char('g'), Key::Home], "first", false),
    entry(Context::View, Command::Last, &[Key::Char('G'), Key::End], "last", false),
    entry(Context::View, Command::View('1'), &[Key::Char('1')], "plan", false),
    entry(Context::View, Command::View('2'), &[Key::Char('2')], "tree", false),
    entry(Context::View, Command::View('3'), &[Key::Char('3')], "checks", false),
    entry(Context::View, Command::NextView, &[Key::Tab], "next view", true),
    entry(Context::View, Command::PreviousView, &[Key::BackTab], "previous view", false),
    entry(Context::View, Command::Why, &[Key::Char('w')], "why", true),
    entry(Context::View, Command::Unhealthy, &[Key::Char('u')], "only what is not ready", false),
    entry(Context::View, Command::Approve, &[Key::Enter], "answer the question", false),
    entry(Context::View, Command::Help, &[Key::Char('?')], "keys", true),
    entry(Context::View, Command::Quit, &[Key::Char('q'), Key::Ctrl('c')], "quit", true),
];

/// The context that keys are read in.
pub fn context(model: &Model) -> Context {
    match model.ui.overlay {
        Some(Overlay::Question) => Context::Question,
        Some(Overlay::Quit) => Context::Quit,
        Some(Overlay::Help) => Context::Help,
        None => Context::View,
    }
}

/// The command that a key means now. In the view, enter asks the question again, and only while it is open.
pub fn find(model: &Model, key: Key) -> Option<Command> {
    let context = context(model);
    let entry = TABLE.iter().find(|entry| entry.context == context && entry.keys.contains(&key))?;
    let asks = entry.context == Context::View && entry.command == Command::Approve;
    (!asks || model.phase() == Phase::Review).then_some(entry.command)
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn no_key_means_two_things() {
        for (index, one) in TABLE.iter().enumerate() {
            for other in &TABLE[index + 1..] {
                let clash = one.keys.iter().find(|key| other.keys.contains(key));
                assert!(one.context != other.context || clash.is_none(), "{clash:?} in {:?}", one.context);
            }
        }
    }
}
