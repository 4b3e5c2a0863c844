//! Every row of the catalogue: an object that is in that state, the explanation of it, and the page that holds both.

use std::{fmt::Write, fs, path::PathBuf};

use jiff::Timestamp;
use plinth_api::Object;

use super::{Advice, CATALOGUE, advice};
use crate::health::{Verdict, judge_at, judge_instance};

fn folder(path: &str) -> PathBuf {
    PathBuf::from(env!("CARGO_MANIFEST_DIR")).join(path)
}

fn judged(row: &Advice) -> (Object, Verdict) {
    let text = fs::read_to_string(folder("health/fixtures").join(format!("{}.yaml", row.id))).unwrap();
    let object: Object = serde_saphyr::from_str(&text).unwrap();
    let now: Timestamp = "2026-01-01T00:09:00Z".parse().unwrap();
    let verdict = if row.id == "W008" { judge_instance(&object, now) } else { judge_at(&object, now) };
    (object, verdict)
}

/// The explanation of one object, as `plinth why` words it.
fn explanation(object: &Object, verdict: &Verdict, row: &Advice) -> String {
    let kind = object.gvk().unwrap().kind;
    format!("{kind}/{} is {:?}  {}: {}\nnext: {}\n", object.name(), verdict.health, verdict.reason, verdict.message, row.next)
}

fn page(row: &Advice) -> String {
    let (object, verdict) = judged(row);
    format!(
        "# {}: {}\n\n{}\n\n## Next\n\n{}{}.\n\n## An example\n\n```\n{}```\n",
        row.id,
        row.title,
        row.means,
        row.next[..1].to_uppercase(),
        &row.next[1..],
        explanation(&object, &verdict, row)
    )
}

fn index() -> String {
    let mut text = "# Why something is not ready\n\nMade from the catalogue in `src/engine/health`; a test holds every page.\n\n| | what is seen | reasons |\n| --- | --- | --- |\n"
        .to_owned();
    for row in CATALOGUE {
        let _ = writeln!(text, "| [{}]({}.md) | {} | {} |", row.id, row.id, row.title, row.reasons.join(", "));
    }
    text
}

/// `UPDATE_DOCS=1` writes the pages.
fn held(name: &str, made: &str) {
    let path = folder("../../docs/why").join(name);
    if std::env::var_os("UPDATE_DOCS").is_some() {
        fs::create_dir_all(path.parent().unwrap()).unwrap();
        fs::write(&path, made).unwrap();
    }
    let there = fs::read_to_string(&path).unwrap_or_default();
    assert!(there == made, "docs/why/{name} is stale; UPDATE_DOCS=1 cargo test -p plinth-engine advice writes it");
}

#[test]
fn show_06_why() {
    for row in CATALOGUE {
        let (object, verdict) = judged(row);
        let found = advice(&object.gvk().unwrap(), &verdict).map(|row| row.id);
        assert_eq!(found, Some(row.id), "{verdict:?}");
        held(&format!("{}.md", row.id), &page(row));
    }
    held("README.md", &index());
    println!("SHOW 06 why {}", CATALOGUE.len());
}

#[test]
fn what_is_well_needs_no_advice() {
    let well = [
        "{apiVersion: apis.kcp.io/v1alpha2, kind: APIBinding, metadata: {name: b}, spec: {permissionClaims: [{group: '', resource: configmaps, state: Accepted}]}, status: {exportPermissionClaims: [{group: '', resource: configmaps}], appliedPermissionClaims: [{group: '', resource: configmaps}], conditions: [{type: Ready, status: 'True'}]}}",
        "{apiVersion: apis.kcp.io/v1alpha1, kind: APIExportEndpointSlice, metadata: {name: s}, status: {endpoints: [{url: 'https://a'}]}}",
        "{apiVersion: v1, kind: ConfigMap, metadata: {name: l, labels: {krop.opendefense.cloud/liveness: 'true'}}, data: {lastReconciled: '2026-01-01T00:08:00Z'}}",
        "{apiVersion: apps/v1, kind: Deployment, metadata: {name: d}, spec: {replicas: 2, template: {spec: {containers: [{image: krop-controller, args: [--leader-elect]}]}}}, status: {replicas: 2, updatedReplicas: 2, availableReplicas: 2}}",
    ];
    let now: Timestamp = "2026-01-01T00:09:00Z".parse().unwrap();
    for text in well {
        let object: Object = serde_saphyr::from_str(text).unwrap();
        let verdict = judge_at(&object, now);
        assert_eq!(advice(&object.gvk().unwrap(), &verdict), None, "{verdict:?}");
    }
}
