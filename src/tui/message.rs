//! Everything that can happen to the terminal. Time is a message too.

use jiff::Timestamp;
use plinth_api::{Object, ObjectKey};
use plinth_run::{Event, History, duration};

use crate::effect::Ask;

/// One thing that happened.
#[derive(Clone, Debug, PartialEq)]
pub enum Message {
    /// The run said something.
    Run(Box<Event>),
    /// How long things took in earlier runs.
    History(Box<History>),
    /// What [`crate::Effect::Fetch`] asked for.
    Fetched(Box<Fetched>),
    /// The contexts that [`crate::Effect::Contexts`] asked for, or why they cannot be read.
    Contexts(Result<Vec<String>, String>),
    /// From now on everything is told of another cluster, which the person calls so.
    Connected(String),
    /// Whether the cluster answers: `None` where it does.
    Link(Option<Lost>),
    /// There is nothing to look at: the terminal is given back.
    Close,
    /// Why there is nothing to show, to stand where the rows would; `None` where there is.
    Nothing(Option<String>),
    /// How many watches the picture costs the API server.
    Watches(usize),
    /// Something that the person should read, in the place of the footer until the next key.
    Notice(String),
    /// A key.
    Key(Key),
    /// The terminal has another size, in cells.
    Resize {
        /// Columns.
        width: u16,
        /// Rows.
        height: u16,
    },
    /// It is now this late.
    Tick(Timestamp),
}

/// A cluster that does not answer. What was known of it stays on the screen.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Lost {
    /// Since when.
    pub since: Timestamp,
    /// Its name and address, where it has not answered yet.
    pub of: Option<String>,
    /// Why, in the words of whoever asked it.
    pub why: String,
    /// What to do about it.
    pub hint: Option<String>,
}

impl Lost {
    /// The sentence for people.
    pub fn told(&self, now: Timestamp) -> String {
        let of = self.of.as_ref().map(|of| format!(" to {of}")).unwrap_or_default();
        format!("no connection{of} for {}: {}; retrying", duration::short(now.duration_since(self.since)), self.why)
    }
}

/// The answer to a question about an object.
#[derive(Clone, Debug, PartialEq)]
pub struct Fetched {
    /// The question.
    pub ask: Ask,
    /// What was found, or why it was not.
    pub answer: Result<Answer, String>,
}

/// What was found.
#[derive(Clone, Debug, PartialEq)]
pub enum Answer {
    /// The object, and how it is wanted where that is known. Secrets need not be masked: the model does it.
    Object {
        /// As the server has it; `None` where it does not exist.
        live: Option<Object>,
        /// As the run applied it.
        desired: Option<Object>,
    },
    /// The server's own events about it, in any order.
    Events(Vec<ClusterEvent>),
    /// The last lines of a pod, oldest first.
    Logs {
        /// Pod and container.
        of: String,
        /// The lines.
        lines: Vec<String>,
    },
}

/// An event object of an API server.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct ClusterEvent {
    /// When it was seen last.
    pub at: Timestamp,
    /// What it is about.
    pub key: ObjectKey,
    /// Whether it is a warning.
    pub warning: bool,
    /// One word in UpperCamelCase.
    pub reason: String,
    /// A sentence.
    pub message: String,
}

/// A key as the command table names it.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Hash)]
pub enum Key {
    /// A character, shift applied.
    Char(char),
    /// A character with control held.
    Ctrl(char),
    /// Cursor up.
    Up,
    /// Cursor down.
    Down,
    /// Cursor left.
    Left,
    /// Cursor right.
    Right,
    /// Enter.
    Enter,
    /// Escape.
    Esc,
    /// Backspace.
    Backspace,
    /// Tab.
    Tab,
    /// Shift and tab.
    BackTab,
    /// Page up.
    PageUp,
    /// Page down.
    PageDown,
    /// Home.
    Home,
    /// End.
    End,
}

impl Key {
    /// How the footer and the help spell it.
    pub fn label(self) -> String {
        match self {
            Self::Char(' ') => "space".to_owned(),
            Self::Char(c) => c.to_string(),
            Self::Ctrl(c) => format!("ctrl-{c}"),
            Self::Up => "↑".to_owned(),
            Self::Down => "↓".to_owned(),
            Self::Left => "←".to_owned(),
            Self::Right => "→".to_owned(),
            Self::Enter => "⏎".to_owned(),
            Self::Esc => "esc".to_owned(),
            Self::Backspace => "backspace".to_owned(),
            Self::Tab => "tab".to_owned(),
            Self::BackTab => "S-tab".to_owned(),
            Self::PageUp => "pgup".to_owned(),
            Self::PageDown => "pgdn".to_owned(),
            Self::Home => "home".to_owned(),
            Self::End => "end".to_owned(),
        }
    }
}
