//! Presenters: pure functions from events and states to text. Who writes the text, and where, is for the caller.
//!
//! All of them count by [`crate::RunState::summary`], so that they agree.

pub mod github;
pub mod json;
pub mod junit;
pub mod lines;
#[cfg(test)]
mod tests;

/// Text from outside on one line: control characters (and with them escape sequences) become blanks.
pub(crate) fn one_line(text: &str) -> String {
    let mut line = String::with_capacity(text.len());
    for word in text.split(|c: char| c.is_control() || c.is_whitespace()).filter(|word| !word.is_empty()) {
        if !line.is_empty() {
            line.push(' ');
        }
        line.push_str(word);
    }
    line
}
