//! SHOW 02: scripts of requests give the same answers from the embedded API server and from a real one.
//!
//! A step has a `name` and `do: METHOD PATH` or `watch: PATH`; `body` (JSON), `apply` (an apply patch), `text` (as it is,
//! with `type`) or `large` (bytes) or `deep` (levels); `user` and `group` to impersonate, `accept` for the media types that are wanted; `until` a code, or `established`, to wait for what the real server
//! does by and by; `crd`, `schema` and `version` are laid over a good CRD, its schema and its version, which is posted as a dry
//! run unless `run: wet`; `cr` is the spec of an object of it, `pod` of a pod and `owner` the owner of a ConfigMap, all dry runs;
//! `ignore` fields (names with blanks between) whose words come from a library of the other language; and `differs` with the reason why
//! the answers are not the same, which the test holds too. In texts `{ns}` is the script's namespace, and `{rv:STEP}`,
//! `{uid:STEP}` and `{continue:STEP}` are taken from an earlier answer. `SCRIPT=NAME` runs one script, and `ANSWERS=1` prints what
//! the real server says to each step.
#![expect(clippy::unwrap_used, reason = "helpers of tests")]

use std::{collections::BTreeMap, path::Path, time::Duration};

use bytes::Bytes;
use http::Request;
use http_body_util::BodyExt;
use kube::client::Body;
use plinth_cluster::embedded::{Embedded, Options};
use plinth_support::{ApiServer, Identity};
use regex::Regex;
use serde_json::{Value, json};

const FILES: [&str; 15] = [
    "core.yaml",
    "access.yaml",
    "crds.yaml",
    "names.yaml",
    "rules.yaml",
    "identity.yaml",
    "options.yaml",
    "schemas.yaml",
    "values.yaml",
    "scale.yaml",
    "requests.yaml",
    "contents.yaml",
    "ratchet.yaml",
    "merging.yaml",
    "quantities.yaml",
];
const PATIENCE: Duration = Duration::from_secs(20);

#[derive(Clone, Debug, PartialEq)]
struct Answer {
    code: u16,
    body: Value,
}

/// One server with what it answered so far.
struct Side {
    client: kube::Client,
    namespace: String,
    answers: BTreeMap<String, Value>,
}

impl Side {
    async fn step(&mut self, step: &Value) -> Answer {
        let deadline = tokio::time::Instant::now() + PATIENCE;
        loop {
            let answer = self.send(step).await;
            let done = match step["until"].as_str() {
                None => true,
                Some(code) if code.starts_with(char::is_numeric) => code.parse() == Ok(answer.code),
                Some(condition) => {
                    let (kind, status) = condition.split_once('=').unwrap_or((condition, "True"));
                    let conditions = answer.body["status"]["conditions"].as_array().cloned().unwrap_or_default();
                    conditions.iter().any(|condition| condition["type"] == kind && condition["status"] == status)
                }
            };
            if done || tokio::time::Instant::now() > deadline {
                let name = step["name"].as_str().unwrap().to_owned();
                self.answers.insert(name, answer.body.clone());
                return answer;
            }
            tokio::time::sleep(Duration::from_millis(100)).await;
        }
    }

    async fn send(&self, step: &Value) -> Answer {
        let short = shorthand(step);
        let step = short.as_ref().unwrap_or(step);
        let (method, path) = match step["do"].as_str() {
            Some(line) => line.split_once(' ').unwrap(),
            None => ("GET", step["watch"].as_str().unwrap()),
        };
        let (kind, body) = self.body(step);
        let mut request = Request::builder().method(method).uri(self.fill(path)).header("user-agent", "differential/1");
        if let Some(kind) = kind {
            request = request.header("content-type", kind);
        }
        for (field, header) in [("user", "impersonate-user"), ("group", "impersonate-group"), ("accept", "accept")] {
            if let Some(value) = step[field].as_str() {
                request = request.header(header, value);
            }
        }
        let response = self.client.send(request.body(Body::from(body)).unwrap()).await.unwrap();
        let code = response.status().as_u16();
        let bytes = tokio::time::timeout(PATIENCE, response.into_body().collect()).await.unwrap().unwrap().to_bytes();
        Answer { code, body: if step["watch"].is_string() { events(&bytes) } else { read(&bytes) } }
    }

    fn body(&self, step: &Value) -> (Option<String>, Vec<u8>) {
        let given = step["type"].as_str().map(str::to_owned);
        if let Some(size) = step["large"].as_u64() {
            let text = "x".repeat(usize::try_from(size).unwrap());
            let body = json!({"metadata": {"name": "large"}, "data": {"k": text}});
            return (Some("application/json".to_owned()), body.to_string().into_bytes());
        }
        if let Some(depth) = step["deep"].as_u64() {
            let depth = usize::try_from(depth).unwrap();
            let body = format!(r#"{{"metadata": {{"name": "deep-{depth}"}}, "x": {}{}}}"#, "[".repeat(depth), "]".repeat(depth));
            return (Some("application/json".to_owned()), body.into_bytes());
        }
        for (field, kind) in [("body", "application/json"), ("apply", "application/apply-patch+yaml")] {
            if !step[field].is_null() {
                return (given.or(Some(kind.to_owned())), self.fill(&step[field].to_string()).into_bytes());
            }
        }
        let text = step["text"].as_str();
        (given.or_else(|| text.map(|_| "application/json".to_owned())), text.unwrap_or_default().as_bytes().to_vec())
    }

    fn fill(&self, text: &str) -> String {
        let text = text.replace("{ns}", &self.namespace);
        let places = Regex::new(r"\{(rv|uid|continue):([^}]*)\}").unwrap();
        let fill = |found: &regex::Captures<'_>| {
            let metadata = &self.answers[&found[2]]["metadata"];
            let field = match &found[1] {
                "rv" => "resourceVersion",
                "uid" => "uid",
                _ => "continue",
            };
            metadata[field].as_str().unwrap_or_default().to_owned()
        };
        places.replace_all(&text, fill).into_owned()
    }
}

/// A step that is said by what is laid over something good, written out.
fn shorthand(step: &Value) -> Option<Value> {
    let has = |name: &str| !step[name].is_null();
    let post = |path: &str, body: Value| json!({"do": format!("POST {path}?dryRun=All"), "body": body});
    if has("crd") || has("schema") || has("version") {
        let path = "/apis/apiextensions.k8s.io/v1/customresourcedefinitions";
        let mut posted = post(path, definition(step));
        if step["run"] == "wet" {
            posted["do"] = json!(format!("POST {path}"));
        }
        return Some(posted);
    }
    if has("cr") {
        let body = json!({"apiVersion": "values.test/v1", "kind": "Bad", "metadata": {"name": "a"}, "spec": step["cr"]});
        return Some(post("/apis/values.test/v1/namespaces/{ns}/bads", body));
    }
    if has("pod") {
        return Some(post("/api/v1/namespaces/{ns}/pods", json!({"metadata": {"name": "a"}, "spec": step["pod"]})));
    }
    let owned = json!({"metadata": {"name": "a", "ownerReferences": [step["owner"]]}});
    has("owner").then(|| post("/api/v1/namespaces/{ns}/configmaps", owned))
}

/// A good CRD with what the step lays over it.
fn definition(step: &Value) -> Value {
    let mut schema = json!({"type": "object", "properties": {
        "spec": {"type": "object", "properties": {
            "a": {"type": "string"}, "n": {"type": "integer"}, "l": {"type": "array", "items": {"type": "string"}}}},
        "status": {"type": "object", "properties": {"n": {"type": "integer"}, "s": {"type": "string"}}}}});
    json_patch::merge(&mut schema, &step["schema"].as_object().map_or(json!({}), |_| step["schema"].clone()));
    let mut version = json!({"name": "v1", "served": true, "storage": true, "schema": {"openAPIV3Schema": schema}});
    json_patch::merge(&mut version, &step["version"].as_object().map_or(json!({}), |_| step["version"].clone()));
    let mut crd = json!({"apiVersion": "apiextensions.k8s.io/v1", "kind": "CustomResourceDefinition",
        "metadata": {"name": "bads.faults.test"},
        "spec": {"group": "faults.test", "scope": "Namespaced", "names": {"kind": "Bad", "plural": "bads"}, "versions": [version]}});
    json_patch::merge(&mut crd, &step["crd"].as_object().map_or(json!({}), |_| step["crd"].clone()));
    crd
}

fn read(bytes: &Bytes) -> Value {
    serde_json::from_slice(bytes).unwrap_or_else(|_| json!(String::from_utf8_lossy(bytes).trim()))
}

/// The events of a watch; bookmarks that only tell the time are left out.
fn events(bytes: &Bytes) -> Value {
    let lines = bytes.split(|byte| *byte == b'\n').filter(|line| !line.is_empty());
    let events = lines.map(|line| read(&Bytes::copy_from_slice(line)));
    events.filter(|event| event["type"] != "BOOKMARK" || event["object"]["metadata"]["annotations"].is_object()).collect()
}

/// An answer without what differs from run to run.
fn steady(value: &Value, ignore: Option<&str>) -> Value {
    const VOLATILE: [&str; 8] = [
        "uid",
        "resourceVersion",
        "creationTimestamp",
        "time",
        "lastTransitionTime",
        "storageVersionHash",
        "serverAddressByClientCIDRs",
        "selfLink",
    ];
    const MARKED: [&str; 4] = ["deletionTimestamp", "continue", "clusterIP", "clusterIPs"];
    match value {
        Value::Object(fields) => {
            let generated = fields.contains_key("generateName");
            let ignored = |name: &str| ignore.is_some_and(|ignore| ignore.split(' ').any(|other| other == name));
            let kept = fields.iter().filter(|(name, _)| !VOLATILE.contains(&name.as_str()) && !ignored(name));
            kept.map(|(name, value)| {
                let marked = MARKED.contains(&name.as_str()) || (generated && name == "name");
                let value = match name.as_str() {
                    _ if marked && !value.is_object() => json!("*"),
                    // The real server walks a map of Go, whose order is another each time.
                    "managedFields" | "causes" => sorted(&steady(value, ignore)),
                    "message" => json!(steady_text(value.as_str().unwrap_or_default())),
                    _ => steady(value, ignore),
                };
                (name.clone(), value)
            })
            .collect()
        }
        Value::Array(values) => values.iter().map(|value| steady(value, ignore)).collect(),
        Value::String(text) => json!(Regex::new("[0-9a-f]{8}-[0-9a-f-]{27}").unwrap().replace_all(text, "*")),
        other => other.clone(),
    }
}

fn sorted(list: &Value) -> Value {
    let mut entries = list.as_array().cloned().unwrap_or_default();
    entries.sort_by_key(Value::to_string);
    Value::Array(entries)
}

fn steady_text(text: &str) -> String {
    let volatile = Regex::new(r"[0-9a-f]{8}-[0-9a-f-]{27}|[0-9]{4}-[0-9]{2}-[0-9]{2}T[0-9:]{8}Z|record \([0-9]+\)").unwrap();
    any_order(&volatile.replace_all(text, "*"))
}

/// `X is invalid: [one, two]` with its faults in the order of their words.
fn any_order(text: &str) -> String {
    let Some((head, faults)) = text.split_once(" is invalid: [").and_then(|(head, rest)| Some((head, rest.strip_suffix(']')?)))
    else {
        return text.to_owned();
    };
    let mut words: Vec<&str> = faults.split(", ").collect();
    words.sort_unstable();
    format!("{head} is invalid: [{}]", words.join(", "))
}

/// Where two values differ, as lines.
fn differences(path: &str, real: &Value, own: &Value, found: &mut Vec<String>) {
    match (real, own) {
        (Value::Object(a), Value::Object(b)) => {
            let names: std::collections::BTreeSet<&String> = a.keys().chain(b.keys()).collect();
            for name in names {
                let at = |map: &serde_json::Map<String, Value>| map.get(name).cloned().unwrap_or(json!("(absent)"));
                differences(&format!("{path}/{name}"), &at(a), &at(b), found);
            }
        }
        (Value::Array(a), Value::Array(b)) if a.len() == b.len() => {
            for (index, (a, b)) in a.iter().zip(b).enumerate() {
                differences(&format!("{path}/{index}"), a, b, found);
            }
        }
        _ if real == own => {}
        _ => found.push(format!("      {path}: real {real}, embedded {own}")),
    }
}

fn scripts() -> Vec<Value> {
    let folder = Path::new(env!("CARGO_MANIFEST_DIR")).join("tests/differential");
    let read = |file: &str| {
        let text = std::fs::read_to_string(folder.join(file)).unwrap();
        let document = plinth_engine::yaml::documents(&text).unwrap().remove(0);
        document.value.as_array().unwrap().clone()
    };
    FILES.into_iter().flat_map(read).collect()
}

async fn sides(namespace: &str, real: &kube::Client, own: &kube::Client) -> [Side; 2] {
    let sides =
        [real, own].map(|client| Side { client: client.clone(), namespace: namespace.to_owned(), answers: BTreeMap::new() });
    for side in &sides {
        let body = json!({"apiVersion": "v1", "kind": "Namespace", "metadata": {"name": namespace}});
        let created = side.send(&json!({"do": "POST /api/v1/namespaces", "body": body})).await;
        assert_eq!(created.code, 201, "{created:?}");
    }
    sides
}

#[tokio::test]
async fn show_02_differential() {
    let only = std::env::var("SCRIPT").ok();
    let tells = std::env::var("ANSWERS").is_ok();
    let own = Embedded::new(&Options { collect: false, ..Options::default() }).client();
    let real = ApiServer::shared().client(Identity::Admin).await;
    let (mut same, mut all, mut report, mut wrong) = (0, 0, Vec::new(), Vec::new());
    for (index, script) in scripts().into_iter().enumerate() {
        let name = script["script"].as_str().unwrap();
        if only.as_ref().is_some_and(|only| only != name) {
            continue;
        }
        let [mut real, mut own] = sides(&format!("diff-{index}"), &real, &own).await;
        for step in script["steps"].as_array().unwrap() {
            let (wanted, got) = (real.step(step).await, own.step(step).await);
            let ignore = step["ignore"].as_str();
            if tells {
                println!("{} | {} | {} {}", step["name"], got.code, wanted.code, steady(&wanted.body, ignore));
            }
            let mut found = Vec::new();
            if wanted.code != got.code {
                found.push(format!("      code: real {}, embedded {}", wanted.code, got.code));
            }
            differences("", &steady(&wanted.body, ignore), &steady(&got.body, ignore), &mut found);
            all += 1;
            same += usize::from(found.is_empty());
            let title = format!("{name}: {}", step["name"].as_str().unwrap());
            match (found.is_empty(), step["differs"].as_str()) {
                (true, None) => {}
                (false, Some(reason)) => report.push(format!("    {title}: {reason}")),
                (true, Some(_)) => wrong.push(format!("    {title}: is said to differ and does not")),
                (false, None) => wrong.push(format!("    {title}:\n{}", found.join("\n"))),
            }
        }
    }
    println!("SHOW 02 differential {same}/{all}");
    report.iter().for_each(|line| println!("{line}"));
    assert!(wrong.is_empty(), "{} answers are not as they should be:\n{}", wrong.len(), wrong.join("\n"));
}
