use plinth_run::{Outcome, RunState};

use super::*;
use crate::{memory::Fault, testing::Bench};

#[tokio::test(start_paused = true)]
async fn a_cluster_that_is_not_there_is_asked_again_visibly_and_then_the_run_can_be_resumed() {
    let bench = Bench::new();
    bench.cluster.fault(Some(Fault::Down(usize::MAX)));
    assert_eq!(bench.up().await, Outcome::Deadline);
    let retries = bench.count(
        |kind| matches!(kind, EventKind::Retry { what, next_in_ms, .. } if what == "reach the cluster" && *next_in_ms > 0),
    );
    // 1 + 2 + 4 + 8 + 15 + 15 + … = 600 seconds.
    assert_eq!(retries, 43);
    assert_eq!(bench.state().elapsed().as_secs(), 600);
    assert!(bench.message().contains("did not answer within 10m00s: connection refused"), "{}", bench.message());
    assert!(bench.cluster.writes().is_empty());
}

#[tokio::test(start_paused = true)]
async fn a_cluster_that_comes_back_costs_time_only() {
    let bench = Bench::new();
    bench.cluster.fault(Some(Fault::Down(3)));
    assert_eq!(bench.up().await, Outcome::Done);
    assert_eq!(bench.count(|kind| matches!(kind, EventKind::Retry { .. })), 3);
    assert!(bench.state().retries.is_empty());
}

#[tokio::test(start_paused = true)]
async fn another_cluster_than_the_journals_is_refused() {
    let bench = Bench::new();
    assert_eq!(bench.up().await, Outcome::Done);
    let before = bench.cluster.writes().len();
    bench.cluster.become_other("cluster-2");
    assert_eq!(bench.up().await, Outcome::Refused);
    assert_eq!(bench.cluster.writes().len(), before);
    assert!(bench.message().contains("this is cluster cluster-2, but the journal was made for cluster cluster-1"));
}

#[tokio::test(start_paused = true)]
async fn missing_permissions_are_all_named_and_nothing_is_written() {
    let bench = Bench::new();
    for denied in ["create deployments.apps in namespace default", "patch resourcegraphdefinitions.kro.run"] {
        bench.cluster.deny(denied);
    }
    assert_eq!(bench.up().await, Outcome::Refused);
    let message = bench.message();
    let lines: Vec<&str> = message.lines().collect();
    assert_eq!(
        lines,
        [
            "the identity lacks 2 permissions:",
            "  create deployments.apps in namespace default",
            "  patch resourcegraphdefinitions.kro.run"
        ]
    );
    let said = bench.state().checks.into_iter().find(|check| check.id == PERMISSIONS.into()).unwrap();
    assert_eq!(said.message, "the identity lacks 2 permissions");
    assert!(bench.cluster.writes().is_empty());
    let failed: Vec<String> = failed_checks(&bench.state());
    assert_eq!(failed, [PERMISSIONS]);
}

fn failed_checks(state: &RunState) -> Vec<String> {
    let failed = state.checks.iter().filter(|check| check.verdict == CheckVerdict::Failed);
    failed.map(|check| check.id.to_string()).collect()
}
