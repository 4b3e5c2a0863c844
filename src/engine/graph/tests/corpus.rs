//! kro's corpus: the same definitions, the same verdicts, the same order, the same CRDs.
//!
//! What differs is listed by name in [`EXCEPTIONS`], each with its reason.

use std::{collections::BTreeMap, sync::LazyLock};

use serde_json::Value;

use crate::{
    Diagnostic,
    graph::{Compiled, Definition, Options, compile},
    schema::{SchemaMap, crd},
    testing::{core, data, json_lines, kinds_of},
    yaml,
};

/// Definitions that we judge differently on purpose: the end of the path, and why.
const EXCEPTIONS: &[(&str, &str)] = &[];

/// Definitions that say more than kro's verdict does: the end of the path, and what.
const MORE: &[(&str, &str)] =
    &[("ack-eks-cluster/eks-reused.yaml", "besides the kind that is not served: a misspelt `spc`, which no kind will mend")];

/// What the API server of the corpus served: Kubernetes, kro's own kinds, and the CRDs of kro's tests.
pub(crate) fn served() -> SchemaMap {
    let mut served = core();
    let mut folders = vec![data("kro/cases/test/integration/crds"), data("kro/crds")];
    served.extend(kinds_of(&data("kro/cases/test/e2e/chainsaw/check-unknown-fields/allow-unknown-crd.yaml")));
    while let Some(folder) = folders.pop() {
        for entry in std::fs::read_dir(folder).unwrap() {
            let path = entry.unwrap().path();
            if path.is_dir() { folders.push(path) } else { served.extend(kinds_of(&path)) }
        }
    }
    served
}

fn read(path: &str) -> Result<Definition, Vec<Diagnostic>> {
    let text = std::fs::read_to_string(data(&format!("kro/{path}"))).unwrap();
    let documents = yaml::documents_with_duplicates(&text).map_err(|error| vec![error])?;
    let document = documents.iter().find(|document| document.value["kind"] == "ResourceGraphDefinition");
    Definition::from_document(document.or(documents.first()).unwrap(), &text)
}

struct Corpus {
    served: SchemaMap,
    verdicts: Vec<Value>,
}

/// Everything is compiled once for all tests.
pub(crate) static COMPILED: LazyLock<Vec<(Value, Compiled)>> = LazyLock::new(|| {
    let corpus = Corpus { served: served(), verdicts: json_lines("kro/verdicts.jsonl") };
    corpus.verdicts.iter().map(|verdict| (verdict.clone(), corpus.compile(verdict))).collect()
});

impl Corpus {
    fn compile(&self, verdict: &Value) -> Compiled {
        match read(verdict["path"].as_str().unwrap()) {
            Ok(definition) => compile(&definition, &self.with_providers(verdict), &Options::default()),
            Err(findings) => Compiled::Invalid(findings),
        }
    }

    /// The kinds of definitions that were applied before.
    fn with_providers(&self, verdict: &Value) -> SchemaMap {
        let mut served = self.served.clone();
        for provider in verdict["providers"].as_array().into_iter().flatten() {
            let found = self
                .verdicts
                .iter()
                .find(|other| other["verdict"] == "accepted" && (other["crd"] == *provider || other["name"] == *provider));
            if let Some(graph) = found.and_then(|found| self.compile(found).graph().cloned()) {
                served.extend(crd::kinds(&graph.crd).unwrap());
            }
        }
        served
    }
}

/// Whether ours agrees with kro's verdict; else what ours is.
pub(crate) fn agrees(verdict: &Value, ours: &Compiled) -> Result<(), String> {
    let message = verdict["message"].as_str().unwrap_or_default();
    let agreed = match (verdict["verdict"].as_str().unwrap(), ours) {
        ("accepted", Compiled::Active(_)) | ("api-rejected", Compiled::Invalid(_)) => true,
        ("needs-crd", Compiled::Deferred { missing, .. }) => {
            let needs = verdict["needs"].as_str().unwrap();
            missing.iter().any(|missing| format!("{}, Kind={}", missing.gvk.api_version(), missing.gvk.kind) == needs)
        }
        // Refused for the same kind, and for mistakes that kro does not get to.
        ("needs-crd", Compiled::Invalid(findings)) => {
            let needs = format!("{:?}", verdict["needs"].as_str().unwrap());
            findings.iter().any(|finding| finding.message.contains(&needs))
        }
        ("rejected", Compiled::Deferred { missing, .. }) => missing
            .iter()
            .any(|missing| message.contains(&format!("cannot resolve group version {:?}", missing.gvk.api_version()))),
        ("rejected", Compiled::Invalid(findings)) => findings.iter().any(|finding| same_cause(message, &finding.message)),
        _ => false,
    };
    if agreed { Ok(()) } else { Err(describe(ours)) }
}

/// kro's message says ours, its wrapping aside.
fn same_cause(theirs: &str, ours: &str) -> bool {
    // Why a pattern is none is said in the words of another parser.
    let before = |text: &str| text.split_inclusive("invalid pattern regex:").next().unwrap_or_default().to_owned();
    let plain = |text: &str| before(text).replace(['{', '}'], "").split_whitespace().collect::<Vec<_>>().join(" ");
    let (theirs, ours) = (plain(theirs), plain(ours));
    let cycle = "graph contains a cycle: ";
    theirs.contains(&ours)
        || (theirs.contains(cycle) && ours.contains(cycle))
        || (theirs.contains("Syntax error") && ours.contains("Syntax error"))
}

fn describe(ours: &Compiled) -> String {
    match ours {
        Compiled::Active(_) => "active".to_owned(),
        Compiled::Deferred { missing, .. } => format!("deferred: {missing:?}"),
        Compiled::Invalid(findings) => findings.iter().map(|finding| format!("\n      {finding}")).collect(),
    }
}

/// Prints the count and every disagreement; fails where one is no exception.
pub(crate) fn show(name: &str, total: usize, wrong: &BTreeMap<String, String>, exceptions: &[(&str, &str)]) {
    println!("SHOW 03 {name} {}/{total}", total - wrong.len());
    for (path, what) in wrong {
        println!("  {path}: {what}");
    }
    for (path, why) in exceptions.iter().filter(|(end, _)| wrong.keys().any(|path| path.ends_with(end))) {
        println!("  exception {path}: {why}");
    }
    let unexpected: Vec<_> = wrong.keys().filter(|path| !exceptions.iter().any(|(end, _)| path.ends_with(end))).collect();
    assert!(unexpected.is_empty(), "{} unexpected: {unexpected:#?}", unexpected.len());
}

#[test]
fn show_03_corpus() {
    if COMPILED.is_empty() {
        return println!("SHOW 03 corpus 0/0 (no corpus at PLINTH_DATA)");
    }
    let mut wrong = BTreeMap::new();
    let (apart, compared): (Vec<_>, Vec<_>) = COMPILED.iter().partition(|(verdict, _)| kept_back(verdict).is_some());
    for (verdict, ours) in compared.iter().copied() {
        let path = verdict["path"].as_str().unwrap();
        if let Err(ours) = agrees(verdict, ours) {
            let message = verdict["message"].as_str().unwrap_or_default();
            wrong.insert(path.to_owned(), format!("kro {}: {message}\n    ours {ours}", verdict["verdict"].as_str().unwrap()));
        }
    }
    show("corpus", compared.len(), &wrong, EXCEPTIONS);
    MORE.iter().for_each(|(path, what)| println!("  {path} says more: {what}"));
    for (verdict, ours) in apart {
        let provider = kept_back(verdict).unwrap();
        println!("  not compared {}: what provides {provider} is not in this part of the corpus", verdict["path"]);
        let waits: Vec<String> = ours.missing().iter().map(|missing| crd_of(&missing.gvk)).collect();
        assert_eq!(waits, [provider], "it waits for exactly that");
    }
}

/// The provider of a definition that the corpus does not have, by the name of its CRD.
fn kept_back(verdict: &Value) -> Option<String> {
    let is_here = |provider: &Value| {
        COMPILED
            .iter()
            .any(|(other, _)| other["verdict"] == "accepted" && (other["crd"] == *provider || other["name"] == *provider))
    };
    let mut providers = verdict["providers"].as_array().into_iter().flatten();
    providers.find(|provider| !is_here(provider)).map(|provider| provider.as_str().unwrap().to_owned())
}

fn crd_of(gvk: &plinth_api::GroupVersionKind) -> String {
    format!("{}.{}", crate::naming::plural(&gvk.kind.to_lowercase()), gvk.group)
}

#[test]
fn show_03_order() {
    let (mut total, mut wrong) = (0, BTreeMap::new());
    for (verdict, ours) in COMPILED.iter().filter(|(verdict, _)| verdict["verdict"] == "accepted") {
        let Some(graph) = ours.graph() else { continue };
        total += 1;
        let dependencies: BTreeMap<_, _> = graph
            .nodes
            .iter()
            .filter(|node| !node.dependencies.is_empty())
            .map(|node| (node.id.clone(), node.dependencies.clone()))
            .collect();
        let theirs = theirs_of(verdict);
        let order = verdict["topologicalOrder"].as_array().cloned().unwrap_or_default();
        if serde_json::json!(graph.order()) != Value::Array(order) || dependencies != theirs {
            let what = format!("{:?} {dependencies:?}\n    kro {} {theirs:?}", graph.order(), verdict["topologicalOrder"]);
            wrong.insert(verdict["path"].as_str().unwrap().to_owned(), what);
        }
    }
    show("order", total, &wrong, EXCEPTIONS);
}

fn theirs_of(verdict: &Value) -> BTreeMap<String, Vec<String>> {
    let text = |value: &Value| value["id"].as_str().unwrap().to_owned();
    let resources = verdict["resources"].as_array().into_iter().flatten();
    let with = resources.map(|resource| {
        let mut list: Vec<_> = resource["dependencies"].as_array().into_iter().flatten().map(text).collect();
        list.sort();
        (text(resource), list)
    });
    with.filter(|(_, list)| !list.is_empty()).collect()
}

#[test]
fn show_03_golden_crds() {
    let (mut total, mut wrong) = (0, BTreeMap::new());
    for (verdict, ours) in COMPILED.iter().filter(|(verdict, _)| verdict["golden"].is_string()) {
        let golden = std::fs::read_to_string(data(&format!("kro/{}", verdict["golden"].as_str().unwrap()))).unwrap();
        let golden: Value = serde_json::from_str(&golden).unwrap();
        let Some(graph) = ours.graph() else { continue };
        total += 1;
        if let Some(difference) = difference(&plain(graph.crd.spec()), &plain(&golden), "") {
            wrong.insert(verdict["path"].as_str().unwrap().to_owned(), difference);
        }
    }
    show("golden-crds", total, &wrong, EXCEPTIONS);
}

/// What counts of a CRD.
fn plain(spec: &Value) -> Value {
    serde_json::json!({"names": spec["names"], "scope": spec["scope"], "versions": spec["versions"]})
}

/// The first difference between ours and theirs.
fn difference(ours: &Value, theirs: &Value, path: &str) -> Option<String> {
    match (ours, theirs) {
        (Value::Object(a), Value::Object(b)) => {
            let names: std::collections::BTreeSet<_> = a.keys().chain(b.keys()).collect();
            let counts = |name: &&&String| {
                name.as_str() != "description" || [a, b].iter().all(|map| map.get(name.as_str()).is_none_or(Value::is_object))
            };
            names.iter().filter(counts).find_map(|name| match (a.get(name.as_str()), b.get(name.as_str())) {
                (Some(a), Some(b)) => difference(a, b, &format!("{path}.{name}")),
                (None, Some(b)) => Some(format!("{path}.{name}: missing {b}")),
                (Some(a), _) => Some(format!("{path}.{name}: too much {a}")),
                (None, None) => None,
            })
        }
        (Value::Array(a), Value::Array(b)) if a.len() == b.len() => {
            a.iter().zip(b).enumerate().find_map(|(index, (a, b))| difference(a, b, &format!("{path}[{index}]")))
        }
        (Value::Number(a), Value::Number(b)) if a.as_f64() == b.as_f64() => None,
        (a, b) if a == b => None,
        (a, b) => Some(format!("{path}: ours {a}, theirs {b}")),
    }
}

/// Definitions that kro's own tests build: order, deletion waves and CRD as its builder gives them.
#[test]
fn show_03_waves() {
    let (mut total, mut wrong) = (0, BTreeMap::new());
    for golden in json_lines("kro/integration-golden.jsonl").iter().filter(|golden| golden["applyOrders"].is_object()) {
        let path = golden["path"].as_str().unwrap();
        let Some(graph) = COMPILED.iter().find(|(verdict, _)| verdict["path"] == path).and_then(|(_, ours)| ours.graph()) else {
            continue;
        };
        total += 1;
        let waves: BTreeMap<_, _> = graph.nodes.iter().map(|node| (node.id.as_str(), node.apply_order)).collect();
        if serde_json::json!(waves) != golden["applyOrders"] || serde_json::json!(graph.order()) != golden["topologicalOrder"] {
            wrong.insert(path.to_owned(), format!("{waves:?}, kro {}", golden["applyOrders"]));
        }
    }
    show("waves", total, &wrong, EXCEPTIONS);
}
