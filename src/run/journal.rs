//! The journal's text: one event a line, as JSON.
//!
//! A run that is killed while it writes leaves a last line without its end; that line is dropped and named, and everything
//! before it counts. A line that is broken anywhere else is an error: somebody changed the file.

use serde::Deserialize;

use crate::{
    event::{Event, VERSION},
    ports::JournalError,
};

/// The longest line, in bytes: a plan of tens of thousands of objects fits.
pub const MAX_LINE: usize = 16 << 20;

/// What a journal holds.
#[derive(Clone, Debug, Default, PartialEq)]
pub struct Replay {
    /// Whole events, oldest first.
    pub events: Vec<Event>,
    /// The last line was cut off: what a kill in the middle of a write leaves.
    pub cut: Option<Cut>,
}

/// A last line that was cut off.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct Cut {
    /// Its number, from 1.
    pub line: usize,
    /// How many bytes from the start of the journal are whole lines: a writer truncates to this before it appends.
    pub whole_bytes: usize,
}

/// One event as a line, its end included.
///
/// # Panics
/// Never: every part of an event has a JSON form.
pub fn encode(event: &Event) -> Result<String, JournalError> {
    let mut line =
        serde_json::to_string(event).expect("events are made of strings, numbers and lists, which all have a JSON form");
    if line.len() >= MAX_LINE {
        return Err(JournalError::TooLong { line: 0, limit: MAX_LINE });
    }
    line.push('\n');
    Ok(line)
}

/// Reads a whole journal. Empty lines are skipped.
pub fn decode(bytes: &[u8]) -> Result<Replay, JournalError> {
    let mut replay = Replay::default();
    let mut offset = 0;
    for (index, chunk) in bytes.split_inclusive(|byte| *byte == b'\n').enumerate() {
        let line = index + 1;
        let Some(text) = chunk.strip_suffix(b"\n") else {
            replay.cut = Some(Cut { line, whole_bytes: offset });
            break;
        };
        if !text.trim_ascii().is_empty() {
            replay.events.push(decode_line(text, line)?);
        }
        offset += chunk.len();
    }
    Ok(replay)
}

/// Reads one line; `line` is its number, for the error.
pub fn decode_line(text: &[u8], line: usize) -> Result<Event, JournalError> {
    #[derive(Deserialize)]
    struct Head {
        v: u64,
    }
    if text.len() >= MAX_LINE {
        return Err(JournalError::TooLong { line, limit: MAX_LINE });
    }
    let malformed = |error: serde_json::Error| JournalError::Malformed { line, message: error.to_string() };
    // The version first: what another version means by the rest is not ours to guess.
    let head: Head = serde_json::from_slice(text).map_err(malformed)?;
    if head.v != u64::from(VERSION) {
        return Err(JournalError::Version { line, version: head.v });
    }
    serde_json::from_slice(text).map_err(malformed)
}

#[cfg(test)]
mod tests;
