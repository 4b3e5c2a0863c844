//! Writing to the two streams: data on standard output, talk on standard error.
//!
//! A closed pipe is a quiet end (`plinth status | head -1`), never a panic.

use std::io::{self, Write};

/// The two streams of the process.
#[derive(Clone, Copy, Debug)]
pub(crate) struct Out {
    /// Leaves out talk that is not an error.
    pub(crate) quiet: bool,
}

impl Out {
    /// Prints one line of data.
    #[expect(clippy::unused_self, reason = "a verb prints through what it was handed, whatever that needs to know")]
    pub(crate) fn data(self, line: &str) {
        write_line(io::stdout().lock(), line);
    }

    /// Says one line to the person who watches.
    pub(crate) fn talk(self, line: &str) {
        if !self.quiet {
            write_line(io::stderr().lock(), line);
        }
    }

    /// Says one line that must be seen.
    #[expect(clippy::unused_self, reason = "a verb prints through what it was handed, whatever that needs to know")]
    pub(crate) fn error(self, line: &str) {
        write_line(io::stderr().lock(), line);
    }
}

/// Writes and flushes; whoever closed the pipe does not want to hear more.
fn write_line(mut stream: impl Write, line: &str) {
    let _closed = stream.write_all(line.as_bytes()).and_then(|()| stream.write_all(b"\n")).and_then(|()| stream.flush());
}
