//! An API server that is frozen for a while: time is lost, and nothing else.

use std::{
    process::Command,
    time::{Duration, Instant},
};

use plinth_run::EventKind;

use crate::{
    distribution::Distribution,
    plinth::{Run, events},
    world::World,
};

/// Longer than the Lease can go without a renewal, and than its others have to wait for a dead holder.
const FROZEN: Duration = Duration::from_secs(17);

#[tokio::test(flavor = "multi_thread")]
async fn frozen_server_costs_up_time_and_not_its_lease() {
    let distribution = Distribution::sample();
    let world = World::start(&distribution).await;
    let mut run = world.start_up(&distribution.source(), &[]);
    while run.is_running() && !run.stdout().contains("changeApplied") && !run.stdout().contains("ChangeApplied") {
        tokio::time::sleep(Duration::from_millis(10)).await;
    }
    world.server.freeze();
    tokio::time::sleep(FROZEN).await;
    world.server.thaw();
    let run = run.finish().await.with_code(0);
    let waits = |what: &str| {
        let numbers = run.events().into_iter().filter_map(|kind| match kind {
            EventKind::Retry { what: tried, attempt, .. } if tried.starts_with(what) => Some(attempt),
            _ => None,
        });
        numbers.collect::<Vec<_>>()
    };
    assert!(waits("renew the Lease").starts_with(&[1, 2]), "{}", run.stdout);
}

/// Whoever waits sees how often it was tried, and when it is tried next.
#[tokio::test(flavor = "multi_thread")]
async fn frozen_waits_of_every_verb_are_counted() {
    let source = Distribution::sample();
    let source = source.source();
    let folder = tempfile::tempdir().unwrap();
    let kubeconfig = folder.path().join("kubeconfig").display().to_string();
    let text = "{apiVersion: v1, kind: Config, current-context: c, contexts: [{name: c, context: {cluster: c, user: u}}],\n\
         users: [{name: u, user: {}}], clusters: [{name: c, cluster: {server: 'http://127.0.0.1:1'}}]}";
    std::fs::write(&kubeconfig, text).unwrap();
    for arguments in [&["plan", &source][..], &["plan", &source, "-o", "json"], &["down", "--apply"], &["status", "--wait"]] {
        let more = ["--kubeconfig", &kubeconfig, "--timeout", "5s"];
        let run = Run::start(&[arguments, &more].concat()).finish().await.with_code(3);
        let told = format!("{}{}", run.stdout, run.stderr);
        for attempt in ["attempt 1, next in ", "attempt 2, next in ", "attempt 3, next in "] {
            assert!(told.contains(attempt), "{arguments:?} says:\n{told}");
        }
    }
    let down = ["down", "--apply", "-o", "json", "--kubeconfig", &kubeconfig, "--timeout", "5s"];
    let run = Run::start(&down).finish().await.with_code(3);
    let is_retry = |kind: &EventKind| matches!(kind, EventKind::Retry { attempt: 2, .. });
    assert!(events(run.stdout.as_bytes()).iter().any(is_retry), "{}", run.stdout);
}

/// A pipe as values may never give a byte; whoever waits for it is asked to end all the same. As a SOURCE it is refused.
#[tokio::test(flavor = "multi_thread")]
async fn frozen_pipes_as_files_end_with_a_signal_and_are_read_when_they_give() {
    let source = Distribution::sample();
    let source = source.source();
    let folder = tempfile::tempdir().unwrap();
    let at = |name: &str| folder.path().join(name).display().to_string();
    let (kubeconfig, pipe) = (at("kubeconfig"), at("pipe"));
    let text = "{apiVersion: v1, kind: Config, current-context: c, contexts: [{name: c, context: {cluster: c, user: u}}],\n\
         users: [{name: u, user: {}}], clusters: [{name: c, cluster: {server: 'http://127.0.0.1:1'}}]}";
    std::fs::write(&kubeconfig, text).unwrap();
    assert!(Command::new("mkfifo").arg(&pipe).status().unwrap().success());
    // An archive is read more than once, which a pipe cannot give.
    let refused = Run::start(&["plan", &pipe, "--kubeconfig", &kubeconfig]).finish().await.with_code(4);
    assert!(refused.stderr.contains(&pipe) && refused.stderr.contains("no regular file"), "{}", refused.stderr);
    for arguments in [&["plan", &source, "--values", &pipe][..], &["up", &source, "--apply", "--values", &pipe]] {
        for signal in ["-INT", "-TERM"] {
            let run = Run::start(&[arguments, &["--kubeconfig", &kubeconfig, "--timeout", "60s"]].concat());
            tokio::time::sleep(Duration::from_secs(1)).await;
            let asked = Instant::now();
            run.signal(signal);
            run.finish().await.with_code(130);
            assert!(asked.elapsed() < Duration::from_secs(3), "{arguments:?} {signal} took {:?}", asked.elapsed());
        }
    }
    let giver = std::thread::spawn({
        let pipe = pipe.clone();
        move || std::fs::write(pipe, "nonsense: true\n").unwrap()
    });
    let more = ["--values", &pipe, "--kubeconfig", &kubeconfig, "--timeout", "3s"];
    let run = Run::start(&[&["plan", &source][..], &more].concat()).finish().await.with_code(3);
    giver.join().unwrap();
    assert!(run.stderr.contains("127.0.0.1:1"), "{}", run.stderr);
}
