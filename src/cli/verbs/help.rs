//! `plinth help`: the help of a verb, or a page that belongs to none of them.

use clap::CommandFactory;
use plinth_run::{Outcome, filter, outcome::EXIT_CODES};

use crate::{args::Cli, exit::Failure, out::Out, table::table};

/// A page that belongs to no verb.
struct Page {
    name: &'static str,
    about: &'static str,
    lines: fn() -> Vec<String>,
}

const PAGES: [Page; 3] = [
    Page { name: "exit-codes", about: "how a process ends, for scripts", lines: exit_codes },
    Page { name: "filter", about: "what --filter and / understand", lines: filters },
    Page { name: "keys", about: "keys of the terminal view", lines: keys },
];

/// Runs `plinth help`.
pub(crate) fn run(topic: Option<&str>, out: Out) -> Result<Outcome, Failure> {
    let mut command = Cli::command();
    command.build();
    let Some(topic) = topic else {
        out.data(command.render_long_help().to_string().trim_end());
        out.data("\nPages (plinth help PAGE):");
        PAGES.iter().for_each(|page| out.data(&format!("  {:<11} {}", page.name, page.about)));
        return Ok(Outcome::Done);
    };
    if let Some(page) = PAGES.iter().find(|page| page.name == topic) {
        (page.lines)().iter().for_each(|line| out.data(line));
        return Ok(Outcome::Done);
    }
    let Some(verb) = command.find_subcommand_mut(topic) else {
        let names: Vec<&str> = PAGES.iter().map(|page| page.name).collect();
        let failure = Failure::new(Outcome::Usage, format!("there is no verb and no page {topic}"));
        return Err(failure.hint(format!("plinth help lists the verbs; pages are {}", names.join(", "))));
    };
    out.data(verb.render_long_help().to_string().trim_end());
    Ok(Outcome::Done)
}

fn exit_codes() -> Vec<String> {
    let rows: Vec<[String; 3]> = EXIT_CODES
        .iter()
        .map(|(outcome, code, means)| [code.to_string(), outcome.word().to_owned(), (*means).to_owned()])
        .collect();
    table(["CODE", "WORD", "MEANS"], &rows)
}

fn filters() -> Vec<String> {
    let rows: Vec<[String; 2]> = filter::KEYS.iter().map(|(key, _)| [format!("{key}:"), asks(key).to_owned()]).collect();
    let rules = ["Words are looked for in names, letter by letter. A key asks for a field:", ""];
    let more = [
        "",
        "! in front turns a term round. The same key twice means one or the other;",
        "different keys, and several words, mean both: 'kind:helm !state:ready flux'",
    ];
    let text = |lines: &[&str]| lines.iter().map(|line| (*line).to_owned()).collect::<Vec<_>>();
    [text(&rules), table(["TERM", "ASKS FOR"], &rows), text(&more)].concat()
}

fn asks(key: &str) -> &'static str {
    match key {
        "kind" => "the kind, with its group",
        "plane" => "provider, consumer, host, or a cluster",
        "ns" => "the namespace",
        "state" => "the word of its state: ready, progressing, waiting, failed …",
        "reason" => "the reason of its state",
        _ => "",
    }
}

fn keys() -> Vec<String> {
    plinth_tui::command::page().lines().map(str::to_owned).collect()
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn the_page_of_exit_codes_has_them_all() {
        let text = exit_codes().join("\n");
        for (outcome, code, means) in EXIT_CODES {
            assert!(text.contains(&format!("{code:<4}  {:<11}  {means}", outcome.word())), "{text}");
        }
        assert!(filter::KEYS.iter().all(|(key, _)| !asks(key).is_empty()));
    }
}
