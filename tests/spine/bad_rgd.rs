//! Graphs that are refused before anything is written, with their place.

use crate::{bad_channel::refused, distribution::Distribution};

const FILE: &str = "rgds/openmcp-operator.yaml";
const COMPONENT: &str = "openmcp-operator-rgd";

/// Replaces text in the operator's graph; the message names the component, each of `parts`, and the line (with the column,
/// where given as an offset into `to`).
async fn check(from: &str, to: &str, column_in: Option<&str>, parts: &[&str]) {
    let distribution = Distribution::sample();
    let (line, column) = distribution.edit(FILE, from, to);
    let run = refused(&distribution.source(), &[&[COMPONENT], parts].concat()).await;
    let offset = column_in.map(|part| to.find(part).unwrap());
    let places = match offset {
        Some(offset) => vec![format!("{line}:{}", column + offset), format!("line {line}, column {}", column + offset)],
        None => vec![format!("{line}:"), format!("line {line}")],
    };
    assert!(places.iter().any(|place| run.stderr.contains(place)), "the message lacks {places:?}:\n{}", run.stderr);
}

#[tokio::test(flavor = "multi_thread")]
async fn bad_rgd_is_not_yaml() {
    let distribution = Distribution::sample();
    distribution.edit(FILE, "kind: ResourceGraphDefinition\n", "kind: [ResourceGraphDefinition\n");
    let run = refused(&distribution.source(), &[COMPONENT]).await;
    // Where a bracket is missing is a matter of taste; that a line is named is not.
    assert!(run.stderr.contains("line") || run.stderr.split_whitespace().any(is_place), "no line:\n{}", run.stderr);
}

fn is_place(word: &str) -> bool {
    let word = word.trim_matches(|letter: char| !letter.is_ascii_digit());
    word.split_once(':').is_some_and(|(line, column)| line.parse::<u32>().is_ok() && column.parse::<u32>().is_ok())
}

#[tokio::test(flavor = "multi_thread")]
async fn bad_rgd_has_an_unknown_field() {
    check("readyWhen:", "readyWhenn:", None, &["readyWhenn"]).await;
}

#[tokio::test(flavor = "multi_thread")]
async fn bad_rgd_has_a_cel_syntax_error() {
    check(
        "config: ${schema.spec.configData}",
        "config: ${schema.spec..configData}",
        Some(".configData"),
        &["schema.spec..configData"],
    )
    .await;
}

#[tokio::test(flavor = "multi_thread")]
async fn bad_rgd_refers_to_an_unknown_id() {
    check("name: ${configmap.metadata.name}", "name: ${confimap.metadata.name}", None, &["confimap"]).await;
}

#[tokio::test(flavor = "multi_thread")]
async fn bad_rgd_has_a_cycle() {
    let distribution = Distribution::sample();
    distribution.edit(FILE, "config: ${schema.spec.configData}", "config: ${deployment.metadata.name}");
    let run = refused(&distribution.source(), &[COMPONENT, "cycle", "configmap", "deployment"]).await;
    assert!(run.stderr.contains("->") || run.stderr.contains('→'), "the cycle is not printed:\n{}", run.stderr);
}
