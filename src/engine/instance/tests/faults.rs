//! Writes that are refused, objects of others, random graphs.

use proptest::prelude::*;
use serde_json::json;

use crate::{
    instance::{InstanceState, NodeState},
    testing::{cluster::Cluster, core, graph, rgd},
};

fn map(id: &str, data: &str) -> String {
    format!(
        "- id: {id}\n  template:\n    apiVersion: v1\n    kind: ConfigMap\n    metadata:\n      name: {id}\n    data:\n      x: {data}\n"
    )
}

#[test]
fn a_refused_child_fails_alone_and_is_not_tried_until_the_shell_says_so() {
    let resources = map("a", "x") + &map("b", "x") + &map("c", "${a.data.x}");
    let mut cluster = Cluster::new(graph(&rgd("", "", &resources), &core()), json!({"name": "v"}));
    cluster.refuses = Box::new(|key| key.name == "a");
    let decision = cluster.settle();
    assert_eq!(decision.state, InstanceState::Error);
    let states: Vec<_> = decision.nodes.iter().map(|node| node.state).collect();
    assert_eq!(states, [NodeState::Failed, NodeState::Ready, NodeState::Pending]);
    assert_eq!(cluster.log.iter().filter(|line| line.starts_with("refuse")).count(), 1);
    cluster.refuses = Box::new(|_| false);
    cluster.seen.failures.clear();
    assert_eq!(cluster.settle().state, InstanceState::Active);
}

#[test]
fn an_object_of_another_apply_set_is_not_taken() {
    let mut cluster = Cluster::new(graph(&rgd("", "", &map("a", "x")), &core()), json!({"name": "v"}));
    let labels = json!({"applyset.kubernetes.io/part-of": "applyset-other-v1"});
    cluster.put(json!({"apiVersion": "v1", "kind": "ConfigMap", "metadata": {"name": "a", "namespace": "ns", "labels": labels}}));
    let decision = cluster.settle();
    assert!(
        decision.node("a").unwrap().message.contains("resource belongs to a different ApplySet: ns/a"),
        "{:?}",
        decision.nodes
    );
    assert_eq!(cluster.log.iter().filter(|line| line.starts_with("apply")).count(), 0);
}

#[test]
fn two_nodes_for_one_object_are_a_conflict() {
    let resources = map("a", "x") + &map("b", "x").replace("name: b", "name: a");
    let mut cluster = Cluster::new(graph(&rgd("", "", &resources), &core()), json!({"name": "v"}));
    let decision = cluster.settle();
    assert!(decision.node("b").unwrap().message.contains("resourceID: b conflicts with resourceID: a"), "{:?}", decision.nodes);
}

/// Graphs of up to eight nodes, each reading any of those listed before it or none, left out or not, ready or not.
fn graphs() -> impl Strategy<Value = (String, Vec<bool>, Vec<bool>)> {
    (1_usize..8).prop_flat_map(|count| {
        let bits = |len| proptest::collection::vec(any::<bool>(), len);
        (bits(count * count), bits(count), bits(count)).prop_map(move |(edges, on, refused)| {
            let resources: String = (0..count)
                .map(|node| {
                    let reads: String = (0..node)
                        .filter(|other| edges[node * count + other])
                        .map(|other| format!("${{n{other}.data.x}}"))
                        .collect();
                    let when = format!("- id: n{node}\n  includeWhen: ['${{schema.spec.on[{node}]}}']");
                    map(&format!("n{node}"), &format!("v{reads}")).replace(&format!("- id: n{node}"), &when)
                })
                .collect();
            (rgd("on: '[]boolean'", "", &resources), on, refused)
        })
    })
}

proptest! {
    #![proptest_config(ProptestConfig::with_cases(48))]

    /// Whatever is refused at first and left out later: it ends, twice is once, and nothing goes that is still wanted.
    #[test]
    fn every_instance_comes_to_rest((text, on, refused) in graphs()) {
        let graph = graph(&text, &core());
        let all: Vec<bool> = on.iter().map(|_| true).collect();
        let mut cluster = Cluster::new(graph, json!({"on": all}));
        let names: Vec<String> = refused.iter().enumerate().filter(|(_, refused)| **refused).map(|(node, _)| format!("n{node}")).collect();
        cluster.refuses = Box::new(move |key| names.contains(&key.name));
        let decision = cluster.settle();
        prop_assert_eq!(decision.complete, !refused.contains(&true));
        cluster.objects.get_mut(&cluster.key).unwrap().0["spec"]["on"] = json!(on);
        let decision = cluster.settle();
        let deleted = cluster.log.iter().any(|line| line.starts_with("delete"));
        prop_assert!(decision.complete || !deleted, "pruned in an incomplete pass: {:#?}", cluster.log);
        cluster.refuses = Box::new(|_| false);
        cluster.seen.failures.clear();
        let decision = cluster.settle();
        prop_assert_eq!(decision.state, InstanceState::Active);
        for node in &decision.nodes {
            let there = cluster.objects.keys().any(|key| key.name == node.id);
            prop_assert_eq!(there, node.state == NodeState::Ready, "{}", node.id);
        }
        let writes = cluster.writes();
        cluster.settle();
        prop_assert_eq!(cluster.writes(), writes);
        cluster.delete(&cluster.key.clone());
        cluster.settle();
        prop_assert!(cluster.objects.is_empty());
    }
}
