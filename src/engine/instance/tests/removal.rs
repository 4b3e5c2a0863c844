//! Removing instances.

use serde_json::{Value, json};

use crate::{
    instance::{InstanceState, decide},
    testing::{cluster::Cluster, core, graph, rgd},
};

fn map(id: &str, data: &str) -> String {
    format!(
        "- id: {id}\n  template:\n    apiVersion: v1\n    kind: ConfigMap\n    metadata:\n      name: {id}\n    data:\n      x: {data}\n"
    )
}

fn cluster() -> Cluster {
    let resources = map("a", "x") + &map("b", "${a.data.x}") + &map("c", "${b.data.x}") + &map("d", "x");
    Cluster::new(graph(&rgd("", "x: ${a.data.x}", &resources), &core()), json!({"name": "v"}))
}

fn deletions(cluster: &Cluster) -> Vec<&str> {
    cluster.log.iter().filter_map(|line| line.strip_prefix("delete ConfigMap/ns/").or(line.strip_prefix("release "))).collect()
}

#[test]
fn children_go_in_reverse_order_and_the_finalizer_last() {
    let mut cluster = cluster();
    cluster.settle();
    cluster.delete(&cluster.key.clone());
    cluster.settle();
    assert_eq!(deletions(&cluster), ["c", "d", "b", "a", "kro.run/finalizer"]);
    assert!(cluster.objects.is_empty());
}

#[test]
fn a_child_that_is_slow_to_go_is_waited_for() {
    let mut cluster = cluster();
    cluster.settle();
    let c = cluster.objects.keys().find(|key| key.name == "c").unwrap().clone();
    cluster.objects.get_mut(&c).unwrap().metadata_mut().insert("finalizers".to_owned(), json!(["other/finalizer"]));
    cluster.delete(&cluster.key.clone());
    let decision = cluster.settle();
    assert_eq!((deletions(&cluster), decision.state), (vec!["c", "d"], InstanceState::Deleting));
    let status = cluster.objects[&cluster.key].status();
    assert_eq!((status["state"].as_str(), status["x"].as_str()), (Some("DELETING"), Some("x")), "what was projected stays");
    let ready = status["conditions"].as_array().unwrap().iter().find(|condition| condition["type"] == "ResourcesReady").unwrap();
    assert_eq!((ready["status"].as_str(), ready["reason"].as_str()), (Some("Unknown"), Some("UnderDeletion")));
    assert!(ready["message"].as_str().unwrap().contains("other/finalizer"), "{ready}");
    cluster.objects.remove(&c);
    cluster.settle();
    assert!(cluster.objects.is_empty());
}

#[test]
fn an_instance_that_never_applied_anything_goes_at_once() {
    let mut cluster = cluster();
    let first = decide(&cluster.graph, &cluster.seen);
    first.actions.iter().for_each(|action| cluster.act(action));
    cluster.delete(&cluster.key.clone());
    cluster.settle();
    assert!(cluster.objects.is_empty(), "{:#?}", cluster.log);
}

#[test]
fn a_tampered_inventory_blocks_and_says_so() {
    let mut cluster = cluster();
    cluster.settle();
    let instance = cluster.objects.get_mut(&cluster.key).unwrap();
    instance.metadata_mut()["annotations"]["applyset.kubernetes.io/contains-group-kinds"] = json!("Secret");
    cluster.delete(&cluster.key.clone());
    cluster.settle();
    assert_eq!(deletions(&cluster), [] as [&str; 0]);
    let conditions = cluster.objects[&cluster.key].status()["conditions"].to_string();
    assert!(conditions.contains("deletion blocked: validate deletion inventory"), "{conditions}");
}

#[test]
fn what_was_applied_is_deleted_even_where_the_list_is_older() {
    let mut cluster = cluster();
    cluster.settle();
    cluster.delete(&cluster.key.clone());
    cluster.refresh();
    // Lists that do not know the children yet: the memory of what was applied does.
    cluster.seen.lists.values_mut().for_each(Vec::clear);
    let decision = decide(&cluster.graph, &cluster.seen);
    let released = decision.actions.iter().any(|action| matches!(action, crate::instance::Action::RemoveFinalizer(_)));
    assert!(!released, "{:#?}", decision.actions);
}

#[test]
fn a_changed_label_is_put_back_and_holds_up_no_deletion() {
    const LABEL: &str = "applyset.kubernetes.io/id";
    for label in [json!("other"), Value::Null] {
        let mut cluster = cluster();
        cluster.settle();
        let id = cluster.objects[&cluster.key].label(LABEL).unwrap().to_owned();
        let change = |cluster: &mut Cluster| {
            let labels = &mut cluster.objects.get_mut(&cluster.key).unwrap().metadata_mut()["labels"];
            match &label {
                Value::Null => drop(labels.as_object_mut().unwrap().remove(LABEL)),
                label => labels[LABEL] = label.clone(),
            }
        };
        change(&mut cluster);
        cluster.settle();
        assert_eq!(cluster.objects[&cluster.key].label(LABEL), Some(id.as_str()));
        change(&mut cluster);
        cluster.delete(&cluster.key.clone());
        cluster.settle();
        assert!(cluster.objects.is_empty(), "{:#?}", cluster.log);
    }
}

/// Somebody else's word on our inventory is not taken while the instance lives.
#[test]
fn a_tampered_inventory_is_written_again() {
    let mut cluster = cluster();
    cluster.settle();
    let before = cluster.objects[&cluster.key].annotation("applyset.kubernetes.io/contains-group-kinds").unwrap().to_owned();
    let instance = cluster.objects.get_mut(&cluster.key).unwrap();
    instance.metadata_mut()["annotations"]["applyset.kubernetes.io/contains-group-kinds"] = json!(format!("{before},Secret"));
    cluster.settle();
    let instance = &cluster.objects[&cluster.key];
    assert_eq!(instance.annotation("applyset.kubernetes.io/contains-group-kinds"), Some(before.as_str()));
}
