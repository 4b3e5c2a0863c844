//! What `./dev sample` runs: `sample PLINTH DISTRIBUTION [--keep]`.
//!
//! Starts a real API server with a stand-in for what does not run there, packs the distribution into an archive, brings it
//! up with the plinth that is given, and shows it.

use std::{
    error::Error,
    io::{self, Write},
    path::Path,
    process::{Command, ExitCode},
};

use plinth_support::{ApiServer, Identity, StandIn, scenario};

#[tokio::main]
async fn main() -> ExitCode {
    let arguments: Vec<_> = std::env::args().skip(1).collect();
    let result = match arguments.iter().map(String::as_str).collect::<Vec<_>>()[..] {
        [plinth, distribution] => run(plinth, Path::new(distribution), false).await,
        [plinth, distribution, "--keep"] => run(plinth, Path::new(distribution), true).await,
        _ => Err("usage: sample PLINTH DISTRIBUTION [--keep]".into()),
    };
    match result {
        Ok(()) => ExitCode::SUCCESS,
        Err(error) => {
            say(&format!("sample: {error}"));
            ExitCode::FAILURE
        }
    }
}

async fn run(plinth: &str, distribution: &Path, keep: bool) -> Result<(), Box<dyn Error>> {
    say("starting etcd and kube-apiserver");
    let server = ApiServer::start()?;
    let kubeconfig = server.kubeconfig(Identity::Admin).display().to_string();
    let scenario = scenario::read(&distribution.join("scenario.yaml"))?;
    let _stand_in = StandIn::start(server.client(Identity::Cluster).await, scenario);

    let archive = server.folder().join("channel.tgz").display().to_string();
    let folder = distribution.display().to_string();
    let journal = server.folder().join("journal").display().to_string();
    call(plinth, &["channel", "pack", &folder, "-f", &archive]).await?;
    call(plinth, &["up", &archive, "--apply", "--kubeconfig", &kubeconfig, "--journal", &journal]).await?;
    call(plinth, &["status", "--kubeconfig", &kubeconfig]).await?;
    if keep {
        say(&format!("\nstill there until ctrl-c:\n  {plinth} status --kubeconfig {kubeconfig}"));
        tokio::signal::ctrl_c().await?;
    }
    Ok(())
}

/// Runs plinth with our own terminal; the stand-in goes on meanwhile.
async fn call(plinth: &str, arguments: &[&str]) -> Result<(), Box<dyn Error>> {
    say(&format!("\n$ plinth {}", arguments.join(" ")));
    let mut command = Command::new(plinth);
    command.args(arguments);
    let status = tokio::task::spawn_blocking(move || command.status()).await??;
    if status.success() { Ok(()) } else { Err(format!("plinth {}: {status}", arguments[0]).into()) }
}

fn say(line: &str) {
    // Nobody reads this where standard error is closed.
    let _ = writeln!(io::stderr(), "{line}");
}
