//! Servers that take a connection and never answer, and logins where none belongs. No API server is needed for them.

use std::{
    net::TcpListener,
    path::Path,
    time::{Duration, Instant},
};

use serde_json::Value;
use tempfile::TempDir;

use crate::{
    distribution::Distribution,
    plinth::{Finished, Run, plinth},
};

/// A port on which connections are taken and nobody answers, and a kubeconfig for it.
struct Hung {
    _silent: TcpListener,
    folder: TempDir,
}

impl Hung {
    fn with_login(login: &str) -> Self {
        let silent = TcpListener::bind("127.0.0.1:0").unwrap();
        let server = format!("https://{login}{}", silent.local_addr().unwrap());
        Self { _silent: silent, folder: kubeconfig(&format!("server: '{server}'")) }
    }

    async fn run(&self, arguments: &[&str]) -> Finished {
        run(&self.folder, arguments).await
    }
}

/// A folder with a kubeconfig whose context `work` leads to this cluster.
fn kubeconfig(cluster: &str) -> TempDir {
    let folder = TempDir::with_prefix("plinth-hung-").unwrap();
    let text = format!(
        "{{apiVersion: v1, kind: Config, current-context: work, contexts: [{{name: work, context: {{cluster: c, user: u}}}}],\n\
         users: [{{name: u, user: {{}}}}], clusters: [{{name: c, cluster: {{{cluster}}}}}]}}"
    );
    std::fs::write(folder.path().join("kubeconfig"), text).unwrap();
    folder
}

/// Runs plinth with that kubeconfig; its state is in `state` beside it.
async fn run(folder: &TempDir, arguments: &[&str]) -> Finished {
    let kubeconfig = folder.path().join("kubeconfig").display().to_string();
    let arguments = [arguments, &["--kubeconfig", &kubeconfig]].concat();
    Run::start_with(&arguments, &[("XDG_STATE_HOME", &folder.path().join("state"))]).finish().await
}

/// Names and texts of all files below a folder.
fn everything(folder: &Path) -> String {
    let entries = std::fs::read_dir(folder).unwrap().map(|entry| entry.unwrap().path());
    let told = |path: std::path::PathBuf| {
        let text = if path.is_dir() { everything(&path) } else { std::fs::read_to_string(&path).unwrap() };
        format!("{}\n{text}\n", path.display())
    };
    entries.map(told).collect()
}

#[tokio::test(flavor = "multi_thread")]
async fn bad_server_that_hangs_is_waited_for_until_the_deadline() {
    let (hung, source) = (Hung::with_login(""), Distribution::sample());
    let source = source.source();
    for arguments in [
        &["status"][..],
        &["status", "--wait"],
        &["plan", &source, "-o", "json"],
        &["up", &source, "--apply"],
        &["down", "--apply"],
    ] {
        let started = Instant::now();
        let run = hung.run(&[arguments, &["--timeout", "3s"]].concat()).await.with_code(3);
        assert!(started.elapsed() < Duration::from_secs(20), "{arguments:?} took {:?}", started.elapsed());
        let told = format!("{}{}", run.stdout, run.stderr);
        assert!(told.contains("no answer within"), "{arguments:?} says:\n{told}");
        if arguments.contains(&"json") {
            let answer: Value = serde_json::from_str(&run.stdout).unwrap();
            assert_eq!(answer["error"]["exitCode"], 3, "{answer}");
        }
    }
}

#[tokio::test(flavor = "multi_thread")]
async fn bad_logins_reach_no_message_and_no_file() {
    let (hung, source) = (Hung::with_login("bob:SECRETPW@"), Distribution::sample());
    let source = source.source();
    for (arguments, names_context) in [
        (&["status", "-o", "json", "-vv"][..], true),
        (&["up", &source, "--apply", "-o", "json", "-vv"], false),
        (&["down", "--apply", "-vv"], false),
    ] {
        let run = hung.run(&[arguments, &["--timeout", "1s"]].concat()).await.with_code(3);
        let told = format!("{}{}", run.stdout, run.stderr);
        assert!(!told.contains("SECRETPW"), "{arguments:?} says:\n{told}");
        assert!(!names_context || told.contains("context work"), "{arguments:?} names no context:\n{told}");
    }
    let kept = everything(&hung.folder.path().join("state"));
    assert!(kept.contains("default@127.0.0.1_") && !kept.contains("SECRETPW"), "{kept}");

    let proxied = kubeconfig("server: 'https://127.0.0.1:1', proxy-url: 'http://u:PROXYPW@127.0.0.1:1'");
    let run = run(&proxied, &["status"]).await.with_code(4);
    assert!(run.stderr.contains("context \"work\"") && !run.stderr.contains("PROXYPW"), "{}", run.stderr);

    for source in ["u:SRCPW@h.example//acme.example/x", "https://u:SRCPW@h.example//acme.example/x", "u:SRCPW@h.example/x"] {
        let run = plinth(&["channel", "lock", source]).await.with_code(4);
        assert!(run.stderr.contains("…@h.example") && !run.stderr.contains("SRCPW"), "{}", run.stderr);
    }
}

#[tokio::test(flavor = "multi_thread")]
async fn bad_journal_in_a_folder_that_is_not_there() {
    let (hung, source) = (Hung::with_login(""), Distribution::sample());
    let journal = hung.folder.path().join("nodir/journal.jsonl").display().to_string();
    let run = hung.run(&["up", &source.source(), "--apply", "--timeout", "1s", "--journal", &journal]).await.with_code(4);
    assert!(run.stderr.contains(&journal) && run.stderr.contains("hint: "), "{}", run.stderr);
    assert!(!hung.folder.path().join("nodir").exists());
}
