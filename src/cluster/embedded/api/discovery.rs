//! Discovery in its old form, and OpenAPI v3.

use std::{
    collections::BTreeMap,
    sync::{Arc, LazyLock, Mutex, PoisonError},
};

use bytes::Bytes;
use plinth_engine::schema::KUBERNETES_VERSION;
use serde_json::{Map, Value, json};

use super::kinds::{Served, is_namespaces};

/// Namespaces go one by one.
const OF_NAMESPACES: [&str; 7] = ["create", "delete", "get", "list", "patch", "update", "watch"];
const VERBS: [&str; 8] = ["create", "delete", "deletecollection", "get", "list", "patch", "update", "watch"];

/// `/version`.
pub fn version() -> Value {
    let mut parts = KUBERNETES_VERSION.trim_start_matches('v').split('.');
    let (major, minor) = (parts.next().unwrap_or_default(), parts.next().unwrap_or_default());
    json!({"major": major, "minor": minor, "gitVersion": KUBERNETES_VERSION, "platform": "embedded", "gitCommit": "", "gitTreeState": "", "buildDate": "", "goVersion": "", "compiler": ""})
}

/// `/api`.
pub fn core() -> Value {
    json!({"kind": "APIVersions", "versions": ["v1"], "serverAddressByClientCIDRs": []})
}

/// `/apis`.
pub fn groups(kinds: &[Arc<Served>]) -> Value {
    let names: std::collections::BTreeSet<&str> =
        kinds.iter().map(|kind| kind.group.as_str()).filter(|group| !group.is_empty()).collect();
    let groups: Vec<Value> = names.into_iter().filter_map(|name| group_body(kinds, name)).collect();
    json!({"kind": "APIGroupList", "apiVersion": "v1", "groups": groups})
}

/// `/apis/GROUP`; `None` where it is not served.
pub fn group(kinds: &[Arc<Served>], name: &str) -> Option<Value> {
    let mut group = group_body(kinds, name)?;
    group["kind"] = json!("APIGroup");
    group["apiVersion"] = json!("v1");
    Some(group)
}

fn group_body(kinds: &[Arc<Served>], name: &str) -> Option<Value> {
    let mut versions: Vec<&str> = kinds.iter().filter(|kind| kind.group == name).map(|kind| kind.version.as_str()).collect();
    versions.sort_by(|a, b| priority(b).cmp(&priority(a)).then(a.cmp(b)));
    versions.dedup();
    let versions: Vec<Value> =
        versions.into_iter().map(|version| json!({"groupVersion": format!("{name}/{version}"), "version": version})).collect();
    let preferred = versions.first()?.clone();
    Some(json!({"name": name, "versions": versions, "preferredVersion": preferred}))
}

/// Stable versions before beta before alpha, newer before older.
fn priority(version: &str) -> (u8, u32, u32) {
    let number = |text: &str| text.parse::<u32>().ok();
    let Some(rest) = version.strip_prefix('v') else { return (0, 0, 0) };
    for (word, rank) in [("beta", 2), ("alpha", 1)] {
        if let Some((major, minor)) = rest.split_once(word)
            && let (Some(major), Some(minor)) = (number(major), number(minor))
        {
            return (rank, major, minor);
        }
    }
    number(rest).map_or((0, 0, 0), |major| (3, major, 0))
}

/// `/api/v1`, `/apis/GROUP/VERSION`; `None` where it is not served.
pub fn resources(kinds: &[Arc<Served>], group: &str, version: &str) -> Option<Value> {
    let mut found: Vec<&Arc<Served>> = kinds.iter().filter(|kind| kind.group == group && kind.version == version).collect();
    found.sort_by(|a, b| a.plural.cmp(&b.plural));
    let group_version = found.first()?.api_version();
    let resources: Vec<Value> = found.into_iter().flat_map(|kind| resource(kind)).collect();
    Some(json!({"kind": "APIResourceList", "apiVersion": "v1", "groupVersion": group_version, "resources": resources}))
}

fn resource(kind: &Served) -> Vec<Value> {
    // Custom resources have their verbs in an order of their own.
    const CUSTOM: [&str; 8] = ["delete", "deletecollection", "get", "list", "patch", "create", "update", "watch"];
    let verbs: &[&str] = match (kind.review, kind.builtin) {
        (true, _) => &["create"],
        (false, true) if is_namespaces(&kind.group, &kind.plural) => &OF_NAMESPACES,
        (false, true) => &VERBS,
        (false, false) => &CUSTOM,
    };
    let mut whole = json!({"name": kind.plural, "singularName": kind.singular, "namespaced": kind.namespaced, "kind": kind.kind, "verbs": verbs});
    for (name, words) in [("shortNames", &kind.short_names), ("categories", &kind.categories)] {
        if !words.is_empty() {
            whole[name] = json!(words);
        }
    }
    let mut found = vec![whole];
    if kind.status {
        found.push(json!({"name": format!("{}/status", kind.plural), "singularName": "", "namespaced": kind.namespaced, "kind": kind.kind, "verbs": ["get", "patch", "update"]}));
    }
    if kind.scale.is_some() {
        found.push(json!({"name": format!("{}/scale", kind.plural), "singularName": "", "namespaced": kind.namespaced, "group": "autoscaling", "version": "v1", "kind": "Scale", "verbs": ["get", "patch", "update"]}));
    }
    // Those of custom resources stay in the order in which they are made.
    if kind.builtin {
        found.sort_by(|a, b| a["name"].as_str().cmp(&b["name"].as_str()));
    }
    found
}

fn path(group: &str, version: &str) -> String {
    if group.is_empty() { format!("api/{version}") } else { format!("apis/{group}/{version}") }
}

/// `/openapi/v3`; `revision` changes with what is served.
pub fn openapi_index(kinds: &[Arc<Served>], revision: u64) -> Value {
    let mut paths = BTreeMap::new();
    for kind in kinds {
        let path = path(&kind.group, &kind.version);
        let url = format!("/openapi/v3/{path}?hash={revision}");
        paths.insert(path, json!({"serverRelativeURL": url}));
    }
    json!({"paths": paths})
}

/// The OpenAPI v3 document of a group and version; `None` where it is not served.
pub fn openapi(kinds: &[Arc<Served>], group: &str, version: &str) -> Option<Value> {
    let found: Vec<&Arc<Served>> = kinds.iter().filter(|kind| kind.group == group && kind.version == version).collect();
    if found.is_empty() {
        return None;
    }
    let (mut schemas, mut paths) = (Map::new(), Map::new());
    for kind in found {
        let gvk = json!({"group": kind.group, "version": kind.version, "kind": kind.kind});
        let name = format!("{}.{}.{}", if group.is_empty() { "core" } else { group }, version, kind.kind);
        let mut schema = serde_json::to_value(&*kind.schema).unwrap_or_default();
        schema["x-kubernetes-group-version-kind"] = json!([gvk]);
        schemas.insert(name.clone(), schema);
        let scope = if kind.namespaced { "/namespaces/{namespace}" } else { "" };
        let collection = format!("/{}{scope}/{}", path(group, version), kind.plural);
        let reference = json!({"$ref": format!("#/components/schemas/{name}")});
        paths.insert(format!("{collection}/{{name}}"), operations(&gvk, &["get", "put", "patch", "delete"], &reference));
        paths.insert(collection, operations(&gvk, &["get", "post", "delete"], &reference));
    }
    let info = json!({"title": "Kubernetes", "version": KUBERNETES_VERSION});
    Some(json!({"openapi": "3.0.0", "info": info, "paths": paths, "components": {"schemas": schemas}}))
}

/// The document of a group and version in which all kinds are built in: it never changes, and is written out once in a process.
pub fn builtin_openapi(kinds: &[Arc<Served>], group: &str, version: &str) -> Option<Bytes> {
    static WRITTEN: LazyLock<Mutex<BTreeMap<(String, String), Written>>> = LazyLock::new(Mutex::default);
    let found = kinds.iter().filter(|kind| kind.group == group && kind.version == version);
    let found: Vec<Arc<Served>> = found.cloned().collect();
    if found.is_empty() || found.iter().any(|kind| !kind.builtin) {
        return None;
    }
    let mut written = WRITTEN.lock().unwrap_or_else(PoisonError::into_inner);
    let key = (group.to_owned(), version.to_owned());
    if let Some((_, text)) = written.get(&key).filter(|(of, _)| same(of, &found)) {
        return Some(text.clone());
    }
    let text = Bytes::from(openapi(&found, group, version)?.to_string());
    written.insert(key, (found, text.clone()));
    Some(text)
}

/// A document, and the kinds that it is about: a logical cluster may serve some of them only.
type Written = (Vec<Arc<Served>>, Bytes);

fn same(a: &[Arc<Served>], b: &[Arc<Served>]) -> bool {
    a.len() == b.len() && a.iter().zip(b).all(|(a, b)| Arc::ptr_eq(a, b))
}

fn operations(gvk: &Value, methods: &[&str], schema: &Value) -> Value {
    let parameter = |name: &str| json!({"name": name, "in": "query", "schema": {"type": "string"}});
    let mut operations = Map::new();
    for method in methods {
        let action = match *method {
            "put" => "put",
            "patch" => "patch",
            "post" => "post",
            "delete" => "delete",
            _ => "get",
        };
        let parameters: Vec<Value> = match *method {
            "get" => Vec::new(),
            "delete" => vec![parameter("dryRun")],
            _ => vec![parameter("dryRun"), parameter("fieldManager"), parameter("fieldValidation")],
        };
        let content = json!({"application/json": {"schema": schema}});
        operations.insert(
            action.to_owned(),
            json!({"x-kubernetes-group-version-kind": gvk, "x-kubernetes-action": action, "parameters": parameters,
                   "responses": {"200": {"description": "OK", "content": content}}}),
        );
    }
    Value::Object(operations)
}
