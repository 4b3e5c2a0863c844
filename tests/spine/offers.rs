//! What shells are offered by the real binary, asked as the scripts of `plinth completion` ask.

use std::path::Path;

use tempfile::TempDir;

use crate::{distribution::Distribution, looks::silent_server, plinth::Run, world::World};

/// Shells, and how each says which word is asked for: the last one, or by its number.
const SHELLS: [(&str, bool); 5] = [("bash", true), ("elvish", true), ("fish", false), ("powershell", false), ("zsh", true)];

async fn offered(shell: &str, by_number: bool, words: &[&str]) -> String {
    let words = [&["--", "plinth"], words].concat();
    let number = (words.len() - 2).to_string();
    let mut environment = vec![("COMPLETE", Path::new(shell)), ("_CLAP_IFS", Path::new("\n"))];
    if by_number {
        environment.push(("_CLAP_COMPLETE_INDEX", Path::new(&number)));
    }
    Run::start_with(&words, &environment).finish().await.with_code(0).stdout
}

#[tokio::test(flavor = "multi_thread")]
async fn show_06_completion() {
    let folder = TempDir::with_prefix("plinth-offers-").unwrap();
    let (_listener, silent) = silent_server(folder.path());
    for (shell, by_number) in SHELLS {
        let contexts = offered(shell, by_number, &["--kubeconfig", &silent, "--context", ""]).await;
        assert!(contexts.lines().any(|line| line.starts_with("silent")), "{shell} is offered {contexts:?}");
        let verbs = offered(shell, by_number, &["re"]).await;
        assert!(
            verbs.contains("rehearse") && verbs.contains("replay") && !verbs.contains("status"),
            "{shell} is offered {verbs:?}"
        );
    }
    let nothing = offered("fish", false, &["--kubeconfig", &silent, "why", ""]).await;
    assert!(nothing.lines().all(|line| line.starts_with("--")), "a server that does not answer offers no objects: {nothing}");

    let distribution = Distribution::sample();
    let world = World::start(&distribution).await;
    world.up(&distribution.source(), &[]).await.with_code(0);
    let subjects = offered("fish", false, &["--kubeconfig", &world.kubeconfig(), "why", "Deploy"]).await;
    assert!(subjects.contains("Deployment/openmcp-operator"), "{subjects}");
    let platforms = offered("fish", false, &["--kubeconfig", &world.kubeconfig(), "status", "--platform", ""]).await;
    assert!(platforms.lines().any(|line| line.trim() == "default"), "{platforms}");
    eprintln!("SHOW 06 completion 5 shells: verbs, contexts, and objects of a platform on a real API server");
}
