//! One file a verb.

use crate::{
    args::{Cli, Verb},
    exit::{Exit, Failure},
    out::Out,
};

/// Runs the verb.
pub(crate) async fn run(cli: Cli, out: Out) -> Result<Exit, Failure> {
    match cli.verb {
        _ => Err(Failure::failed("not wired yet")),
    }
}
