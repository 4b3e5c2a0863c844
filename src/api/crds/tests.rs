//! Ours against the peers' own manifests (`PLINTH_DATA`): everything an API server acts on must be the same.

use std::{collections::BTreeSet, path::PathBuf};

use serde_json::Value;

use super::*;

fn data(file: &str) -> Option<Value> {
    let root = std::env::var_os("PLINTH_DATA")
        .map_or_else(|| PathBuf::from(concat!(env!("CARGO_MANIFEST_DIR"), "/../../../shared/data")), PathBuf::from);
    let text = std::fs::read_to_string(root.join(file)).ok()?;
    Some(serde_saphyr::from_str(&text).unwrap())
}

/// Flattens what the server acts on into `path = value` lines: descriptions are for people, and the order of `required`
/// and `enum` says nothing.
fn facts(value: &Value, path: &str, out: &mut BTreeSet<String>) {
    match value {
        Value::Object(map) if map.is_empty() => {
            out.insert(format!("{path} = {{}}"));
        }
        Value::Object(map) => {
            for (key, value) in map.iter().filter(|(key, value)| *key != "description" || !value.is_string()) {
                facts(value, &format!("{path}.{key}"), out);
            }
        }
        Value::Array(list) => {
            let is_set = ["required", "enum"].contains(&path.rsplit('.').next().unwrap_or_default());
            for (index, value) in list.iter().enumerate() {
                facts(value, &if is_set { format!("{path}[]") } else { format!("{path}[{index}]") }, out);
            }
        }
        scalar => {
            out.insert(format!("{path} = {scalar}"));
        }
    }
}

fn facts_of(spec: &Value) -> BTreeSet<String> {
    let mut out = BTreeSet::new();
    facts(spec, "", &mut out);
    out
}

#[test]
fn every_manifest_is_an_object_of_its_name() {
    for manifest in [KRO_RGD, KRO_REVISION, KROP_RGD, ARTIFACT, PLATFORM].into_iter().chain(DELIVERY) {
        let object = manifest.object();
        assert_eq!(object.name(), manifest.name);
        let at = |path: &[&str]| object.at(path).and_then(Value::as_str).unwrap_or_default().to_owned();
        assert_eq!(format!("{}.{}", at(&["spec", "names", "plural"]), at(&["spec", "group"])), manifest.name);
    }
    assert_eq!(platform().len(), 7);
}

#[test]
fn manifests_say_what_the_peers_say() {
    let pairs = [
        (KRO_RGD, "kro/crds/kro.run_resourcegraphdefinitions.yaml"),
        (KRO_REVISION, "kro/crds/internal.kro.run_graphrevisions.yaml"),
        (KROP_RGD, "krop/krop.opendefense.cloud_resourcegraphdefinitions.yaml"),
        (DELIVERY[0], "openmcp/ocm-crds/delivery.ocm.software_repositories.yaml"),
        (DELIVERY[1], "openmcp/ocm-crds/delivery.ocm.software_components.yaml"),
        (DELIVERY[2], "openmcp/ocm-crds/delivery.ocm.software_resources.yaml"),
        (DELIVERY[3], "openmcp/ocm-crds/delivery.ocm.software_deployers.yaml"),
    ];
    let mut compared = 0;
    for (ours, peer) in pairs {
        let Some(theirs) = data(peer) else {
            eprintln!("not compared, PLINTH_DATA has no {peer}");
            continue;
        };
        let (ours_facts, their_facts) = (facts_of(ours.object().spec()), facts_of(&theirs["spec"]));
        let only = |a: &BTreeSet<String>, b: &BTreeSet<String>| a.difference(b).cloned().collect::<Vec<_>>();
        assert!(their_facts.len() > 40, "{peer} was read as {} facts", their_facts.len());
        assert_eq!(only(&ours_facts, &their_facts), Vec::<String>::new(), "only ours: {}", ours.name);
        assert_eq!(only(&their_facts, &ours_facts), Vec::<String>::new(), "only theirs: {}", ours.name);
        compared += 1;
    }
    eprintln!("{compared} of {} manifests compared with their peers", pairs.len());
}

#[test]
fn a_changed_rule_would_be_seen() {
    let mut spec = KRO_RGD.object().spec().clone();
    let before = facts_of(&spec);
    spec["versions"][0]["schema"]["openAPIV3Schema"]["properties"]["spec"]["properties"]["schema"]["properties"]["kind"]["pattern"] =
        "^x$".into();
    assert_eq!(before.symmetric_difference(&facts_of(&spec)).count(), 2);
}
