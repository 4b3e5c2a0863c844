//! `plinth rgd`: what definitions say, and what is wrong with them, without applying anything.

mod check;
mod graph;
mod load;
mod objects;
mod render;
#[cfg(test)]
mod tests;

use std::path::Path;

use plinth_run::Outcome;

use crate::{
    args::{Global, Rgd},
    exit::Failure,
    files,
    out::Out,
};

/// Runs `plinth rgd …`.
pub(crate) async fn run(global: &Global, verb: &Rgd, out: Out) -> Result<Outcome, Failure> {
    match verb {
        Rgd::Check { schemas, files, output } => {
            let checked = load::definitions(global, schemas, files).await?;
            Ok(check::present(&checked, *output, out))
        }
        Rgd::Crd { schemas, file } => {
            let checked = load::definitions(global, schemas, std::slice::from_ref(file)).await?;
            Ok(check::print_crds(&checked, out))
        }
        Rgd::Graph { schemas, files, output } => {
            let checked = load::definitions(global, schemas, files).await?;
            Ok(graph::present(&checked, *output, out))
        }
        Rgd::Render { schemas, file, instance, observed } => {
            if file == instance && file == Path::new(files::STDIN) {
                return Err(Failure::new(Outcome::Usage, "the definition and the instance cannot both be standard input"));
            }
            let checked = load::definitions(global, schemas, std::slice::from_ref(file)).await?;
            render::run(&checked, instance, observed, out)
        }
    }
}
