//! With a mirror nothing but the mirror is asked (contracts 29).

use plinth_run::Outcome;
use plinth_support::Registry;

use crate::{
    distribution::PLATFORM,
    mirror::{Parcel, assert_mirrored, place},
    namespace::Namespace,
    plinth::plinth,
    world::World,
};

/// The archive, for the test inside.
const ARCHIVE: &str = "PLINTH_TEST_ARCHIVE";
/// The distribution's folder, for its scenario.
const DISTRIBUTION: &str = "PLINTH_TEST_DISTRIBUTION";

/// The archive is made outside, where its images are; the mirror and the cluster are inside, where nothing else can be reached.
#[tokio::test(flavor = "multi_thread")]
async fn show_04_no_egress() {
    let namespace = match Namespace::make() {
        Ok(namespace) => namespace,
        Err(reason) => return eprintln!("not run: 1 test of egress, this machine gives no network namespace ({reason})"),
    };
    let parcel = Parcel::pack().await;
    let variables = [(ARCHIVE, parcel.archive.as_str()), (DISTRIBUTION, &parcel.distribution.source())];
    assert!(namespace.run_test("egress::inside_of_the_namespace", &variables));
    let mut seen = namespace.refused();
    assert_eq!(seen, 0, "something but the mirror was asked");
    // The same counter sees one stray request of the same program, by name and by address.
    for stray in ["registry.example.org", "192.0.2.10"] {
        assert!(namespace.run_test("egress::stray_inside_of_the_namespace", &[("PLINTH_TEST_STRAY", stray)]));
        let before = std::mem::replace(&mut seen, namespace.refused());
        assert!(seen > before, "a stray request to {stray} was not seen");
    }
    eprintln!("SHOW 04 no-egress 0 packets refused; {seen} with two stray requests");
}

#[tokio::test(flavor = "multi_thread")]
#[ignore = "runs inside of the network namespace of show_04_no_egress"]
async fn inside_of_the_namespace() {
    let archive = std::env::var(ARCHIVE).expect("show_04_no_egress sets it");
    let folder = std::env::var(DISTRIBUTION).expect("show_04_no_egress sets it");
    let parcel = Parcel::at(&archive, &folder);
    let mirror = Registry::start().unwrap();
    parcel.push(&mirror).await;
    // In the embedded control plane first: nothing but the archive and the mirror is needed for it.
    let rehearsed = plinth(&["rehearse", &archive, "--mirror", &place(&mirror)]).await.with_code(0);
    assert!(rehearsed.stdout.contains("nothing is missing"), "{}", rehearsed.stdout);
    let world = World::start(&parcel.distribution).await;
    let source = format!("ghcr.io/openmcp-project//{PLATFORM}:v0.0.4");
    for source in [archive.as_str(), &source] {
        let run = world.up(source, &["--mirror", &place(&mirror), "--controller", "none"]).await.with_code(0);
        assert_eq!(run.outcome(), Outcome::Done);
    }
    assert_mirrored(&world, &mirror).await;
}

#[tokio::test]
#[ignore = "runs inside of the network namespace of show_04_no_egress"]
async fn stray_inside_of_the_namespace() {
    let host = std::env::var("PLINTH_TEST_STRAY").expect("show_04_no_egress sets it");
    plinth(&["channel", "lock", &format!("{host}/x//{PLATFORM}:v0.0.4")]).await.with_code(3);
}
