use std::fmt::Write;

use proptest::prelude::*;

use super::*;
use crate::testing::{INSTANCE, LATE, PLATFORM, WORKER, component, content, rgd, sample};

/// `other` with the kind, name and template kind replaced.
fn definition(name: &str, kind: &str, makes: &[&str]) -> String {
    let mut text = format!(
        "apiVersion: kro.run/v1alpha1\nkind: ResourceGraphDefinition\nmetadata:\n  name: {name}\nspec:\n  schema:\n    \
         apiVersion: v1alpha1\n    group: acme.example\n    kind: {kind}\n    spec: {{}}\n  resources:\n"
    );
    for (index, made) in makes.iter().enumerate() {
        let template = format!("apiVersion: acme.example/v1alpha1, kind: {made}, metadata: {{name: x}}");
        writeln!(text, "    - {{id: node{index}, template: {{{template}}}}}").unwrap();
    }
    text
}

fn refused(content: &Content, expect: &[&str]) {
    let error = choose(content, None).unwrap_err();
    assert_eq!(error.outcome(), plinth_run::Outcome::Refused);
    for part in expect {
        assert!(error.to_string().contains(part), "{part:?} is not in: {error}");
    }
}

#[test]
fn the_top_level_definition_is_the_one_that_nothing_makes() {
    let distribution = choose(&sample(), None).unwrap();
    assert_eq!(distribution.component, component("platform"));
    let names: Vec<&str> = distribution.rgds.iter().map(|rgd| rgd.definition.name.as_str()).collect();
    assert_eq!(names, ["worker", "late", "platform"]);
    assert_eq!(distribution.instance.at(&["spec", "ocmRepoName"]).unwrap(), "repo");
}

#[test]
fn several_roots_are_a_choice() {
    let other = definition("other", "Other", &["Worker"]);
    let mut content = content(vec![rgd("platform", PLATFORM), rgd("worker", WORKER), rgd("late", LATE), rgd("other", &other)]);
    refused(&content, &["several distributions", "acme.example/other:v1.0.0, acme.example/platform:v1.0.0"]);
    for name in ["other", "acme.example/other"] {
        let chosen = choose(&content, Some(&Choice::parse(name))).unwrap();
        assert_eq!(chosen.root().definition.name, "other");
    }
    // A part of the platform may be asked for by name.
    assert_eq!(choose(&content, Some(&Choice::parse("worker"))).unwrap().rgds.len(), 1);
    let unknown = choose(&content, Some(&Choice::parse("nothing"))).unwrap_err();
    assert!(matches!(&unknown, Error::UnknownDistribution { choices, .. } if choices.len() == 2), "{unknown}");
    content.distribution = Some(component("other"));
    assert_eq!(choose(&content, None).unwrap().component, component("other"));
}

#[test]
fn the_flag_names_a_component_and_a_range() {
    assert_eq!(Choice::parse("a@>=1"), Choice { name: "a".into(), range: Some(">=1".into()) });
    assert_eq!(Choice::parse("a"), Choice { name: "a".into(), range: None });
}

#[test]
fn documents_that_are_wrong_are_named_with_line_and_column() {
    let broken = |text: &str| content(vec![rgd("platform", text)]);
    let head = "rgd of component acme.example/platform:v1.0.0:";
    refused(&broken("a: [\n"), &[head]);
    refused(&broken("kind: ConfigMap\napiVersion: v1\nmetadata: {name: x}\n"), &[head, "1:7"]);
    refused(&broken(""), &[head, "holds no ResourceGraphDefinition"]);
    let unknown = PLATFORM.replace("    - id: worker\n", "    - id: worker\n      readyIf: []\n");
    let line = 1 + unknown.lines().position(|line| line.contains("readyIf")).unwrap();
    refused(&broken(&unknown), &[head, &format!("{line}:"), "readyIf"]);
    // All mistakes at once, each on its line.
    let two = unknown.replace("  schema:\n", "  schema:\n    shortname: x\n");
    refused(&broken(&two), &["shortname", "readyIf", "\n  "]);
    refused(&content(vec![]), &["no ResourceGraphDefinition"]);
}

#[test]
fn one_kind_is_defined_once() {
    let twice = content(vec![rgd("platform", PLATFORM), rgd("worker", WORKER), rgd("worker2", WORKER), rgd("late", LATE)]);
    refused(
        &twice,
        &["Worker.acme.example is defined more than once", "acme.example/worker:v1.0.0, acme.example/worker2:v1.0.0"],
    );
}

#[test]
fn circles_are_refused() {
    let (a, b) = (definition("a", "A", &["B"]), definition("b", "B", &["A"]));
    refused(&content(vec![rgd("a", &a), rgd("b", &b)]), &["each of these kinds is made by another", "A.acme.example"]);
    refused(&content(vec![rgd("a", &definition("a", "A", &["A"]))]), &["A.acme.example"]);
}

#[test]
fn an_instance_has_to_fit_its_definition() {
    let check = |text: &str, expect: &[&str]| {
        let mut content = sample();
        content.instances = vec![(component("platform"), text.into())];
        refused(&content, expect);
    };
    check(&INSTANCE.replace("Platform", "Other"), &["instance of component", "2:", "must be a Platform.acme.example/v1alpha1"]);
    check(&INSTANCE.replace("  name: default", "  labels: {}"), &["a name is required"]);
    let unquoted = INSTANCE.replace("  name: default", "  name: default\n  namespace: n");
    check(&unquoted, &["metadata.namespace", "must be text, and is false", "put it in quotes"]);
    check(&INSTANCE.replace("  name: default", "  name: 12"), &["metadata.name", "must be text, and is 12"]);
    check(&format!("{INSTANCE}---\n{INSTANCE}"), &["must be one document, and holds 2"]);
    check("- a\n", &["must be a mapping"]);
    let mut content = sample();
    content.instances.clear();
    assert_eq!(choose(&content, None).unwrap().instance.name(), "default");
}

proptest! {
    /// Whatever the channel's order, a definition comes after all whose kinds it makes, and the top-level one last.
    #[test]
    fn definitions_come_in_an_order_that_can_be_carried_out(
        edges in prop::collection::vec((0..8usize, 0..8usize), 0..20),
        order in Just((0..8usize).collect::<Vec<_>>()).prop_shuffle(),
    ) {
        let makes = |index: usize| -> Vec<String> {
            // Edges go from lower to higher numbers, so that there is no circle; 0 makes all of them.
            let of = edges.iter().filter(|(a, b)| *a == index && a < b).map(|(_, b)| *b);
            if index == 0 { (1..8).map(|b| format!("K{b}")).collect() } else { of.map(|b| format!("K{b}")).collect() }
        };
        let text = |index: usize| {
            let makes = makes(index);
            let makes: Vec<&str> = makes.iter().map(String::as_str).collect();
            rgd(&format!("c{index}"), &definition(&format!("d{index}"), &format!("K{index}"), &makes))
        };
        let mut content = content(std::iter::once(0).chain(order.iter().copied().filter(|i| *i != 0)).map(text).collect());
        content.rgds.sort_by_key(|rgd| order.iter().position(|index| rgd.component == component(&format!("c{index}"))));
        let distribution = choose(&content, None).unwrap();
        prop_assert_eq!(distribution.rgds.len(), 8);
        prop_assert_eq!(&distribution.root().definition.name, "d0");
        for (index, rgd) in distribution.rgds.iter().enumerate() {
            let earlier: BTreeSet<_> = distribution.rgds[..index].iter().map(Rgd::defines).collect();
            prop_assert!(rgd.makes().is_subset(&earlier));
        }
    }
}
