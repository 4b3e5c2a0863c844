//! Changes: drift, edits, pruning, suspension, collections, deferred kinds.

use plinth_api::GroupVersionKind;
use serde_json::{Value, json};

use crate::{
    instance::{InstanceState, NodeState, WaitsFor},
    naming::keys,
    schema::SchemaMap,
    testing::{cluster::Cluster, core, graph, rgd},
};

fn map(id: &str, name: &str, data: &str) -> String {
    format!(
        "- id: {id}\n  template:\n    apiVersion: v1\n    kind: ConfigMap\n    metadata:\n      name: {name}\n    data:\n      x: {data}\n"
    )
}

fn cluster(schema: &str, status: &str, resources: &str, spec: Value) -> Cluster {
    Cluster::new(graph(&rgd(schema, status, resources), &core()), spec)
}

fn names(cluster: &Cluster) -> Vec<&str> {
    cluster.objects.keys().filter(|key| key.gvk.kind == "ConfigMap").map(|key| key.name.as_str()).collect()
}

#[test]
fn drift_of_an_owned_field_is_reverted_and_foreign_fields_stay() {
    let mut cluster = cluster("name: string", "", &map("a", "a", "${schema.spec.name}"), json!({"name": "v"}));
    cluster.settle();
    let key = cluster.objects.keys().find(|key| key.gvk.kind == "ConfigMap").unwrap().clone();
    cluster.objects.get_mut(&key).unwrap().0["data"]["other"] = json!("theirs");
    let before = cluster.log.len();
    cluster.settle();
    assert_eq!(cluster.log.len(), before, "a foreign field is no drift");
    cluster.objects.get_mut(&key).unwrap().0["data"]["x"] = json!("edited");
    cluster.settle();
    assert_eq!(cluster.objects[&key].0["data"], json!({"x": "v", "other": "theirs"}));
    cluster.objects.remove(&key);
    cluster.settle();
    assert!(cluster.objects.contains_key(&key), "a deleted child comes back");
}

#[test]
fn a_changed_spec_writes_only_what_it_changes() {
    let resources = map("a", "a", "${schema.spec.one}") + &map("b", "b", "${schema.spec.two}");
    let mut cluster = cluster("one: string\ntwo: string", "", &resources, json!({"one": "1", "two": "2"}));
    cluster.settle();
    cluster.log.clear();
    cluster.objects.get_mut(&cluster.key).unwrap().0["spec"]["two"] = json!("3");
    cluster.settle();
    assert_eq!(cluster.log, ["apply ConfigMap/ns/b"]);
}

#[test]
fn what_include_when_leaves_out_is_pruned_with_what_reads_it() {
    let resources = map("a", "a", "x").replace("- id: a", "- id: a\n  includeWhen: ['${schema.spec.on}']")
        + &map("b", "b", "${a.data.x}")
        + &map("c", "c", "x");
    let mut cluster = cluster("on: boolean", "a: ${a.data.x}", &resources, json!({"on": true}));
    cluster.settle();
    assert_eq!((names(&cluster), cluster.objects[&cluster.key].status()["a"].as_str()), (vec!["a", "b", "c"], Some("x")));
    cluster.objects.get_mut(&cluster.key).unwrap().0["spec"]["on"] = json!(false);
    cluster.log.clear();
    let decision = cluster.settle();
    assert_eq!((names(&cluster), decision.state), (vec!["c"], InstanceState::Active));
    assert_eq!(decision.node("b").unwrap().state, NodeState::Skipped);
    assert_eq!(cluster.objects[&cluster.key].status().get("a"), None);
    assert_eq!(cluster.log[..2], ["delete ConfigMap/ns/b", "delete ConfigMap/ns/a"], "dependents go first");
}

#[test]
fn nothing_is_pruned_while_anything_is_not_known() {
    let resources = map("a", "a", "x").replace("- id: a", "- id: a\n  includeWhen: ['${schema.spec.on}']")
        + &map("b", "b", "x").replace("- id: b", "- id: b\n  readyWhen: ['${b.data.go == \"1\"}']")
        + &map("c", "c", "${b.data.x}");
    let mut cluster = cluster("on: boolean", "", &resources, json!({"on": true}));
    cluster.settle();
    cluster.objects.get_mut(&cluster.key).unwrap().0["spec"]["on"] = json!(false);
    let decision = cluster.settle();
    assert!(!decision.complete);
    assert_eq!(names(&cluster), ["a", "b"], "c is pending, so a stays");
    let b = cluster.objects.keys().find(|key| key.name == "b").unwrap().clone();
    cluster.objects.get_mut(&b).unwrap().0["data"]["go"] = json!("1");
    assert!(cluster.settle().complete);
    assert_eq!(names(&cluster), ["b", "c"]);
}

#[test]
fn what_is_replaced_goes_when_the_instances_in_its_place_are_ready() {
    let secret = "- id: b\n  includeWhen: ['${schema.spec.on}']\n  template:\n    apiVersion: v1\n    kind: Secret\n    metadata:\n      name: b\n";
    let mut cluster = cluster("on: boolean", "", &(map("a", "a", "x") + secret), json!({"on": true}));
    cluster.settle();
    let a = cluster.objects.keys().find(|key| key.name == "a").unwrap().clone();
    cluster.seen.instance_kinds.insert(a.gvk.group_kind());
    cluster.seen.ready_instances.insert(a.clone(), false);
    cluster.objects.get_mut(&cluster.key).unwrap().0["spec"]["on"] = json!(false);
    assert!(!cluster.settle().ready);
    let is_there = |cluster: &Cluster| cluster.objects.keys().any(|key| key.gvk.kind == "Secret");
    assert!(is_there(&cluster), "what comes in its place is not there yet");
    cluster.seen.ready_instances.insert(a, true);
    assert!(cluster.settle().ready && !is_there(&cluster));
}

/// Seed 14 of the simulation: a run ended by a Ready that left behind what the server would not delete just then.
#[test]
fn what_cannot_be_deleted_yet_is_left_over_and_keeps_the_inventory() {
    let resources = map("a", "a", "x")
        + "- id: b\n  includeWhen: ['${schema.spec.on}']\n  template:\n    apiVersion: v1\n    kind: Secret\n    metadata:\n      name: b\n";
    let mut cluster = cluster("on: boolean", "", &resources, json!({"on": true}));
    cluster.settle();
    cluster.objects.get_mut(&cluster.key).unwrap().0["spec"]["on"] = json!(false);
    cluster.denies.insert("Secret");
    let decision = cluster.settle();
    let left_over = decision.left_over.unwrap();
    assert!(left_over.starts_with("Secret/ns/b is not wanted any more and not deleted yet: "), "{left_over}");
    assert_eq!((decision.state, decision.ready), (InstanceState::Active, false));
    let kinds = |cluster: &Cluster| cluster.objects[&cluster.key].annotation(keys::APPLYSET_GROUP_KINDS).unwrap().to_owned();
    assert_eq!(kinds(&cluster), "ConfigMap,Secret");
    cluster.denies.clear();
    cluster.seen.failures.clear();
    let decision = cluster.settle();
    assert_eq!((decision.ready, kinds(&cluster).as_str()), (true, "ConfigMap"));
    assert!(!cluster.objects.keys().any(|key| key.gvk.kind == "Secret"));
}

#[test]
fn labels_copied_by_others_do_not_make_an_object_ours_to_prune() {
    let mut cluster = cluster("", "", &map("a", "a", "x"), json!({"name": "v"}));
    cluster.settle();
    let ours = cluster.objects.iter().find(|(key, _)| key.name == "a").unwrap().1.clone();
    let copied = json!({"apiVersion": "v1", "kind": "ConfigMap", "metadata": {"name": "copy", "namespace": "ns", "labels": ours.labels()}});
    cluster.put(copied);
    cluster.settle();
    assert_eq!(names(&cluster), ["a", "copy"]);
}

#[test]
fn a_suspended_instance_is_left_alone_and_never_active() {
    let mut cluster = cluster("", "", &map("a", "a", "${schema.spec.name}"), json!({"name": "v"}));
    cluster.settle();
    let instance = cluster.objects.get_mut(&cluster.key).unwrap();
    instance.metadata_mut().insert("annotations".to_owned(), json!({"kro.run/reconcile": "Suspended"}));
    instance.0["spec"]["name"] = json!("w");
    cluster.log.clear();
    let decision = cluster.settle();
    assert_eq!(
        (cluster.log.as_slice(), decision.state, decision.ready),
        (["status".to_owned()].as_slice(), InstanceState::InProgress, false)
    );
    let conditions = &cluster.objects[&cluster.key].status()["conditions"];
    assert!(conditions.as_array().unwrap().iter().any(|condition| condition["reason"] == "ReconciliationSuspended"));
}

#[test]
fn a_growing_collection_leaves_its_items_alone() {
    let resources = "- id: maps\n  forEach: [{n: '${schema.spec.names}'}]\n".to_owned()
        + &map("x", "m-${n}", "${n}").replace("- id: x\n", "");
    let mut cluster = cluster("names: '[]string'", "count: ${size(maps)}", &resources, json!({"names": ["a", "b"]}));
    cluster.settle();
    assert_eq!((names(&cluster), &cluster.objects[&cluster.key].status()["count"]), (vec!["m-a", "m-b"], &json!(2)));
    cluster.objects.get_mut(&cluster.key).unwrap().0["spec"]["names"] = json!(["a", "b", "c"]);
    cluster.log.clear();
    cluster.settle();
    assert_eq!(cluster.log, ["apply ConfigMap/ns/m-c", "status"]);
    cluster.objects.get_mut(&cluster.key).unwrap().0["spec"]["names"] = json!(["c"]);
    cluster.settle();
    assert_eq!(names(&cluster), ["m-c"]);
}

#[test]
fn a_deferred_node_waits_for_its_kind_and_the_others_run() {
    let late = map("late", "late", "x").replace("v1\n", "example.org/v1\n").replace("ConfigMap", "Late");
    let resources = map("a", "a", "x") + &late + &map("c", "c", "${late.data.x}");
    let text = rgd("", "x: ${late.data.x}", &resources);
    let mut cluster = Cluster::new(graph(&text, &core()), json!({"name": "v"}));
    let decision = cluster.settle();
    let gvk = GroupVersionKind::new("example.org", "v1", "Late");
    assert_eq!(decision.node("late").unwrap().waits_for, Some(WaitsFor::Kind(gvk.clone())));
    assert_eq!((decision.node("a").unwrap().state, decision.node("c").unwrap().state), (NodeState::Ready, NodeState::Pending));
    assert!(decision.watch.kinds.contains(&gvk));
    let mut schemas: SchemaMap = core();
    let mut info = crate::schema::KindInfo::clone(schemas.iter().find(|info| info.gvk.kind == "ConfigMap").unwrap());
    info.gvk = gvk;
    schemas.insert(info);
    cluster.graph = graph(&text, &schemas);
    assert_eq!(cluster.settle().state, InstanceState::Active);
    assert_eq!(cluster.objects[&cluster.key].status()["x"], "x");
}

#[test]
fn an_absent_input_is_named_and_does_not_wait_for_ever() {
    let mut cluster = cluster("name: string", "", &(map("a", "a", "${schema.spec.name}") + &map("b", "b", "x")), json!({}));
    let decision = cluster.settle();
    let a = decision.node("a").unwrap();
    assert_eq!((a.state, decision.state), (NodeState::Failed, InstanceState::Error));
    assert!(a.message.contains("the instance does not set spec.name"), "{}", a.message);
    assert_eq!(decision.node("b").unwrap().state, NodeState::Ready);
}

/// Who mends the failure must not find out only then what else is not ready, and from the conditions only what failed is read back.
#[test]
fn nodes_that_wait_are_listed_beside_those_that_have_failed() {
    let waiting = map("b", "b", "x").replace("- id: b", "- id: b\n  readyWhen: ['${b.data.later == 'y'}']");
    let waiting = waiting.replace("'${b.data.later == 'y'}'", "\"${b.data.later == 'y'}\"");
    let resources = map("a", "a", "${schema.spec.name}") + &waiting + &map("c", "c", "x");
    let mut cluster = cluster("name: string", "", &resources, json!({}));
    cluster.settle();
    let instance = &cluster.objects[&cluster.key];
    assert_eq!(instance.status()["state"], "ERROR");
    let conditions = instance.status()["conditions"].as_array().unwrap().clone();
    let says = conditions.iter().find(|condition| condition["type"] == "ResourcesReady").unwrap();
    let message = says["message"].as_str().unwrap();
    assert!(message.starts_with("resource error: node \"a\": "), "{message}");
    assert!(message.contains("; awaiting resource readiness: node \"b\": "), "{message}");
    assert!(!message.contains("node \"c\""), "{message}");
    let failures = crate::instance::failures(instance);
    assert_eq!(failures.keys().collect::<Vec<_>>(), ["a"]);
    assert!(failures["a"].contains("the instance does not set spec.name") && !failures["a"].contains("awaiting"), "{failures:?}");
}

#[test]
fn a_failing_status_expression_is_a_condition_and_the_rest_is_written() {
    let mut cluster =
        cluster("count: integer", "bad: ${1 / schema.spec.count}\ngood: ${a.data.x}", &map("a", "a", "v"), json!({"count": 0}));
    let decision = cluster.settle();
    let status = cluster.objects[&cluster.key].status();
    assert_eq!((status["good"].as_str(), status.get("bad"), status["state"].as_str()), (Some("v"), None, Some("ACTIVE")));
    assert_eq!(decision.problems.len(), 1);
    let says = status["conditions"].as_array().unwrap().iter().find(|condition| condition["type"] == "StatusProjected").unwrap();
    assert!(says["message"].as_str().unwrap().contains("status.bad"), "{says}");
}

#[test]
fn a_value_that_its_status_field_does_not_take_is_left_out_and_named() {
    let status = "list: ['${a.metadata.name}', '${size(a.data)}']\nstate: ${size(a.data)}\ngood: ${a.data.x}";
    let mut cluster = cluster("", status, &map("a", "a", "v"), json!({"name": "n"}));
    let decision = cluster.settle();
    let status = cluster.objects[&cluster.key].status();
    assert_eq!((&status["list"], &status["good"], &status["state"]), (&json!([1]), &json!("v"), &json!("ACTIVE")));
    assert_eq!(decision.problems.len(), 1, "{:?}", decision.problems);
    let says = status["conditions"].as_array().unwrap().iter().find(|condition| condition["type"] == "StatusProjected").unwrap();
    assert_eq!(says["status"], "False");
    assert!(says["message"].as_str().unwrap().contains("status.list[0]: expected integer, got string"), "{says}");
}

/// What iterators stand for has the type that `check` gives it, as everywhere else.
#[test]
fn iterators_keep_the_types_of_what_they_walk() {
    let item = |id: &str, list: &str, name: &str, value: &str| {
        map(id, name, value).replace(&format!("- id: {id}"), &format!("- id: {id}\n  forEach: [{{i: '{list}'}}]"))
    };
    let external = "- id: secs\n  externalRef: {apiVersion: v1, kind: Secret, metadata: {selector: {matchLabels: {app: x}}}}\n";
    let resources = external.to_owned()
        + &item("text", "${secs}", "text-${i.metadata.name}", "${string(i.data.pw)}")
        + &item("year", "${secs}", "year-${i.metadata.name}", "${string(i.metadata.creationTimestamp.getFullYear())}")
        + &item("map", "${secs.map(s, s.data)}", "map-${string(i.pw)}", "${string(i.pw)}")
        + &item("time", "${secs.map(s, s.metadata.creationTimestamp)}", "time-${string(i.getFullYear())}", "${string(i)}")
        + &item("float", "${schema.spec.fs}", "float-${string(i)}", "${string(i + 0.5)}")
        + &item("whole", "${schema.spec.ws}", "whole-${i.name}", "${string(i.w / 2.0)}")
        + &item("wait", "${[duration(\"90s\")]}", "wait-${string(i.getSeconds())}", "${string(i)}")
        + &item("bytes", "${[bytes(schema.spec.name)]}", "bytes-${string(size(i))}", "${string(i)}");
    let schema = "name: string\nfs: '[]float'\nws: '[]W'\n";
    let text = rgd(schema, "", &resources).replace("    status:\n", "    types: {W: {w: float, name: string}}\n    status:\n");
    let spec = json!({"name": "ab", "fs": [1, 2.5], "ws": [{"w": 1, "name": "x"}]});
    let mut cluster = Cluster::new(graph(&text, &core()), spec);
    let metadata = json!({"name": "s", "namespace": "ns", "labels": {"app": "x"}, "creationTimestamp": "2026-01-02T03:04:05Z"});
    cluster.put(json!({"apiVersion": "v1", "kind": "Secret", "metadata": metadata, "data": {"pw": "aGVsbG8="}}));
    let decision = cluster.settle();
    assert_eq!(decision.state, InstanceState::Active, "{decision:?}");
    let found: Vec<_> = cluster.objects.iter().filter(|(key, _)| key.gvk.kind == "ConfigMap").collect();
    let found: Vec<_> = found.iter().map(|(key, object)| (key.name.as_str(), object.0["data"]["x"].as_str().unwrap())).collect();
    let expected = [
        ("bytes-2", "ab"),
        ("float-1", "1.5"),
        ("float-2.5", "3"),
        ("map-hello", "hello"),
        ("text-s", "hello"),
        ("time-2026", "2026-01-02T03:04:05Z"),
        ("wait-90", "90s"),
        ("whole-x", "0.5"),
        ("year-s", "2026"),
    ];
    assert_eq!(found, expected);
}

/// A server checks the formats of what a CRD describes: all items of this list are times, as its last one.
#[test]
fn a_value_that_is_not_of_its_format_is_left_out_and_named() {
    let status = "times: ['${schema.spec.name}', '${schema.spec.name == \"\" ? timestamp(0) : timestamp(\"2026-01-02T03:04:05Z\")}']\ngood: ${schema.spec.name}";
    let mut cluster = cluster("name: string", status, &map("a", "a", "x"), json!({"name": "soon"}));
    cluster.settle();
    let status = cluster.objects[&cluster.key].status();
    assert_eq!((&status["times"], &status["good"]), (&json!(["2026-01-02T03:04:05Z"]), &json!("soon")));
    let says = status["conditions"].as_array().unwrap().iter().find(|condition| condition["type"] == "StatusProjected").unwrap();
    assert!(says["message"].as_str().unwrap().contains("status.times[0]: \"soon\" is not of the format date-time"), "{says}");
}

/// By its id a condition reads all that a selector finds, also nothing; by `each` every object.
#[test]
fn what_a_selector_finds_is_asked_as_a_whole_and_one_by_one() {
    let external = "- id: found\n  readyWhen: ['${found.size() > 1}', '${each.data.on == \"yes\"}']\n  externalRef: {apiVersion: v1, kind: ConfigMap, metadata: {selector: {matchLabels: {app: x}}}}\n";
    let mut cluster =
        cluster("name: string", "", &(external.to_owned() + &map("a", "a", "${found[0].metadata.name}")), json!({"name": "n"}));
    assert_eq!(cluster.settle().node("found").unwrap().state, NodeState::Unready);
    let put = |cluster: &mut Cluster, name: &str, on: &str| {
        let metadata = json!({"name": name, "namespace": "ns", "labels": {"app": "x"}});
        cluster.put(json!({"apiVersion": "v1", "kind": "ConfigMap", "metadata": metadata, "data": {"on": on}}));
    };
    put(&mut cluster, "one", "yes");
    assert_eq!(cluster.settle().node("found").unwrap().state, NodeState::Unready);
    put(&mut cluster, "two", "no");
    assert_eq!(cluster.settle().node("found").unwrap().state, NodeState::Unready);
    put(&mut cluster, "two", "yes");
    assert_eq!(cluster.settle().state, InstanceState::Active);
}

#[test]
fn what_no_variable_lacks_is_not_said_of_the_instance() {
    let mut cluster = cluster("name: string", "", &map("a", "a", "'${[1][5] == 1 ? \"a\" : \"b\"}'"), json!({"name": "n"}));
    let decision = cluster.settle();
    let message = &decision.node("a").unwrap().message;
    assert!(message.contains("index out of bounds: 5") && !message.contains("the instance does not set"), "{message}");
    let mut cluster = self::cluster("n: integer", "", &map("a", "a", "${string([1][schema.spec.n])}"), json!({"n": 5}));
    let message = cluster.settle().node("a").unwrap().message.clone();
    assert!(message.contains("index out of bounds: 5") && !message.contains("does not set index"), "{message}");
}

#[test]
fn descendants_that_are_instances_must_be_ready() {
    let mut cluster = cluster("", "", &map("a", "a", "x"), json!({"name": "v"}));
    cluster.seen.instance_kinds.insert(GroupVersionKind::new("", "v1", "ConfigMap").group_kind());
    let decision = cluster.settle();
    assert_eq!((decision.state, decision.ready), (InstanceState::Active, false));
    let key = cluster.objects.keys().find(|key| key.name == "a").unwrap().clone();
    cluster.seen.ready_instances.insert(key.clone(), true);
    assert!(cluster.settle().ready);
    cluster.seen.ready_instances.clear();
    cluster
        .objects
        .get_mut(&key)
        .unwrap()
        .0
        .insert("status".to_owned(), json!({"conditions": [{"type": "Ready", "status": "True"}]}));
    assert!(cluster.settle().ready);
}

#[test]
fn an_authors_conditions_replace_the_built_in_ones() {
    let status = "v: ${a.data.x}\nconditions:\n- \"${runtime.newCondition({type: 'Works', status: a.data.x == 'v' ? 'True' : 'False', reason: 'Checked', message: ''})}\"\n- \"${runtime.newCondition({type: 'Ready', status: runtime.condition(schema, 'ResourcesReady').status, reason: 'Mirror', message: ''})}\"";
    let mut cluster = cluster("name: string", status, &map("a", "a", "${schema.spec.name}"), json!({"name": "v"}));
    let decision = cluster.settle();
    let conditions = cluster.objects[&cluster.key].status()["conditions"].clone();
    let says: Vec<_> =
        conditions.as_array().unwrap().iter().map(|c| (c["type"].as_str().unwrap(), c["status"].as_str().unwrap())).collect();
    assert_eq!((decision.state, says), (InstanceState::Active, vec![("Works", "True"), ("Ready", "True")]));
    assert_eq!(conditions[0].get("message"), None);
    cluster.delete(&cluster.key.clone());
    let a = cluster.objects.keys().find(|key| key.name == "a").unwrap().clone();
    cluster.objects.get_mut(&a).unwrap().metadata_mut().insert("finalizers".to_owned(), json!(["x/y"]));
    cluster.settle();
    let conditions = cluster.objects[&cluster.key].status()["conditions"].clone();
    let says: Vec<_> =
        conditions.as_array().unwrap().iter().map(|c| (c["type"].as_str().unwrap(), c["status"].as_str().unwrap())).collect();
    assert_eq!(says, [("Works", "True"), ("Ready", "True"), ("ResourcesReady", "Unknown")]);
}

#[test]
fn secret_data_can_be_written_and_copied() {
    let secret = |id: &str, data: &str| {
        format!(
            "- id: {id}\n  template:\n    apiVersion: v1\n    kind: Secret\n    metadata:\n      name: {id}\n    data: {data}\n"
        )
    };
    let resources = secret("bytes", "{k: '${bytes(schema.spec.name)}', t: '${base64.encode(bytes(schema.spec.name))}'}")
        + &secret("copy", "${bytes.data}");
    let mut cluster = cluster("name: string", "text: ${string(bytes.data.k)}", &resources, json!({"name": "abc"}));
    let decision = cluster.settle();
    assert_eq!(decision.state, InstanceState::Active, "{:#?}", decision.nodes);
    let copy = cluster.objects.iter().find(|(key, _)| key.name == "copy").unwrap().1;
    assert_eq!(copy.at(&["data"]).unwrap(), &json!({"k": "YWJj", "t": "YWJj"}));
    assert_eq!(cluster.objects[&cluster.key].status()["text"], "abc");
}

/// A pass over 100 nodes with nothing to do: no action, and what it costs.
#[test]
fn show_03_idle_pass() {
    let resources: String =
        (0..100).map(|index| map(&format!("n{index}"), &format!("n{index}"), "${schema.spec.name}")).collect();
    let mut cluster = cluster("name: string", "", &resources, json!({"name": "v"}));
    cluster.settle();
    let started = std::time::Instant::now();
    let decision = crate::instance::decide(&cluster.graph, &cluster.seen);
    println!("SHOW 03 idle-pass {:.1} ms for 100 nodes", started.elapsed().as_secs_f64() * 1000.0);
    assert_eq!((decision.actions.len(), decision.state, decision.complete), (0, InstanceState::Active, true));
}

#[test]
fn an_absent_field_of_a_listed_input_is_named_too() {
    let resources = "- id: maps\n  forEach: [{n: '${schema.spec.items}'}]\n".to_owned()
        + &map("x", "m-${n.name}", "${n.text}").replace("- id: x\n", "");
    let spec = json!({"items": [{"name": "a"}]});
    let mut cluster = cluster("items: '[]object'", "", &resources, spec);
    let maps = cluster.settle().node("maps").unwrap().clone();
    assert_eq!(maps.state, NodeState::Failed);
    assert!(maps.message.contains("n.text"), "{}", maps.message);
}

#[test]
fn a_field_that_a_listed_object_may_still_get_is_waited_for() {
    let pods = "- id: pods\n  forEach: [{n: '${schema.spec.names}'}]\n  template:\n    apiVersion: v1\n    kind: Pod\n    metadata:\n      name: ${n}\n    spec:\n      containers: [{name: a, image: b}]\n";
    let maps = "- id: maps\n  forEach: [{p: '${pods}'}]\n".to_owned()
        + &map("x", "m-${p.metadata.name}", "${p.status.podIP}").replace("- id: x\n", "");
    let mut cluster = cluster("names: '[]string'", "", &(pods.to_owned() + &maps), json!({"names": ["a"]}));
    let maps = cluster.settle().node("maps").unwrap().clone();
    let expected = WaitsFor::Field { node: "p".to_owned(), path: "p.status.podIP".to_owned() };
    assert_eq!((maps.state, maps.waits_for), (NodeState::Pending, Some(expected)), "{}", maps.message);
}

/// Whoever looks at a dependent of what is not there finds the fields that it waits for in its own message.
#[test]
fn who_reads_a_missing_reference_names_the_fields() {
    let external = "- id: ext\n  externalRef: {apiVersion: v1, kind: ConfigMap, metadata: {name: x}}\n";
    let whole = map("c", "c", "${json.marshal(ext)}");
    let resources = external.to_owned()
        + &map("a", "a", "${ext.data.url}")
        + &map("b", "b", "${ext.metadata.name + ext.data.url + ext.data.user + ext.data.key}")
        + &whole
        + &map("d", "d", "x").replace("- id: d", "- id: d\n  includeWhen: [\"${ext.data.on == 'yes'}\"]");
    let mut cluster = cluster("name: string", "", &resources, json!({"name": "n"}));
    let decision = cluster.settle();
    let said = |id: &str| decision.node(id).unwrap().message.clone();
    assert_eq!(said("ext"), "waiting for external reference \"ext\": ConfigMap/ns/x not found");
    let dependent = "dependent node \"ext\" not ready: waiting for data";
    assert_eq!(said("a"), format!("{dependent}, field ext.data.url (data pending)"));
    assert_eq!(said("b"), format!("{dependent}, fields ext.data.key, ext.data.url, ext.data.user, … (data pending)"));
    assert_eq!(said("c"), format!("{dependent} (data pending)"));
    assert_eq!(said("d"), "includeWhen dependency \"ext\" not ready: waiting for data, field ext.data.on (data pending)");
    assert_eq!(decision.node("a").unwrap().waits_for, Some(WaitsFor::Node("ext".to_owned())));
}

/// kro does not see what a macro walks where its variable has that name (kro.md section 7).
#[test]
fn a_range_is_read_outside_of_the_variable_that_hides_it() {
    let status = "a: ${schema.spec.list.map(schema, schema + '!')}\nb: ${cel.bind(schema, schema.spec.list, schema[0])}\nc: ${a.data.map(a, a)}";
    let resources = map("b", "b", "${a.data.map(a, a)[0]}") + &map("a", "a", "v");
    let mut cluster = cluster("list: '[]string'", status, &resources, json!({"list": ["x"]}));
    assert_eq!(cluster.graph.order(), ["a", "b"]);
    cluster.settle();
    let status = cluster.objects[&cluster.key].status();
    assert_eq!((&status["a"], &status["b"], &status["c"]), (&json!(["x!"]), &json!("x"), &json!(["x"])));
}

/// In kro what an object's schema describes is no zero value, whatever is in it.
#[test]
fn what_is_empty_is_a_zero_value_wherever_it_is_from() {
    let template =
        "${string(optional.ofNonZeroValue(schema.spec.list).hasValue() || optional.ofNonZeroValue(schema.spec.map).hasValue())}";
    let mut cluster = cluster(
        "list: '[]string'\nmap: map[string]string",
        "x: ${a.data.x}",
        &map("a", "a", template),
        json!({"list": [], "map": {}}),
    );
    cluster.settle();
    assert_eq!(cluster.objects[&cluster.key].status()["x"], "false");
}

/// Kubernetes writes names that are none of the language with escapes; what is observed has them plain.
#[test]
fn names_with_escapes_are_read_in_every_way() {
    let spec = "'my-key': string\n'a.b': string\n'in': string\n'x/y': {z-z: string}";
    let template = "${schema.spec.my__dash__key + schema.spec.?a__dot__b.orValue('') + schema.spec.__in__ \
                    + schema.spec.x__slash__y.z__dash__z + string(has(schema.spec.my__dash__key))}";
    let status = "again: ${a.data['x-y']}";
    let resources = map("a", "a", template).replace("x: $", "x-y: $");
    let values = json!({"my-key": "k", "a.b": "b", "in": "i", "x/y": {"z-z": "z"}});
    let mut cluster = cluster(spec, status, &resources, values);
    let decision = cluster.settle();
    assert_eq!(decision.state, InstanceState::Active, "{:#?}", decision.nodes);
    assert_eq!(cluster.objects[&cluster.key].status()["again"], "kbiztrue");
}
