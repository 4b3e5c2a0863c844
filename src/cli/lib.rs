//! The composition root: arguments, wiring, presenters, exit codes.
//!
//! The only room that knows which adapter stands behind a port. A verb is four steps: load, plan, act, present.
#![cfg_attr(test, allow(clippy::unwrap_used))]

pub mod args;
mod complete;
mod config;
pub mod exit;
mod files;
mod follow;
pub mod in_cluster;
mod journal;
mod load;
mod out;
mod platform;
mod present;
mod sample;
mod saved;
mod screen;
mod table;
mod tree;
mod verbs;
pub mod wire;

use std::{process::ExitCode, time::Duration};

use clap::{Parser, error::ErrorKind};
use plinth_run::Outcome;
use tracing_subscriber::{EnvFilter, Layer, layer::SubscriberExt, util::SubscriberInitExt};

use crate::{
    args::Cli,
    config::Config,
    exit::{Failure, code},
    out::Out,
    present::Answer,
};

/// Parses the process's arguments, runs the verb and maps its outcome to an exit code.
pub fn main() -> ExitCode {
    match complete::answered() {
        Ok(true) => return code(Outcome::Done),
        Ok(false) => {}
        Err(error) => return code(usage(&error)),
    }
    let cli = match Cli::try_parse() {
        Ok(cli) => cli,
        Err(error) => return code(usage(&error)),
    };
    let out = Out { quiet: cli.global.quiet, theme: Config::load(&cli.global).theme_of_text() };
    start_logging(&cli);
    let answer = Answer::of(&cli.verb);
    match runtime().and_then(|runtime| drive(runtime, verbs::run(cli, out))) {
        Ok(Outcome::Done) if out::lost_data() => code(Outcome::Failed),
        Ok(outcome) => code(outcome),
        Err(failure) => {
            answer.refuse(&failure, out);
            code(tell(&failure, out))
        }
    }
}

/// How long the end of a verb waits for threads that read or write files.
const LINGER: Duration = Duration::from_millis(500);

/// Help and version are answers; everything else is a wrong command line.
fn usage(error: &clap::Error) -> Outcome {
    let _closed = error.print();
    match error.kind() {
        ErrorKind::DisplayHelp | ErrorKind::DisplayVersion => Outcome::Done,
        _ => {
            let arguments: Vec<String> = std::env::args_os().skip(1).map(|word| word.to_string_lossy().into_owned()).collect();
            let text = error.to_string();
            let message = text.lines().next().unwrap_or_default().trim_start_matches("error: ").to_owned();
            Answer::of_words(&arguments).refuse(&Failure::new(Outcome::Usage, message), Out::default());
            Outcome::Usage
        }
    }
}

fn tell(failure: &Failure, out: Out) -> Outcome {
    if !failure.message.is_empty() {
        out.error(&format!("error: {}", failure.message));
    }
    if let Some(hint) = &failure.hint {
        out.error(&format!("hint: {hint}"));
    }
    failure.outcome
}

/// Logs go to standard error, off unless asked for: events are what a run says. What runs in a cluster has nothing else to say it with.
fn start_logging(cli: &Cli) {
    let in_the_cluster = matches!(cli.verb, args::Verb::Controller(_));
    let level = match cli.global.verbose {
        0 if !in_the_cluster => "off",
        0 | 1 => "plinth=info,warn",
        _ => "plinth=debug,info",
    };
    // Where nothing else is on the screen, long pauses are said.
    let is_plain = matches!(cli.verb, args::Verb::Channel { .. } | args::Verb::Bundle { .. } | args::Verb::Plan(_));
    if is_plain && cli.global.verbose == 0 && !cli.global.quiet && std::env::var_os("PLINTH_LOG").is_none() {
        let words = tracing_subscriber::fmt::layer().with_writer(std::io::stderr).with_ansi(false);
        let words =
            words.without_time().with_level(false).with_target(false).with_filter(EnvFilter::new("off,plinth::waiting=warn"));
        tracing_subscriber::registry().with(words).init();
        return;
    }
    let filter = EnvFilter::try_from_env("PLINTH_LOG").unwrap_or_else(|_| EnvFilter::new(level));
    let layer = tracing_subscriber::fmt::layer().with_writer(std::io::stderr).with_ansi(false);
    let layer = if in_the_cluster { layer.json().flatten_event(true).boxed() } else { layer.boxed() };
    tracing_subscriber::registry().with(filter).with(layer).init();
}

/// Drives a verb to its end. A thread that still waits for a file's bytes then is waited for by nobody.
fn drive<T>(runtime: tokio::runtime::Runtime, verb: impl Future<Output = T>) -> T {
    let ended = runtime.block_on(verb);
    runtime.shutdown_timeout(LINGER);
    ended
}

fn runtime() -> Result<tokio::runtime::Runtime, Failure> {
    // One TLS provider for kube and reqwest; a second installation in one process is the only way this fails.
    let _already = rustls::crypto::ring::default_provider().install_default();
    tokio::runtime::Builder::new_multi_thread()
        .enable_all()
        .build()
        .map_err(|error| Failure::new(Outcome::Internal, format!("starting the async runtime: {error}")))
}
