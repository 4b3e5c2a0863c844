//! JSON lines: the events themselves, as the journal has them.

use crate::{event::Event, journal, ports::JournalError};

/// One event as a line, its end included.
pub fn line(event: &Event) -> Result<String, JournalError> {
    journal::encode(event)
}

#[cfg(test)]
mod tests;
