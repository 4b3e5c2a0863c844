//! Plays the programs that do not run on a bare API server: `stand-in-operator KUBECONFIG SCENARIO [CRD FOLDER]`.
//!
//! In a pod it is the operator of the sample: `stand-in-operator init …` registers its kinds and ends, `stand-in-operator run …` plays it.
//! Whatever flags the operator has are taken and mean nothing.

use std::{env, io::Write, path::Path, process::ExitCode};

use kube::config::{KubeConfigOptions, Kubeconfig};
use plinth_support::{Scenario, scenario, stand_in};

/// What the operator does; an image has no file for it.
const SAMPLE: &str = include_str!("../../../distributions/open-control-plane-kind/scenario.yaml");

#[tokio::main(flavor = "current_thread")]
async fn main() -> ExitCode {
    let arguments: Vec<_> = env::args().skip(1).collect();
    let failed = match arguments.iter().map(String::as_str).collect::<Vec<_>>()[..] {
        ["init", ..] => match init().await {
            Ok(()) => return ExitCode::SUCCESS,
            failed => failed,
        },
        ["run", ..] => run_in_pod().await,
        [kubeconfig, scenario] => run(kubeconfig, scenario, None).await,
        [kubeconfig, scenario, crds] => run(kubeconfig, scenario, Some(crds)).await,
        _ => Err("usage: stand-in-operator KUBECONFIG SCENARIO [CRD FOLDER]".into()),
    };
    if let Err(error) = failed {
        // Nobody reads this where standard error is closed.
        let _ = writeln!(std::io::stderr(), "stand-in-operator: {error}");
    }
    // It runs until it is killed, so every other end is a failure.
    ExitCode::FAILURE
}

/// A client by the pod's service account.
fn in_pod() -> Result<kube::Client, Box<dyn std::error::Error>> {
    plinth_support::use_ring();
    Ok(kube::Client::try_from(kube::Config::incluster()?)?)
}

async fn init() -> Result<(), Box<dyn std::error::Error>> {
    Ok(stand_in::register(in_pod()?, &Scenario::parse(SAMPLE)?).await?)
}

async fn run_in_pod() -> Result<(), Box<dyn std::error::Error>> {
    stand_in::play_operator(in_pod()?, Scenario::parse(SAMPLE)?).await;
    Ok(())
}

async fn run(kubeconfig: &str, scenario: &str, crds: Option<&str>) -> Result<(), Box<dyn std::error::Error>> {
    plinth_support::use_ring();
    let mut followed = scenario::read(Path::new(scenario))?;
    if let Some(folder) = crds {
        followed = scenario::with_registered(followed, Path::new(folder))?;
    }
    let config = Kubeconfig::read_from(kubeconfig)?;
    let config = kube::Config::from_custom_kubeconfig(config, &KubeConfigOptions::default()).await?;
    stand_in::play(kube::Client::try_from(config)?, followed).await;
    Ok(())
}
