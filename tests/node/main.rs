//! A real node: the controller, and what plays the operator, as pods that a kubelet runs from images that it pulls.
//!
//! `./dev node` starts it. The node lives in namespaces of its own (network, mounts, processes), so that nothing of it outlives the test
//! and nothing outside is reached: every packet to somewhere else is refused and counted.

#![expect(clippy::unwrap_used, clippy::print_stderr, reason = "test code: a panic is a failed test, and figures are printed")]

mod account;
mod cluster;
mod containers;
mod images;
mod life;
mod machine;
mod pods;

#[expect(dead_code, reason = "the spine uses more of it")]
#[path = "../spine/distribution.rs"]
mod distribution;
#[expect(dead_code, reason = "the spine uses more of it")]
#[path = "../spine/plinth.rs"]
mod plinth;
#[expect(dead_code, reason = "the spine uses more of it")]
#[path = "../spine/watch.rs"]
mod watch;

use std::time::Instant;

use crate::{cluster::Node, images::Images, life::Life, machine::Machine};

/// Everything on one node: from a registry, and over an air gap.
#[test]
#[ignore = "./dev node starts it"]
fn show_05_node() {
    let machine = match Machine::make() {
        Ok(machine) => machine,
        Err(reason) => return eprintln!("not run: 1 test on a real node, this machine cannot have one: {reason}"),
    };
    let began = Instant::now();
    assert!(machine.run_test("inside_of_the_machine"), "see above; what the programs said is told there");
    eprintln!("SHOW 05 node {} s in all", began.elapsed().as_secs());
}

#[tokio::test(flavor = "multi_thread")]
#[ignore = "runs inside of the machine of show_05_node"]
async fn inside_of_the_machine() {
    let began = Instant::now();
    let node = tokio::task::spawn_blocking(Node::start).await.unwrap().unwrap();
    eprintln!("SHOW 05 node Ready after {} ms", began.elapsed().as_millis());
    let images = Images::make();
    let told = node.tells_when_it_fails();
    life::send(&node, &images.pause, "images", &["bundle", "create"]).await;
    let life = Life::from_the_registry(&node, &images).await;
    life.next_and_back(&images).await;
    life.leader_dies().await;
    life.child_is_deleted().await;
    life.account_is_confined().await;
    life.down().await;
    node.forget_images();
    let life = Life::over_the_gap(&node, &images).await;
    life.child_is_deleted().await;
    life.account_is_confined().await;
    life.down().await;
    told.not_needed();
    assert_eq!(machine::refused(), 0, "something but the registry was asked");
    // The same counter sees one stray request of the same program.
    plinth::plinth(&["channel", "lock", "192.0.2.10/x//acme.example/platform:v1.0.0"]).await.with_code(3);
    let stray = machine::refused();
    assert!(stray > 0, "a stray request was not seen");
    eprintln!("SHOW 05 node 0 packets refused of all that ran on it; {stray} with a stray request");
}
