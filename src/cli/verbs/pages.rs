//! Shell completions and the manual page, both made from the table of arguments.

use std::path::Path;

use clap::CommandFactory;
use plinth_run::Outcome;

use crate::{args::Cli, exit::Failure};

/// Prints a completion script.
pub(crate) fn completion(shell: clap_complete::Shell) -> Outcome {
    clap_complete::generate(shell, &mut Cli::command(), "plinth", &mut std::io::stdout());
    Outcome::Done
}

/// Prints the manual page, or writes one for every verb into a folder.
pub(crate) fn man(folder: Option<&Path>) -> Result<Outcome, Failure> {
    let command = Cli::command();
    match folder {
        None => clap_mangen::Man::new(command)
            .render(&mut std::io::stdout())
            .map_err(|error| Failure::failed(format!("write the manual page: {error}")))?,
        Some(folder) => std::fs::create_dir_all(folder)
            .and_then(|()| clap_mangen::generate_to(command, folder))
            .map_err(|error| Failure::failed(format!("write manual pages into {}: {error}", folder.display())))?,
    }
    Ok(Outcome::Done)
}

#[cfg(test)]
mod tests {
    use clap::ValueEnum;

    use super::*;

    #[test]
    fn there_is_a_completion_for_every_shell_and_a_page_for_every_verb() {
        for shell in clap_complete::Shell::value_variants() {
            let mut script = Vec::new();
            clap_complete::generate(*shell, &mut Cli::command(), "plinth", &mut script);
            let script = String::from_utf8(script).unwrap();
            for verb in Cli::command().get_subcommands() {
                assert!(script.contains(verb.get_name()), "{shell} does not complete {}", verb.get_name());
            }
        }
        let folder = tempfile::tempdir().unwrap();
        man(Some(folder.path())).unwrap();
        for verb in Cli::command().get_subcommands() {
            let page = folder.path().join(format!("plinth-{}.1", verb.get_name()));
            assert!(std::fs::read_to_string(&page).is_ok_and(|text| text.contains(".TH")), "{} is missing", page.display());
        }
    }
}
