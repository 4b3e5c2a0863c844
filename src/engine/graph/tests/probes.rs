//! Our own small inputs, and what kro said to each (reference/kro.md section 22).

use std::collections::BTreeMap;

use serde_json::{Value, json};

use super::corpus::{agrees, served, show};
use crate::{
    graph::{Compiled, Definition, Options, compile},
    schema::{SchemaMap, crd},
    testing::data,
    yaml,
};

const EXCEPTIONS: &[(&str, &str)] = &[
    ("e14", "kro cannot write Secret data; here bytes are encoded and text is taken as encoded already (kro#844)"),
    ("s07", "a default that is not JSON: kro finds out when it writes the CRD"),
    ("s29", "the recording took the plain scalar `y` for text; kubectl and ours take it for true"),
    ("r22", "kro rejects a kind that is not served; here the node is deferred (kro#1293)"),
];

/// The kinds that inputs ask for by name; kro.md section 22 says what they were like.
const KINDS: &[(&str, &str)] = &[
    ("LOOSE_CRD", "Loose spec: {type: object, properties: {config: {type: object, x-kubernetes-preserve-unknown-fields: true}}}"),
    ("LATE_CRD", "Late spec: {type: object, properties: {n: {type: string}}}"),
];

/// A CRD of the probes' own group.
pub(crate) fn crd_of(line: &str) -> plinth_api::Object {
    let (kind, properties) = line.split_once(' ').unwrap();
    let plural = crate::naming::plural(&kind.to_lowercase());
    let text = format!(
        "apiVersion: apiextensions.k8s.io/v1\nkind: CustomResourceDefinition\nmetadata: {{name: {plural}.probe.example.com}}\nspec:\n  group: probe.example.com\n  scope: Namespaced\n  names: {{kind: {kind}, plural: {plural}}}\n  versions:\n  - name: v1\n    served: true\n    storage: true\n    schema:\n      openAPIV3Schema:\n        type: object\n        properties:\n          {properties}\n"
    );
    plinth_api::Object::from_value(yaml::documents(&text).unwrap().remove(0).value).unwrap()
}

/// What was served when an input was recorded.
fn served_for(text: &str) -> SchemaMap {
    let mut served = served();
    let asked = text.lines().find_map(|line| line.strip_prefix("# pre: ")).unwrap_or_default();
    for (_, line) in KINDS.iter().filter(|(name, _)| asked.split_whitespace().any(|word| word == *name)) {
        served.extend(crd::kinds(&crd_of(line)).unwrap());
    }
    served
}

/// The first verdict on each definition of a recording, in the corpus' form.
fn verdicts(recording: &Value) -> BTreeMap<String, Value> {
    let mut verdicts = BTreeMap::new();
    for event in recording["events"].as_array().into_iter().flatten().filter(|event| event["rgd"].is_string()) {
        let accepted =
            event["conditions"].as_array().and_then(|list| list.iter().find(|condition| condition["type"] == "GraphAccepted"));
        let Some(accepted) = accepted else { continue };
        let verdict = if accepted["status"] == "True" { "accepted" } else { "rejected" };
        let name = event["rgd"].as_str().unwrap().to_owned();
        verdicts.entry(name).or_insert(json!({"verdict": verdict, "message": accepted["message"]}));
    }
    verdicts
}

/// Compiles every definition of an input; what one defines is served to the next.
fn compile_all(text: &str, served: &mut SchemaMap) -> BTreeMap<String, Compiled> {
    let mut all = BTreeMap::new();
    for document in yaml::documents_with_duplicates(text).unwrap_or_default() {
        if document.value["kind"] != "ResourceGraphDefinition" {
            continue;
        }
        let name = document.value["metadata"]["name"].as_str().unwrap_or_default().to_owned();
        let compiled = match Definition::from_document(&document, text) {
            Ok(definition) => compile(&definition, served, &Options::default()),
            Err(findings) => Compiled::Invalid(findings),
        };
        if let Some(graph) = compiled.graph() {
            served.extend(crd::kinds(&graph.crd).unwrap());
        }
        all.entry(name).or_insert(compiled);
    }
    all
}

#[test]
fn show_03_probes() {
    let Ok(folder) = std::fs::read_dir(data("kro/probes/out")) else {
        return println!("SHOW 03 probes 0/0 (no corpus at PLINTH_DATA)");
    };
    let mut files: Vec<_> = folder.map(|file| file.unwrap().path()).collect();
    files.sort();
    let (mut total, mut wrong) = (0, BTreeMap::new());
    for file in &files {
        let recording: Value = serde_json::from_str(&std::fs::read_to_string(file).unwrap()).unwrap();
        let Ok(text) =
            std::fs::read_to_string(data(&format!("kro/probes/inputs/{}.yaml", file.file_stem().unwrap().to_str().unwrap())))
        else {
            continue;
        };
        let ours = compile_all(&text, &mut served_for(&text));
        for (name, verdict) in verdicts(&recording) {
            let Some(compiled) = ours.get(&name) else { continue };
            total += 1;
            if let Err(what) = agrees(&verdict, compiled) {
                wrong.insert(name, format!("kro {verdict}\n    ours {what}"));
            }
        }
    }
    show("probes", total, &wrong, EXCEPTIONS);
}
