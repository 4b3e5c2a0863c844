//! Plays the programs that do not run on a bare API server: `stand-in-operator KUBECONFIG SCENARIO [CRD FOLDER]`.

use std::{env, io::Write, path::Path, process::ExitCode};

use kube::config::{KubeConfigOptions, Kubeconfig};
use plinth_support::{scenario, stand_in};

#[tokio::main(flavor = "current_thread")]
async fn main() -> ExitCode {
    let arguments: Vec<_> = env::args().skip(1).collect();
    let failed = match arguments.iter().map(String::as_str).collect::<Vec<_>>()[..] {
        [kubeconfig, scenario] => run(kubeconfig, scenario, None).await,
        [kubeconfig, scenario, crds] => run(kubeconfig, scenario, Some(crds)).await,
        _ => Err("usage: stand-in-operator KUBECONFIG SCENARIO [CRD FOLDER]".into()),
    };
    if let Err(error) = failed {
        // Nobody reads this where standard error is closed.
        let _ = writeln!(std::io::stderr(), "stand-in-operator: {error}");
    }
    // It runs until it is killed, so every end is a failure.
    ExitCode::FAILURE
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
