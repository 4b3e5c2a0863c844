//! One file a verb.

mod attach;
mod bundle;
mod channel;
mod config;
mod controller;
mod dash;
mod demo;
mod diff;
mod down;
mod grant;
mod help;
mod install;
mod kept;
mod name;
mod own_chart;
mod own_image;
mod pages;
mod plan;
mod rehearse;
mod replay;
mod rgd;
mod status;
mod up;
mod upgrade;

pub(crate) use plan::told;
use plinth_run::Outcome;
#[cfg(test)]
pub(crate) use status::next_step;
pub(crate) use status::{cannot_read, unreadable};

use crate::{
    args::{self, Cli, Verb},
    config::Config,
    exit::Failure,
    out::Out,
};

/// Runs the verb.
pub(crate) async fn run(cli: Cli, out: Out) -> Result<Outcome, Failure> {
    let global = &cli.global;
    Config::check()?;
    match cli.verb {
        Verb::Up(args) => up::run(global, &args, out).await,
        Verb::Plan(args) => plan::run(global, &args, out).await,
        Verb::Rehearse(args) => rehearse::run(&args, out).await,
        Verb::Demo(args) => demo::run(global, &args, out).await,
        Verb::Status(args) => status::run(global, &args, out).await,
        Verb::Why(args) => status::why(global, &args, out).await,
        Verb::Dash(args) => dash::run(global, &args, out).await,
        Verb::Attach(args) => attach::run(global, &args, out).await,
        Verb::Replay(args) => replay::run(global, &args, out).await,
        Verb::Diff(args) => diff::run(global, &args, out).await,
        Verb::Upgrade(args) => upgrade::run(global, &args, out).await,
        Verb::Rollback(args) => upgrade::back(global, &args, out).await,
        Verb::Down(args) => down::run(global, &args, out).await,
        Verb::Grant(args) => grant::run(global, &args, out).await,
        Verb::Controller(args) => controller::run(global, &args).await,
        Verb::Channel { verb } => channel::run(verb, out).await,
        Verb::Bundle { verb } => bundle::run(verb, out).await,
        Verb::Rgd { verb } => rgd::run(global, &verb, out).await,
        Verb::Name { verb } => name::run(&verb, out),
        Verb::Completion { shell } => pages::completion(shell, out),
        Verb::Man { dir } => pages::man(dir.as_deref()),
        Verb::Help { topic } => help::run(topic.as_deref(), out),
        Verb::Config { verb: args::Config::Show { origin, output } } => Ok(config::show(global, origin, output, out)),
    }
}
