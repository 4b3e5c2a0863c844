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

/// What plinth promises to do better than kro, sentence by sentence, and the tests that hold it.
const BETTER: &[(&str, &[&str])] = &[
    (
        "a kind that is not served yet is deferred, the rest goes on",
        &[
            "the_distributions_definition_waits_for_the_kinds_of_the_others",
            "a_deferred_node_waits_for_its_kind_and_the_others_run",
        ],
    ),
    (
        "all errors at once, in a stable order, with path, line, column and hint",
        &[
            "all_mistakes_are_found_at_once_in_the_order_of_the_document",
            "one_mistake_hides_no_other",
            "one_mistake_in_a_string_hides_no_other",
            "mistakes_in_any_scalar_have_their_line_and_column",
            "the_place_is_marked_under_its_character",
            "misspelt_functions_have_a_hint",
        ],
    ),
    (
        "a definition without spec does not panic and can be deleted",
        &["a_definition_without_spec_is_refused_not_fatal", "a_definition_without_spec_says_so_and_can_be_deleted"],
    ),
    ("a changed CRD is seen at once", &["show_03_upstream"]),
    (
        "an absent optional input is an error with the field's name",
        &["an_absent_input_is_named_and_does_not_wait_for_ever", "an_absent_field_of_a_listed_input_is_named_too"],
    ),
    ("pending names the exact field", &["a_missing_field_is_named", "pending_names_what_is_missing"]),
    (
        "independent nodes go on while one waits",
        &["it_waits_for_the_repository_and_goes_on_where_it_can", "nodes_that_wait_are_listed_beside_those_that_have_failed"],
    ),
    ("secret data can be templated", &["secret_data_can_be_written_and_copied"]),
    ("growing a collection rewrites no other item", &["a_growing_collection_leaves_its_items_alone"]),
    ("library names cannot be shadowed by ids", &["computes_values"]),
    (
        "deletion never gets stuck on a missing reference",
        &["children_go_in_reverse_order_and_the_finalizer_last", "show_03_upstream"],
    ),
    ("mistakes in markers and defaults are found at compile time", &["what_the_api_server_would_refuse_is_found_here"]),
    ("a refused breaking change changes nothing at all", &["a_refused_breaking_change_changes_nothing"]),
    ("every change of a schema reaches the CRD or is refused", &["what_kro_does_not_see_is_seen", "no_difference_is_overlooked"]),
    (
        "a hard error in a status expression is a condition, the rest is written",
        &["a_failing_status_expression_is_a_condition_and_the_rest_is_written"],
    ),
    (
        "ACTIVE is never shown while Ready is False, nor for a suspended instance",
        &["a_suspended_instance_is_left_alone_and_never_active", "show_03_properties"],
    ),
    ("waiting makes no request, and 300 waiting instances hold up nobody", &["show_03_waiting"]),
    ("a list made from a map has a fixed order", &["evaluation_is_deterministic"]),
    (
        "a definition with live instances waits and says on whom",
        &["an_instance_goes_after_its_children_and_a_definition_after_its_instances"],
    ),
    ("names over 63 characters work", &["a_long_name_is_known_by_its_label", "every_object_name_becomes_a_label_value"]),
    ("an edit of an instance's labels is seen", &["show_03_upstream"]),
    (
        "where being better would break what kro accepts, kro's meaning stays and a warning is given",
        &[
            "what_kro_lets_through_is_a_warning",
            "oddities_are_warnings",
            "a_condition_that_reads_bytes_is_warned_of",
            "a_key_that_kubectl_reads_otherwise_is_a_warning",
        ],
    ),
    ("every difference stands in the document with its reason", &["the_tests_that_hold_differences_are_there"]),
];

/// Ends of the names of figures, which look like those of tests.
const FIGURES: [&str; 3] = ["_total", "_seconds", "_size"];

/// Words of a document that are names of tests: in backticks, with two underscores at least. One that ends in `…` is a beginning.
fn named(text: &str) -> Vec<&str> {
    let quoted = text.split('`').skip(1).step_by(2).map(|name| name.rsplit("::").next().unwrap_or(name));
    let is_name = |name: &&str| {
        let letters = name.trim_end_matches('…');
        let is_figure = FIGURES.iter().any(|end| letters.ends_with(end));
        !is_figure
            && letters.matches('_').count() > 1
            && letters.bytes().all(|byte| byte.is_ascii_lowercase() || byte == b'_' || byte.is_ascii_digit())
    };
    quoted.filter(is_name).collect()
}

#[test]
fn the_tests_that_hold_differences_are_there() {
    let text = std::fs::read_to_string(workspace().join("docs/differences.md")).unwrap();
    let (tests, named) = (tests(), named(&text));
    assert!(named.len() > 50, "only {} tests are named", named.len());
    let is_there = |name: &str| match name.strip_suffix('…') {
        Some(beginning) => tests.iter().any(|test| test.starts_with(beginning)),
        None => tests.contains(name),
    };
    let missing: Vec<_> = named.iter().filter(|name| !is_there(name)).collect();
    assert!(missing.is_empty(), "docs/differences.md names tests that are not there: {missing:?}");
}

#[test]
fn show_03_better() {
    let tests = tests();
    let held = BETTER.iter().filter(|(_, by)| by.iter().all(|test| tests.contains(*test))).count();
    for (promise, by) in BETTER {
        println!("  {promise}: {}", by.join(", "));
        by.iter().for_each(|test| assert!(tests.contains(*test), "there is no test {test}"));
    }
    println!("SHOW 03 better {held}/{} promises with a test", BETTER.len());
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
    let value = object.as_value();
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
