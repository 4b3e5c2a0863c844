//! Writing to the two streams: data on standard output, talk on standard error.
//!
//! A closed pipe is a quiet end (`plinth status | head -1`), never a panic. Any other failure to write is one: a lock that a full disk
//! cut off must not look like success. Control characters from outside never reach a terminal.

use std::{
    io::{self, ErrorKind, Write},
    sync::atomic::{AtomicBool, Ordering},
};

use plinth_tui::theme::{Role, Theme};

/// Data was lost on its way out. One for the process, as standard output is.
static LOST: AtomicBool = AtomicBool::new(false);

/// Whether data could not be written.
pub(crate) fn lost_data() -> bool {
    LOST.load(Ordering::Relaxed)
}

/// Data was written.
static WRITTEN: AtomicBool = AtomicBool::new(false);

/// Whether any data was written so far.
pub(crate) fn has_data() -> bool {
    WRITTEN.load(Ordering::Relaxed)
}

/// The two streams of the process.
#[derive(Clone, Copy, Debug, Default)]
pub(crate) struct Out {
    /// Leaves out talk that is not an error.
    pub(crate) quiet: bool,
    /// The colours of data; `None` for text without any escape sequence.
    pub(crate) theme: Option<Theme>,
}

impl Out {
    /// Prints one line of data.
    pub(crate) fn data(self, line: &str) {
        self.told(Role::Plain, line);
    }

    /// Prints data whose first words, up to two blanks, say what it is: in the colour of that where colour is wanted. Without it nothing
    /// is lost, for the words say the same.
    pub(crate) fn told(self, role: Role, line: &str) {
        let line = printable(line);
        let line = self.theme.map_or_else(|| line.clone(), |theme| painted(theme, role, &line));
        self.kept(write_line(io::stdout().lock(), &line));
    }

    fn kept(self, written: io::Result<()>) {
        WRITTEN.store(true, Ordering::Relaxed);
        if let Err(error) = written
            && error.kind() != ErrorKind::BrokenPipe
            && !LOST.swap(true, Ordering::Relaxed)
        {
            self.error(&format!("error: write to standard output: {error}"));
        }
    }

    /// Writes bytes as they are: for what is hashed, where one more byte would be wrong.
    pub(crate) fn bytes(self, bytes: &[u8]) {
        let mut stream = io::stdout().lock();
        self.kept(stream.write_all(bytes).and_then(|()| stream.flush()));
    }

    /// Says one line to the person who watches.
    pub(crate) fn talk(self, line: &str) {
        if !self.quiet {
            self.error(line);
        }
    }

    /// Says one line that must be seen.
    #[expect(clippy::unused_self, reason = "a verb prints through what it was handed, whatever that needs to know")]
    pub(crate) fn error(self, line: &str) {
        // Nobody is left to be told that nobody listens.
        let _unheard = write_line(io::stderr().lock(), &printable(line));
    }
}

fn write_line(mut stream: impl Write, line: &str) -> io::Result<()> {
    stream.write_all(line.as_bytes())?;
    stream.write_all(b"\n")?;
    stream.flush()
}

/// The text with its first words in the colour of their role; what is before them stays before them.
fn painted(theme: Theme, role: Role, line: &str) -> String {
    let words = line.trim_start();
    let blanks = line.len() - words.len();
    let end = [words.find("  "), words.find('\n')].into_iter().flatten().min().unwrap_or(words.len());
    format!("{}{}{}", &line[..blanks], theme.paint(role, &words[..end]), &words[end..])
}

/// The text without control characters but line ends and tabs: names and messages come from outside.
fn printable(line: &str) -> String {
    line.chars().map(|c| if c.is_control() && !matches!(c, '\n' | '\t') { '\u{fffd}' } else { c }).collect()
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn the_first_words_have_the_colour_and_nothing_else() {
        let red = |line| painted(Theme::Dark, Role::Failed, line);
        assert_eq!(red("  failed  host  x"), "  \u{1b}[1;31mfailed\u{1b}[0m  host  x");
        assert_eq!(red("still waiting\n  more"), "\u{1b}[1;31mstill waiting\u{1b}[0m\n  more");
        assert_eq!(painted(Theme::Dark, Role::Plain, "a  b"), "a  b");
    }

    #[test]
    fn escape_sequences_from_outside_are_no_escape_sequences() {
        assert_eq!(printable("a\u{1b}[31mred\u{7}\n\tb"), "a\u{fffd}[31mred\u{fffd}\n\tb");
    }
}
