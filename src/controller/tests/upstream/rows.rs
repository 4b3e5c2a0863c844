//! The rows of `rows.yaml`, each on control planes of its own.

use std::{
    collections::BTreeSet,
    path::{Path, PathBuf},
};

use futures::{StreamExt, stream};
use plinth_api::Object;
use plinth_engine::yaml;
use serde_json::{Value, json};

use super::stage::{Stage, key};

/// Rows at the same time.
const AT_ONCE: usize = 4;
/// Rows of the reference.
const ROWS: usize = 62;

fn workspace() -> PathBuf {
    Path::new(env!("CARGO_MANIFEST_DIR")).join("../..")
}

fn probe(name: &str) -> Option<String> {
    let default = || workspace().join("../shared/data");
    let root = std::env::var_os("PLINTH_DATA").map_or_else(default, PathBuf::from);
    std::fs::read_to_string(root.join("kro/probes/inputs").join(name)).ok()
}

/// Names of all tests in the sources.
fn tests() -> BTreeSet<String> {
    let mut names = BTreeSet::new();
    let mut folders = vec![workspace().join("src"), workspace().join("tests")];
    while let Some(folder) = folders.pop() {
        for entry in std::fs::read_dir(folder).unwrap().flatten() {
            let path = entry.path();
            if path.is_dir() {
                folders.push(path);
            } else if path.extension().is_some_and(|end| end == "rs") {
                let text = std::fs::read_to_string(&path).unwrap();
                let mut is_test = false;
                for line in text.lines().map(str::trim_start) {
                    is_test |= line.starts_with("#[test]") || line.starts_with("#[tokio::test");
                    if let (true, Some((_, rest))) = (is_test, line.split_once("fn ")) {
                        names.extend(rest.split_once('(').map(|(name, _)| name.to_owned()));
                        is_test = false;
                    }
                }
                // Properties of proptest! have no attribute that says so on the line before.
                if text.contains("proptest!") {
                    names.extend(
                        text.split("fn ").skip(1).filter_map(|rest| rest.split_once('(')).map(|(name, _)| name.to_owned()),
                    );
                }
            }
        }
    }
    names
}

/// What became of a row.
enum Outcome {
    Holds,
    Open(String),
    Fails(Vec<String>),
}

#[tokio::test(flavor = "multi_thread", worker_threads = 2)]
async fn show_03_upstream() {
    let documents = yaml::documents(include_str!("rows.yaml")).unwrap();
    let rows = documents[0].value.as_array().unwrap().clone();
    let numbers: Vec<_> = rows.iter().map(|row| row["row"].as_u64().unwrap()).collect();
    assert_eq!(numbers, (1..=ROWS as u64).collect::<Vec<_>>(), "every row of the reference is here");
    if probe("s01-required-false.yaml").is_none() {
        return println!("SHOW 03 upstream 0/{ROWS} (NOT RUN: no probes at PLINTH_DATA)");
    }
    let tests = tests();
    let only = std::env::var("PLINTH_ROW").ok().and_then(|row| row.parse::<u64>().ok());
    let wanted = rows.iter().filter(|row| only.is_none_or(|only| row["row"] == only));
    let outcomes: Vec<_> = stream::iter(wanted.map(|row| judged(row, &tests))).buffered(AT_ONCE).collect().await;
    let (mut holds, mut failed) = (0, Vec::new());
    for (row, outcome) in outcomes {
        let name = format!("row {} ({}): {}", row["row"], row["issues"].as_str().unwrap(), row["holds"].as_str().unwrap());
        match outcome {
            Outcome::Holds => {
                holds += 1;
                let tests: Vec<&str> = row["tests"].as_array().into_iter().flatten().filter_map(Value::as_str).collect();
                println!("  {name}{}", if tests.is_empty() { String::new() } else { format!(" [{}]", tests.join(", ")) });
            }
            Outcome::Open(why) => println!("  OPEN {name}: {why}"),
            Outcome::Fails(why) => failed.push(format!("{name}\n{}", why.join("\n"))),
        }
    }
    println!("SHOW 03 upstream {holds}/{ROWS}");
    assert!(failed.is_empty(), "{}", failed.join("\n\n"));
}

async fn judged<'a>(row: &'a Value, tests: &BTreeSet<String>) -> (&'a Value, Outcome) {
    if let Some(why) = row["open"].as_str() {
        return (row, Outcome::Open(why.to_owned()));
    }
    let mut faults = Vec::new();
    for test in row["tests"].as_array().into_iter().flatten() {
        if !tests.contains(test.as_str().unwrap()) {
            faults.push(format!("there is no test {test}"));
        }
    }
    let cases = row["cases"].as_array().map(Vec::as_slice).unwrap_or_default();
    if cases.is_empty() && row["tests"].as_array().is_none_or(Vec::is_empty) {
        faults.push("nothing holds it".to_owned());
    }
    for (index, case) in cases.iter().enumerate() {
        if let Err(why) = run(case).await {
            faults.push(format!("case {index}: {why}"));
        }
    }
    (row, if faults.is_empty() { Outcome::Holds } else { Outcome::Fails(faults) })
}

async fn run(case: &Value) -> Result<(), String> {
    let text = match case["probe"].as_str() {
        Some(name) => probe(name).ok_or(format!("no probe {name}"))?,
        None => case["text"].as_str().ok_or("neither probe nor text")?.to_owned(),
    };
    let documents = yaml::documents_with_duplicates(&text).map_err(|error| error.to_string())?;
    let stage = Stage::set().await;
    let done = steps(&stage, case, documents.into_iter().map(|document| document.value).collect()).await;
    stage.stop().await;
    done
}

async fn steps(stage: &Stage, case: &Value, documents: Vec<Value>) -> Result<(), String> {
    for object in case["before"].as_array().into_iter().flatten() {
        stage.apply(object.clone()).await?;
    }
    let is_instance = |value: &Value| {
        let version = value["apiVersion"].as_str().unwrap_or_default();
        version.starts_with("kro.run/") && value["kind"] != "ResourceGraphDefinition"
    };
    let (instances, others): (Vec<Value>, Vec<Value>) = documents.into_iter().partition(is_instance);
    for object in others {
        stage.apply(object).await?;
    }
    for (index, step) in case["steps"].as_array().into_iter().flatten().enumerate() {
        let done = match step.as_str() {
            Some("create") => create(stage, &instances).await,
            _ => take(stage, step).await,
        };
        done.map_err(|why| format!("step {index} {step}: {why}"))?;
    }
    Ok(())
}

async fn create(stage: &Stage, instances: &[Value]) -> Result<(), String> {
    for instance in instances {
        stage.apply(instance.clone()).await?;
    }
    Ok(())
}

async fn take(stage: &Stage, step: &Value) -> Result<(), String> {
    let (word, about) =
        step.as_object().and_then(|map| map.iter().find(|(word, _)| WORDS.contains(&word.as_str()))).ok_or("no such step")?;
    let named = || about.as_str().unwrap_or_else(|| panic!("{step} names nothing"));
    let object = || key(named());
    match word.as_str() {
        "apply" => stage.apply(about.clone()).await,
        "active" => {
            stage.until(&[key(&format!("RGD/{}", named()))], |object| is(object, step, &json!({"/status/state": "Active"}))).await
        }
        "rejected" => accepted(stage, named(), "False", step).await,
        "deferred" => accepted(stage, named(), "Unknown", step).await,
        "until" => stage.until(&[object()], |object| is(object, step, &step["has"])).await,
        "some" => {
            let keys: Vec<_> = about.as_array().unwrap().iter().map(|one| key(one.as_str().unwrap())).collect();
            stage.until(&keys, |object| is(object, step, &step["has"])).await
        }
        "gone" => stage.until(&[object()], |object| object.is_none()).await,
        "absent" => {
            stage.rest().await;
            if stage.get(&object()).await.is_none() { Ok(()) } else { Err("it is there".to_owned()) }
        }
        "quiet" => quiet(stage, named()).await,
        "patch" => stage.change(&object(), |value| merge(value, &step["with"])).await,
        "release" => stage.change(&object(), |value| value["metadata"]["finalizers"] = json!([])).await,
        "status" => stage.status(&object(), &step["with"]).await,
        "copy" => copy(stage, named(), step["to"].as_str().unwrap()).await,
        _ => stage.delete(&object()).await,
    }
}

const WORDS: [&str; 14] = [
    "apply", "active", "rejected", "deferred", "until", "some", "gone", "absent", "quiet", "patch", "release", "status", "copy",
    "delete",
];

async fn accepted(stage: &Stage, name: &str, status: &str, step: &Value) -> Result<(), String> {
    let says = |object: Option<&Object>| {
        let conditions =
            object.and_then(|object| object.status()["conditions"].as_array()).map(Vec::as_slice).unwrap_or_default();
        let accepted = conditions.iter().any(|one| one["type"] == "GraphAccepted" && one["status"] == status);
        accepted && is(object, step, &Value::Null)
    };
    stage.until(&[key(&format!("RGD/{name}"))], says).await
}

/// Whether an object has what a step says.
fn is(object: Option<&Object>, step: &Value, has: &Value) -> bool {
    let Some(object) = object else { return false };
    let value = Value::Object(object.0.clone());
    let status = object.status().to_string();
    has.as_object().into_iter().flatten().all(|(path, wanted)| value.pointer(path) == Some(wanted))
        && step["lacks"].as_array().into_iter().flatten().all(|path| value.pointer(path.as_str().unwrap()).is_none())
        && step["says"].as_array().into_iter().flatten().all(|text| status.contains(text.as_str().unwrap()))
}

/// At rest an object is not written any more.
async fn quiet(stage: &Stage, name: &str) -> Result<(), String> {
    stage.rest().await;
    let version = |object: Option<Object>| object.and_then(|object| object.resource_version().map(str::to_owned));
    let before = version(stage.get(&key(name)).await).ok_or("it is not there")?;
    tokio::time::sleep(std::time::Duration::from_millis(500)).await;
    stage.rest().await;
    let after = version(stage.get(&key(name)).await);
    if after.as_ref() == Some(&before) { Ok(()) } else { Err(format!("its version was {before} and is {after:?}")) }
}

/// What operators do that hand their owner's labels on to objects of their own.
async fn copy(stage: &Stage, from: &str, to: &str) -> Result<(), String> {
    let object = stage.get(&key(from)).await.ok_or("it is not there")?;
    let metadata = json!({"name": to, "namespace": super::stage::NAMESPACE, "labels": object.labels()});
    stage.apply(json!({"apiVersion": "v1", "kind": "ConfigMap", "metadata": metadata})).await
}

/// A merge patch: `null` takes a field away.
fn merge(into: &mut Value, patch: &Value) {
    match (into, patch) {
        (Value::Object(into), Value::Object(patch)) => {
            for (name, value) in patch {
                if value.is_null() {
                    into.remove(name);
                } else {
                    merge(into.entry(name.clone()).or_insert(Value::Null), value);
                }
            }
        }
        (into, patch) => *into = patch.clone(),
    }
}
