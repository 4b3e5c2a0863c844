//! Everything that can happen to the terminal. Time is a message too.

use jiff::Timestamp;
use plinth_run::Event;

/// One thing that happened.
#[derive(Clone, Debug, PartialEq)]
pub enum Message {
    /// The run said something.
    Run(Box<Event>),
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
            Self::Tab => "tab".to_owned(),
            Self::BackTab => "S-tab".to_owned(),
            Self::PageUp => "pgup".to_owned(),
            Self::PageDown => "pgdn".to_owned(),
            Self::Home => "home".to_owned(),
            Self::End => "end".to_owned(),
        }
    }
}
