//! Instances that kro ran on a real API server: the same children, the same metadata, the same status.
//!
//! The server's part (defaults, status) is played by the recorded children; what is compared is everything that we ask for.

use std::collections::{BTreeMap, BTreeSet};

use plinth_api::{ClusterKey, Object, ObjectKey};
use serde_json::{Value, json};

use crate::{
    graph::tests::corpus::COMPILED,
    naming::keys,
    testing::{cluster::Cluster, data},
};

/// Recordings that end differently on purpose: part of the file's name, the only fields that may differ, and why.
const EXCEPTIONS: &[(&str, &[&str], &str)] = &[
    ("vpc-lattice__rg-webapp.json", STATE, INPUT),
    ("tenant-application-rgd.json", STATE, INPUT),
    ("30-rgd-chaining.md-2.json", STATE, INPUT),
    ("00-overview.md-0.json", STATE, INPUT),
    ("web-app-ingress.md-0.json", STATE, INPUT),
    (
        "ec2-crd-group.json",
        &["status.conditions"],
        "recorded while state was ACTIVE and Ready still False (\"cluster mutated\"), which ours never says",
    ),
];
const STATE: &[&str] = &["status.state"];
const INPUT: &str = "an input that the instance does not set is an error here, for kro it is waited for without end";

/// Texts of recordings that are seeded with the instance's UID, of which a recording has a placeholder; with that as the seed they
/// are all [`SEEDED`].
const SEEDS: [&str; 2] = ["6rawi5lv6r", "vt5elxxqvt"];
const SEEDED: &str = "7vldm0o57v";

/// A point in time; recordings have `<time>` in the place of all of them.
const TIME: &str = "2026-01-01T00:00:00Z";

/// What was there besides the children when a recording was made, and the statuses that other controllers gave them (the
/// recorded children have none).
fn world(file: &str) -> (Vec<Value>, Vec<(&'static str, Value)>) {
    let available = json!([{"lastTransitionTime": TIME, "lastUpdateTime": TIME, "message": "shim", "reason": "MinimumReplicasAvailable",
        "status": "True", "type": "Available"}]);
    let deployment = |replicas: i64| ("Deployment", json!({"availableReplicas": replicas, "conditions": available.clone()}));
    let demo = json!({"apiVersion": "v1", "kind": "ConfigMap", "metadata": {"name": "demo", "namespace": "default"}, "data": {"ECHO_VALUE": "Hello"}});
    match file {
        file if file.contains("additionalPrinterColumns") => (Vec::new(), vec![deployment(3)]),
        file if file.contains("cel-functions") => (Vec::new(), vec![deployment(1)]),
        file if file.contains("job-example") => (Vec::new(), vec![("Job", json!({"completionTime": TIME}))]),
        file if file.contains("each-based_readyWhen") => (Vec::new(), vec![("Pod", json!({"phase": "Running"}))]),
        file if file.contains("30-rgd-chaining.md-1") => {
            (Vec::new(), vec![("StatefulSet", json!({"readyReplicas": 1, "replicas": 1}))])
        }
        file if file.contains("optionals") => (vec![demo], Vec::new()),
        _ => (Vec::new(), Vec::new()),
    }
}

struct Golden {
    children: BTreeMap<ObjectKey, Object>,
    input: Object,
    instance: Object,
}

fn read(value: &Value) -> Golden {
    let object = |value: &Value| Object::from_value(value.clone()).unwrap();
    let children = value["children"].as_array().unwrap().iter().map(object);
    let children = children.map(|child| (child.key(&ClusterKey::host()).unwrap(), child)).collect();
    Golden { children, input: object(&value["input"]), instance: object(&value["instance"]) }
}

/// Runs one recording; answers with all differences, each a path and what is there.
fn run(file: &str, value: &Value) -> Result<Differences, String> {
    let golden = read(value);
    let compiled = COMPILED.iter().find(|(verdict, _)| verdict["path"] == value["path"]).ok_or("not in the corpus")?;
    let graph = compiled.1.graph().ok_or("does not compile")?.clone();
    let mut instance = golden.input.clone();
    instance.0.insert("spec".to_owned(), golden.instance.spec().clone());
    let metadata = instance.metadata_mut();
    metadata.insert("uid".to_owned(), json!("<uid:instance>"));
    metadata.insert("generation".to_owned(), json!(1));
    let mut cluster = Cluster::of(graph, instance);
    let (others, statuses) = world(file);
    others.into_iter().for_each(|object| drop(cluster.put(object)));
    let recorded = golden.children.clone();
    cluster.controller = Box::new(move |object| {
        let key = object.key(&ClusterKey::host()).unwrap();
        let Some(child) = recorded.get(&key) else { return };
        for (name, value) in child.0.iter().filter(|(name, _)| *name != "metadata" && !name.starts_with('_')) {
            object.0.insert(name.clone(), value.clone());
        }
        if let Some((_, status)) = statuses.iter().find(|(kind, _)| *kind == key.gvk.kind) {
            object.0.insert("status".to_owned(), status.clone());
        }
    });
    let there: Vec<ObjectKey> = golden.children.keys().cloned().collect();
    cluster.refuses = Box::new(move |key| !there.contains(key));
    cluster.settle();
    Ok(compare(&golden, &cluster))
}

/// What differs, by path.
type Differences = BTreeMap<String, String>;

fn compare(golden: &Golden, cluster: &Cluster) -> Differences {
    let mut found = Differences::new();
    for (key, child) in &golden.children {
        let Some(ours) = cluster.asked.get(key) else {
            found.insert(key.to_string(), "is not applied".to_owned());
            continue;
        };
        contained(ours.as_value(), child.as_value(), &key.to_string(), &mut found);
        for list in ["labels", "annotations"] {
            let (ours, theirs) = (metadata(ours, list), metadata(child, list));
            contained(&ours, &theirs, &format!("{key} {list}"), &mut found);
            equal(&keys_of(&ours), &keys_of(&theirs), &format!("{key} {list}"), &mut found);
        }
    }
    let ours = &cluster.objects[&cluster.key];
    for list in ["labels", "annotations"] {
        equal(&metadata(ours, list), &metadata(&golden.instance, list), &format!("instance {list}"), &mut found);
    }
    let (ours, theirs) = (status(ours), status(&golden.instance));
    let names: BTreeSet<&String> = [&ours, &theirs].into_iter().filter_map(Value::as_object).flat_map(|map| map.keys()).collect();
    for name in names {
        equal(&ours[name], &theirs[name], &format!("status.{name}"), &mut found);
    }
    found
}

/// Labels or annotations with kro's four values in the place of ours (contracts 11) and without UIDs.
fn metadata(object: &Object, list: &str) -> Value {
    let mut map = object.at(&["metadata", list]).cloned().unwrap_or_else(|| json!({}));
    let theirs = [
        (keys::MANAGED_BY, "kro"),
        (keys::VERSION, "v0.9.4"),
        (keys::APPLYSET_TOOLING, "kro/v0.9.4"),
        (keys::RGD_ID, "<uid:rgd>"),
    ];
    for (key, value) in theirs {
        if map.get(key).is_some() {
            map[key] = json!(value);
        }
    }
    map
}

/// Names of labels or annotations, without those that the server adds.
fn keys_of(map: &Value) -> Value {
    let names = map.as_object().unwrap().keys().filter(|name| !name.starts_with("kubernetes.io/"));
    json!(names.collect::<BTreeSet<_>>())
}

/// A status without times, and without the words of what is not as it should be.
fn status(object: &Object) -> Value {
    let mut status: Value = serde_json::from_str(&object.status().to_string().replace(TIME, "<time>")).unwrap();
    for condition in status["conditions"].as_array_mut().into_iter().flatten() {
        let condition = condition.as_object_mut().unwrap();
        condition.remove("lastTransitionTime");
        if condition["status"] != "True" {
            condition.remove("message");
        }
    }
    status
}

/// Everything of ours is in theirs; quantities and numbers may be written in another way.
fn contained(ours: &Value, theirs: &Value, path: &str, found: &mut Differences) {
    match (ours, theirs) {
        (Value::Object(ours), Value::Object(theirs)) => {
            // The server turns a Secret's `stringData` into `data`.
            let fields = ours.iter().filter(|(name, _)| *name != "stringData");
            let fields =
                fields.filter(|(name, _)| !["labels", "annotations"].contains(&name.as_str()) || !path.ends_with("metadata"));
            for (name, value) in fields {
                contained(value, theirs.get(name).unwrap_or(&Value::Null), &format!("{path}.{name}"), found);
            }
        }
        (Value::Array(ours), Value::Array(theirs)) if ours.len() == theirs.len() => {
            for (index, (ours, theirs)) in ours.iter().zip(theirs).enumerate() {
                contained(ours, theirs, &format!("{path}[{index}]"), found);
            }
        }
        (Value::Number(ours), Value::Number(theirs)) if ours.as_f64() == theirs.as_f64() => {}
        _ => equal(ours, theirs, path, found),
    }
}

fn equal(ours: &Value, theirs: &Value, path: &str, found: &mut Differences) {
    if ours != theirs {
        found.insert(path.to_owned(), format!("ours {ours}, kro {theirs}"));
    }
}

/// The exception that covers every difference of a recording, if there is one.
fn exception(file: &str, differences: &Differences) -> Option<&'static str> {
    let (_, allowed, why) = EXCEPTIONS.iter().find(|(part, ..)| file.contains(part))?;
    differences.keys().all(|path| allowed.iter().any(|end| path.ends_with(end))).then_some(*why)
}

#[test]
fn show_03_golden_instances() {
    let Ok(folder) = std::fs::read_dir(data("kro/golden-instances")) else {
        return println!("SHOW 03 golden-instances 0/0 (no corpus at PLINTH_DATA)");
    };
    let mut files: Vec<_> = folder.map(|file| file.unwrap().path()).collect();
    files.sort();
    let (mut equal, mut unexpected) = (0, Vec::new());
    let mut lines = Vec::new();
    for file in &files {
        let text = std::fs::read_to_string(file).unwrap();
        let text = SEEDS.iter().fold(text, |text, seed| text.replace(seed, SEEDED));
        let value: Value = serde_json::from_str(&text).unwrap();
        let name = file.file_name().unwrap().to_string_lossy().into_owned();
        let differences = run(&name, &value).unwrap_or_else(|why| Differences::from([("all".to_owned(), why)]));
        if differences.is_empty() {
            equal += 1;
            continue;
        }
        if let Some(why) = exception(&name, &differences) {
            lines.push(format!("  all but {:?} equal in {name}: {why}", differences.keys().collect::<Vec<_>>()));
        } else {
            lines.push(format!("  {name}: {differences:#?}"));
            unexpected.push(name);
        }
    }
    println!(
        "SHOW 03 golden-instances {equal}/{} ({} equal but for the fields named)",
        files.len(),
        lines.len() - unexpected.len()
    );
    lines.iter().for_each(|line| println!("{line}"));
    assert!(unexpected.is_empty(), "{unexpected:#?}");
}
