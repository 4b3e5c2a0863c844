//! What shells are offered by the real binary, asked as the scripts of `plinth completion` ask.

use std::{fs, path::Path};

use portable_pty::CommandBuilder;
use tempfile::TempDir;

use crate::{
    distribution::Distribution,
    looks::{JOURNAL, silent_server},
    plinth::Run,
    terminal::Screen,
    world::World,
};

/// Shells, and how each says which word is asked for: the last one, or by its number.
const SHELLS: [(&str, bool); 5] = [("bash", true), ("elvish", true), ("fish", false), ("powershell", false), ("zsh", true)];

async fn offered(shell: &str, by_number: bool, words: &[&str]) -> String {
    offered_with(shell, by_number, words, &[]).await
}

async fn offered_with(shell: &str, by_number: bool, words: &[&str], more: &[(&str, &Path)]) -> String {
    let words = [&["--", "plinth"], words].concat();
    let number = (words.len() - 2).to_string();
    let mut environment = vec![("COMPLETE", Path::new(shell)), ("_CLAP_IFS", Path::new("\n"))];
    if by_number {
        environment.push(("_CLAP_COMPLETE_INDEX", Path::new(&number)));
    }
    environment.extend_from_slice(more);
    Run::start_with(&words, &environment).finish().await.with_code(0).stdout
}

#[tokio::test(flavor = "multi_thread")]
async fn show_06_completion() {
    let folder = TempDir::with_prefix("plinth-offers-").unwrap();
    let (listener, silent) = silent_server(folder.path());
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

    // What the last run left on this machine is offered instead.
    let address = listener.local_addr().unwrap().to_string().replace(':', "_");
    fs::create_dir(folder.path().join("plinth")).unwrap();
    fs::copy(JOURNAL, folder.path().join(format!("plinth/default@{address}.jsonl"))).unwrap();
    let state = [("XDG_STATE_HOME", folder.path())];
    for (shell, by_number) in SHELLS {
        let recorded = offered_with(shell, by_number, &["--kubeconfig", &silent, "why", "Deploy"], &state).await;
        assert!(recorded.contains("Deployment/openmcp-operator"), "{shell} is offered {recorded:?}");
    }
    let other = offered_with("fish", false, &["--kubeconfig", &silent, "why", "--platform", "other", "Deploy"], &state).await;
    assert!(!other.contains("Deployment/"), "another platform has other objects: {other}");

    let distribution = Distribution::sample();
    let world = World::start(&distribution).await;
    world.up(&distribution.source(), &[]).await.with_code(0);
    let subjects = offered("fish", false, &["--kubeconfig", &world.kubeconfig(), "why", "Deploy"]).await;
    assert!(subjects.contains("Deployment/openmcp-operator"), "{subjects}");
    let platforms = offered("fish", false, &["--kubeconfig", &world.kubeconfig(), "status", "--platform", ""]).await;
    assert!(platforms.lines().any(|line| line.trim() == "default"), "{platforms}");
    eprintln!("SHOW 06 completion 5 shells: verbs, contexts, and objects of a platform on a real API server");
}

/// A shell with the completions of plinth, as a person sets it up: the command that starts it, and the line that loads them.
const INSTALLED: [(&str, &[&str], &str); 3] = [
    ("bash", &["--norc", "--noprofile", "-i"], "source <(PLINTH completion bash)"),
    ("zsh", &["-f", "-i"], "autoload -Uz compinit; compinit -u -D; source <(PLINTH completion zsh)"),
    ("fish", &["--no-config", "-i"], "PLINTH completion fish | source"),
];

/// Whether a shell is on this machine; where it is not, that is said.
fn is_here(shell: &str) -> bool {
    let here = std::process::Command::new(shell).arg("--version").output().is_ok();
    if !here {
        eprintln!("not run: there is no {shell} here (apt-get install {shell})");
    }
    here
}

/// In the shells themselves: a person presses tab, and the word is whole.
#[tokio::test(flavor = "multi_thread")]
async fn show_06_tab() {
    let folder = TempDir::with_prefix("plinth-tab-").unwrap();
    let (listener, silent) = silent_server(folder.path());
    let address = listener.local_addr().unwrap().to_string().replace(':', "_");
    fs::create_dir(folder.path().join("plinth")).unwrap();
    fs::copy(JOURNAL, folder.path().join(format!("plinth/default@{address}.jsonl"))).unwrap();
    let program = Path::new(env!("CARGO_BIN_EXE_plinth"));
    let mut shells = Vec::new();
    for (shell, arguments, load) in INSTALLED.into_iter().filter(|(shell, ..)| is_here(shell)) {
        let mut command = CommandBuilder::new(shell);
        command.args(arguments);
        command.env("TERM", "xterm-256color");
        command.env("PS1", "ready> ");
        command.env("KUBECONFIG", &silent);
        command.env("XDG_STATE_HOME", folder.path());
        let path = std::env::var("PATH").unwrap_or_default();
        command.env("PATH", format!("{}:{path}", program.parent().unwrap().display()));
        let mut screen = Screen::start(command);
        screen.press(&format!("{}; echo loaded''-it\n", load.replace("PLINTH", "plinth")));
        screen.until_shows("loaded-it").await;
        screen.press("plinth --context sil\t");
        screen.until_shows("--context silent").await;
        screen.press("\u{15}plinth why Deployment/openmcp-op\t");
        screen.until_shows("why Deployment/openmcp-operator").await;
        shells.push(shell);
    }
    eprintln!("SHOW 06 tab contexts and objects by the tab key in {}", shells.join(", "));
}
