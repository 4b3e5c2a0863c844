//! Shell completions and the manual page, both made from the table of arguments.

use clap::CommandFactory;
use plinth_run::Outcome;

use crate::{args::Cli, exit::Failure};

/// Prints a completion script.
pub(crate) fn completion(shell: clap_complete::Shell) -> Outcome {
    clap_complete::generate(shell, &mut Cli::command(), "plinth", &mut std::io::stdout());
    Outcome::Done
}

/// Prints the manual page.
pub(crate) fn man() -> Result<Outcome, Failure> {
    clap_mangen::Man::new(Cli::command())
        .render(&mut std::io::stdout())
        .map_err(|error| Failure::failed(format!("write the manual page: {error}")))?;
    Ok(Outcome::Done)
}
