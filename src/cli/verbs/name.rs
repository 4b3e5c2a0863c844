//! `plinth name`: names that other tools have to derive in the same way.

use plinth_run::Outcome;

use crate::{args::Name, exit::Failure, out::Out};

/// Runs `plinth name …`.
pub(crate) fn run(verb: &Name, out: Out) -> Result<Outcome, Failure> {
    let Name::Namespace { namespace, name, single_dash } = verb;
    let prefix = if *single_dash { "mcp-" } else { "mcp--" };
    let derived = plinth_engine::naming::control_plane_namespace(prefix, namespace, name)
        .map_err(|error| Failure::new(Outcome::Usage, error.to_string()))?;
    out.data(&derived);
    Ok(Outcome::Done)
}
