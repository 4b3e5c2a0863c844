//! The definitions of the document that this project comes from, as they stand in it.

use crate::{
    graph::Compiled,
    schema::{SchemaMap, crd},
    testing::{compiled, core, data, definition, delivery, graph, kinds_of},
};

/// The texts of the definitions in seed 004.
pub(crate) fn texts() -> Vec<String> {
    let folder = data("../seeds");
    let file = std::fs::read_dir(folder).unwrap().map(|file| file.unwrap().path());
    let file = file.into_iter().find(|path| path.file_name().unwrap().to_str().unwrap().starts_with("004")).unwrap();
    let text = std::fs::read_to_string(file).unwrap();
    let starts = text.match_indices("apiVersion: kro.run/v1alpha1\nkind: ResourceGraphDefinition").map(|(start, _)| start);
    starts.map(|start| cut(&text[start..])).collect()
}

/// A document ends at the first line that is neither empty nor indented nor one of its own keys.
fn cut(text: &str) -> String {
    let own = |line: &str| {
        line.is_empty()
            || line.starts_with(' ')
            || ["apiVersion:", "kind:", "metadata:", "spec:"].iter().any(|key| line.starts_with(key))
    };
    let lines = text.lines().take_while(|line| own(line));
    lines.fold(String::new(), |text, line| text + line + "\n").trim_end().to_owned() + "\n"
}

fn schemas() -> SchemaMap {
    let mut schemas = core();
    schemas.extend(delivery());
    schemas
}

#[test]
fn the_operators_definition_is_active() {
    let texts = texts();
    assert_eq!(texts.len(), 2);
    let graph = graph(&texts[0], &schemas());
    assert_eq!(
        graph.order(),
        ["ocmrepo", "component", "resourceImage", "serviceaccount", "clusterrolebinding", "configmap", "deployment"]
    );
    let deployment = graph.node("deployment").unwrap();
    assert_eq!(deployment.dependencies, ["configmap", "resourceImage", "serviceaccount"]);
    assert_eq!(
        (graph.instance.plural.as_str(), graph.instance.gvk.group.as_str()),
        ("openmcpoperators", "bootstrap.open-control-plane.io")
    );
    assert!(graph.warnings.is_empty(), "{:?}", graph.warnings);
}

#[test]
fn the_distributions_definition_waits_for_the_kinds_of_the_others() {
    let texts = texts();
    let compiled = compiled(&texts[1], &schemas());
    let Compiled::Deferred { graph, missing } = compiled else { panic!("{:?}", compiled.diagnostics()) };
    let missing: Vec<_> = missing.iter().map(|missing| (missing.node.as_str(), missing.gvk.kind.as_str())).collect();
    assert_eq!(
        missing,
        [
            ("openmcpoperator", "OpenMCPOperator"),
            ("clusterprovider", "ClusterProviderKind"),
            ("platformservicegateway", "PlatformService"),
            ("platformservicedns", "PlatformService"),
        ]
    );
    assert_eq!(graph.order(), ["ocmrepo", "openmcpoperator", "clusterprovider", "platformservicegateway", "platformservicedns"]);
    assert_eq!(crate::graph::kinds(&definition(&texts[1]).unwrap().spec).len(), 4);
}

/// The project's own distribution: its definitions compile as the kinds of each other, and then those of the operator, appear.
#[test]
fn the_sample_distribution_compiles_kind_by_kind() {
    let folder = concat!(env!("CARGO_MANIFEST_DIR"), "/../../distributions/open-control-plane-kind/rgds");
    let files = std::fs::read_dir(folder).unwrap().map(|file| std::fs::read_to_string(file.unwrap().path()).unwrap());
    let texts: Vec<String> = files.collect();
    let mut served = schemas();
    let rounds = |served: &mut SchemaMap| {
        for _ in 0..texts.len() {
            for text in &texts {
                served.extend(crd::kinds(&graph(text, served).crd).unwrap());
            }
        }
        texts.iter().filter(|text| !compiled(text, served).missing().is_empty()).count()
    };
    let deferred = rounds(&mut served);
    assert!((1..texts.len()).contains(&deferred), "{deferred} of {} wait for the operator's kinds", texts.len());
    for file in std::fs::read_dir(data("openmcp/crds/history/v0.19.1")).unwrap() {
        served.extend(kinds_of(&file.unwrap().path()));
    }
    assert_eq!(rounds(&mut served), 0);
}
