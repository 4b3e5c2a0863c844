//! The page of keys in the documentation, made from the table.

use std::fmt::Write;

use plinth_run::filter::KEYS;

use super::{Context, TABLE};

/// `docs/keys.md`, whole.
pub fn page() -> String {
    let mut text = String::from(
        "# Keys of the terminal\n\nMade from the command table of `src/tui`; a test holds it. No key deletes anything.\n",
    );
    for (context, title) in [
        (Context::View, "In a view"),
        (Context::Question, "When a plan is to be agreed to"),
        (Context::Quit, "When leaving would interrupt a run"),
        (Context::Input, "While typing a filter or a command"),
        (Context::Help, "In the help"),
        (Context::Always, "Everywhere"),
    ] {
        let _ = write!(text, "\n## {title}\n\n| keys | does |\n| --- | --- |\n");
        for entry in TABLE.iter().filter(|entry| entry.context == context) {
            let keys: Vec<String> = entry.keys.iter().map(|key| format!("`{}`", key.label())).collect();
            let _ = writeln!(text, "| {} | {} |", keys.join(" "), entry.title);
        }
    }
    let keys: Vec<String> = KEYS.iter().map(|(key, _)| format!("`{key}:`")).collect();
    let _ = write!(
        text,
        "\n## Filter\n\nWords are looked for in names, letter by letter. {} ask for a field; `!` in front turns a term round. The same key\n\
         twice means one or the other; different keys, and several words, mean both. The same filter is understood by\n\
         `plinth status --filter` and `plinth dash --filter`.\n",
        keys.join(", ")
    );
    text
}
