//! The sample without any server: its channel resolves, and its graphs compile as far as the kinds that are there allow.

use std::{collections::BTreeMap, fs};

use plinth_api::{Object, crds};
use plinth_engine::{
    graph::{self, Compiled, Definition},
    schema::{SchemaMap, builtin, crd},
    yaml,
};
use plinth_releasechannel::{Options, Selection, SourceRef, resolve};
use plinth_support::scenario;

use crate::distribution::{Distribution, PLATFORM, data};

#[tokio::test]
async fn its_channel_resolves_to_four_leaves_and_four_graphs() {
    let distribution = Distribution::sample();
    let options = Options { no_user_config: true, ..Options::default() };
    let source = SourceRef::parse(&distribution.source()).unwrap();
    let channel = resolve(&source, &Selection::default(), &options).await.unwrap();
    let root = &channel.lock.root;
    assert_eq!((root.name.as_str(), root.version.as_str()), (PLATFORM, "v0.0.4"));
    assert_eq!(
        (channel.lock.components.len(), channel.rgds.len(), channel.instances.len(), channel.scenarios.len()),
        (8, 4, 1, 1)
    );
    let images =
        channel.lock.components.iter().flat_map(|component| &component.resources).filter(|resource| resource.kind == "ociImage");
    assert_eq!(images.count(), 4);
}

#[test]
fn its_graphs_are_deferred_exactly_where_they_need_the_operators_kinds() {
    check_graphs(&Distribution::sample());
}

#[test]
fn so_are_the_documents() {
    match Distribution::of_the_document() {
        Some(distribution) => check_graphs(&distribution),
        None => eprintln!("not run: 1 test of the document's own graphs (PLINTH_DATA has none)"),
    }
}

fn check_graphs(distribution: &Distribution) {
    let mut schemas = builtin().clone();
    for manifest in crds::DELIVERY.iter().chain([&crds::KRO_RGD]) {
        add(&mut schemas, &objects(manifest.yaml)[0]);
    }
    let names = ["openmcp-operator", "cluster-provider-kind", "platform-service", "open-control-plane-platform"];
    let compiled: BTreeMap<_, _> = names.iter().map(|name| (*name, compile(distribution, name, &schemas))).collect();
    let waits = |name: &str| compiled[name].missing().iter().map(|missing| missing.gvk.to_string()).collect::<Vec<_>>();
    assert_eq!(waits("openmcp-operator"), [""; 0]);
    assert_eq!(waits("cluster-provider-kind"), ["ClusterProvider.openmcp.cloud/v1alpha1"]);
    assert_eq!(waits("platform-service"), ["PlatformService.openmcp.cloud/v1alpha1"]);
    assert_eq!(waits("open-control-plane-platform").len(), 4);

    // The CRDs of the first three, and those that the operator registers.
    for name in &names[..3] {
        add(&mut schemas, &compiled[name].graph().unwrap().crd.clone());
    }
    assert!(matches!(compile(distribution, names[3], &schemas), Compiled::Active(_)));
    let mut followed = scenario::read(&distribution.file("scenario.yaml")).unwrap();
    if let Some(data) = data() {
        followed = scenario::with_registered(followed, &data.join("openmcp/crds/history/v0.19.1")).unwrap();
    }
    followed.rules.iter().flat_map(|rule| &rule.register).for_each(|object| add(&mut schemas, object));
    for name in names {
        let compiled = compile(distribution, name, &schemas);
        assert!(matches!(compiled, Compiled::Active(_)), "{name} waits for {:?}", compiled.missing());
    }
}

fn compile(distribution: &Distribution, name: &str, schemas: &SchemaMap) -> Compiled {
    let text = fs::read_to_string(distribution.file(&format!("rgds/{name}.yaml"))).unwrap();
    let documents = yaml::documents(&text).unwrap();
    let definition = Definition::from_document(&documents[0], &text).unwrap();
    let compiled = graph::compile(&definition, schemas, &graph::Options::default());
    if let Compiled::Invalid(findings) = &compiled {
        panic!("{name}: {}", findings.iter().map(ToString::to_string).collect::<Vec<_>>().join("\n"));
    }
    compiled
}

fn add(schemas: &mut SchemaMap, crd: &Object) {
    crd::kinds(crd).unwrap().into_iter().for_each(|kind| schemas.insert(kind));
}

fn objects(text: &str) -> Vec<Object> {
    yaml::documents(text).unwrap().into_iter().filter_map(|document| Object::from_value(document.value)).collect()
}
