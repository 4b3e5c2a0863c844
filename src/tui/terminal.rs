//! The terminal as a guarded resource: raw mode and the alternate screen go away on every path out.

use std::io;

use crossterm::{
    clipboard::CopyToClipboard,
    event::{KeyCode, KeyEvent, KeyEventKind, KeyModifiers},
    execute,
};
use ratatui::DefaultTerminal;

use crate::message::Key;

/// An open terminal; dropping it restores the screen. A panic restores it too (ratatui's hook).
pub struct Guard {
    /// The screen.
    pub screen: DefaultTerminal,
}

impl Guard {
    /// Enters raw mode and the alternate screen.
    pub fn open() -> io::Result<Self> {
        Ok(Self { screen: ratatui::try_init()? })
    }

    /// Gives the terminal back, stops the process as ctrl-z does elsewhere, and takes the terminal again once it is continued.
    pub fn suspend(self) -> io::Result<Self> {
        drop(self);
        signal_hook::low_level::raise(signal_hook::consts::SIGTSTP)?;
        // A new screen knows of nothing that is drawn, so that the next frame draws everything.
        Self::open()
    }
}

impl Drop for Guard {
    fn drop(&mut self) {
        ratatui::restore();
    }
}

/// Colours are written although `NO_COLOR` is set.
pub fn force_colour() {
    crossterm::style::force_color_output(true);
}

/// Puts text on the clipboard of the person's own terminal, by OSC 52: it works over SSH too.
pub(crate) fn copy(text: &str) -> io::Result<()> {
    execute!(io::stdout(), CopyToClipboard::to_clipboard_from(text))
}

/// Beginnings of the names of terminals that understand what is drawn (ECMA-48 and the alternate screen).
const KNOWN: [&str; 24] = [
    "xterm",
    "screen",
    "tmux",
    "rxvt",
    "linux",
    "vt100",
    "vt102",
    "vt220",
    "vt320",
    "vt420",
    "ansi",
    "alacritty",
    "kitty",
    "wezterm",
    "foot",
    "konsole",
    "gnome",
    "vte",
    "st",
    "contour",
    "ghostty",
    "iterm",
    "cygwin",
    "putty",
];

/// Whether a full-screen view can be drawn: what `TERM` says. crossterm does not honour `dumb`, and on a terminal that nobody
/// knows it would wait for answers that never come.
pub fn is_capable(term: Option<&str>) -> bool {
    let family = |term: &str| term.split(['-', '.', '+']).next().unwrap_or_default().to_ascii_lowercase();
    term.is_some_and(|term| KNOWN.contains(&family(term).as_str()))
}

/// Translates a key press; `None` for releases and keys that no command has.
pub fn key(event: KeyEvent) -> Option<Key> {
    if event.kind == KeyEventKind::Release {
        return None;
    }
    let control = event.modifiers.contains(KeyModifiers::CONTROL);
    Some(match event.code {
        KeyCode::Char(c) if control => Key::Ctrl(c.to_ascii_lowercase()),
        KeyCode::Char(c) => Key::Char(c),
        KeyCode::Up => Key::Up,
        KeyCode::Down => Key::Down,
        KeyCode::Left => Key::Left,
        KeyCode::Right => Key::Right,
        KeyCode::Enter => Key::Enter,
        KeyCode::Esc => Key::Esc,
        KeyCode::Backspace => Key::Backspace,
        KeyCode::Tab => Key::Tab,
        KeyCode::BackTab => Key::BackTab,
        KeyCode::PageUp => Key::PageUp,
        KeyCode::PageDown => Key::PageDown,
        KeyCode::Home => Key::Home,
        KeyCode::End => Key::End,
        _ => return None,
    })
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn only_terminals_that_are_known_are_drawn_on() {
        for term in ["xterm", "xterm-256color", "tmux-256color", "screen.xterm-256color", "linux", "st-256color", "foot"] {
            assert!(is_capable(Some(term)), "{term}");
        }
        for term in [None, Some(""), Some("dumb"), Some("storm"), Some("no-such-terminal")] {
            assert!(!is_capable(term), "{term:?}");
        }
    }
}
