//! How many requests a channel costs, and that very large ones end soon.

use std::time::Instant;

use serde_json::json;

use super::*;
use crate::repository::ComponentVersion;
use crate::resolve::inspect;
use crate::testing::add;

/// An umbrella over components, each referred to once.
fn umbrella(references: usize, stored: usize) -> Contents {
    let mut contents = Contents { place: "budget".to_owned(), ..Contents::default() };
    let child = |n: usize| format!("acme.example/bench/child-{n}");
    let reference = |n: usize| json!({"name": format!("child-{n}"), "componentName": child(n), "version": "1.0.0"});
    let references: Vec<_> = (0..references).map(reference).collect();
    add(&mut contents, "acme.example/bench/channel", "1.0.0", json!({"componentReferences": references}));
    (0..stored).for_each(|n| add(&mut contents, &child(n), "1.0.0", json!({})));
    contents
}

fn source(stub: &Stub, component: &str) -> SourceRef {
    SourceRef::parse(&format!("{}//{component}", stub.host)).unwrap()
}

/// Two requests a component version: the manifest and the descriptor. Never one twice.
#[tokio::test]
async fn show_04_budget() {
    for references in [10, 50, 500] {
        let stub = Stub::start(serving(umbrella(references, references))).await;
        let started = Instant::now();
        let found =
            inspect(&source(&stub, "acme.example/bench/channel:1.0.0"), &Selection::default(), &plain(&stub.host)).await.unwrap();
        let requests = stub.seen().len();
        assert_eq!(found.lock.components.len(), references + 1);
        assert_eq!(requests, 2 * (references + 1), "two a component version");
        eprintln!("SHOW 04 budget {references} references: {requests} requests, {:?}", started.elapsed());
    }
}

/// Connections of one run remember together: what was resolved is not asked for again by who looks at one component of it.
#[tokio::test]
async fn a_run_asks_once_whoever_asks() {
    let stub = Stub::start(serving(umbrella(3, 3))).await;
    let options = Options { run: Some(crate::RunMemory::new(None).0), ..plain(&stub.host) };
    let found = inspect(&source(&stub, "acme.example/bench/channel:1.0.0"), &Selection::default(), &options).await.unwrap();
    let once = stub.seen().len();
    for _ in 0..3 {
        let again = crate::resolve::repository_from_spec(&found.lock.repositories[0], &options).unwrap();
        for at in found.reachable(&found.root) {
            again.descriptor(&at).await.unwrap();
        }
    }
    assert_eq!((once, stub.seen().len()), (8, 8));
}

/// 10 000 tags in pages of 1000, foreign ones among them: one request a page, and two for the one that was chosen.
#[tokio::test]
async fn show_04_tags() {
    const TAGS: usize = 10_000;
    let mut contents = Contents::default();
    add(&mut contents, "acme.example/many", "1.9998.0", json!({}));
    let others = serving(contents);
    let stub = Stub::start(move |seen, count| {
        let Some((_, query)) = seen.path.split_once("/tags/list?") else { return others(seen, count) };
        let of = |key: &str| query.split('&').find_map(|pair| pair.strip_prefix(key)).and_then(|text| text.parse::<usize>().ok());
        let (from, size) = (of("last=").unwrap_or_default(), of("n=").unwrap_or(1000));
        let to = (from + size).min(TAGS);
        let name = |n: usize| if n % 2 == 1 { format!("\"sha256-{n:064x}.sig\"") } else { format!("\"1.{n}.0\"") };
        let body = format!(r#"{{"tags": [{}]}}"#, (from..to).map(name).collect::<Vec<_>>().join(","));
        let link = format!("</v2/component-descriptors/acme.example/many/tags/list?n={size}&last={to}>; rel=\"next\"");
        let headers: &[(&str, &str)] = if to < TAGS { &[("link", &link)] } else { &[] };
        http("200 OK", headers, body.as_bytes())
    })
    .await;
    let started = Instant::now();
    let found = inspect(&source(&stub, "acme.example/many:^1"), &Selection::default(), &plain(&stub.host)).await.unwrap();
    assert_eq!(found.root, ComponentVersion::new("acme.example/many", "1.9998.0"));
    assert_eq!(stub.seen().len(), TAGS / 1000 + 2);
    eprintln!("SHOW 04 tags {TAGS} tags in {} requests, {:?}", stub.seen().len(), started.elapsed());
}

/// Refused by their number, before the first of them is asked for.
#[tokio::test]
async fn a_hundred_thousand_references_are_refused() {
    let stub = Stub::start(serving(umbrella(100_000, 0))).await;
    let found = inspect(&source(&stub, "acme.example/bench/channel:1.0.0"), &Selection::default(), &plain(&stub.host)).await;
    let error = found.unwrap_err();
    assert!(matches!(&error, ResolveError::Limit { what, .. } if what.contains("references")), "{error}");
    assert_eq!(error.kind(), ErrorKind::Refused);
    assert_eq!(stub.seen().len(), 2);
}

/// With nested artifacts a component version is an index, a manifest and a descriptor: three requests as the newer tool writes them, for
/// each is named by the one before; two as plinth writes them, where the manifest stands in the index.
#[tokio::test]
async fn show_04_nested_budget() {
    let theirs = corpus("v2-byval");
    let nested = |contents: &Contents| {
        let is_index = |entry: &&crate::ctf::IndexEntry| entry.tag.is_some() && entry.media_type.contains("index");
        let of_components = contents.artifacts.iter().filter(|entry| entry.repository.starts_with("component-descriptors/"));
        of_components.filter(is_index).count()
    };
    let channel = format!("ctf::{}//{CHANNEL}", data().join("ocm/ctf/v2-byval").display());
    let channel = inspect(&SourceRef::parse(&channel).unwrap(), &Selection::default(), &offline()).await.unwrap();
    let folder = tempfile::tempdir().unwrap();
    let ours = crate::bundle::create(&channel, folder.path(), &crate::bundle::Kept::default()).await.unwrap().contents;
    let mut counts = Vec::new();
    for contents in [theirs, ours] {
        let nested = nested(&contents);
        let stub = Stub::start(serving(contents)).await;
        let found = inspect(&source(&stub, CHANNEL), &Selection::default(), &plain(&stub.host)).await.unwrap();
        counts.push((stub.seen().len(), found.lock.components.len(), nested));
    }
    let [(theirs, components, nested), (ours, _, ours_nested)] = counts[..] else { panic!() };
    eprintln!(
        "SHOW 04 nested-budget {components} component versions, {nested} with nested artifacts: {theirs} requests as the newer tool wrote them, {ours} as plinth did"
    );
    assert!(nested >= 4 && ours_nested >= nested);
    assert_eq!((theirs, ours), (2 * components + nested, 2 * components));
}
