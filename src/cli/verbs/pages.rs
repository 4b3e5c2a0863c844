//! Shell completions and the manual page, both made from the table of arguments.

use std::path::Path;

use clap::CommandFactory;
use plinth_run::Outcome;

use crate::{args::Cli, complete, exit::Failure, out::Out};

/// Prints a completion script.
pub(crate) fn completion(shell: clap_complete::Shell, out: Out) -> Result<Outcome, Failure> {
    let script = complete::script(shell).map_err(|error| Failure::failed(format!("write the script for {shell}: {error}")))?;
    out.bytes(&script);
    Ok(Outcome::Done)
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
    use super::*;

    #[test]
    fn there_is_a_page_for_every_verb() {
        let folder = tempfile::tempdir().unwrap();
        man(Some(folder.path())).unwrap();
        for verb in Cli::command().get_subcommands() {
            let page = folder.path().join(format!("plinth-{}.1", verb.get_name()));
            assert!(std::fs::read_to_string(&page).is_ok_and(|text| text.contains(".TH")), "{} is missing", page.display());
        }
    }
}
