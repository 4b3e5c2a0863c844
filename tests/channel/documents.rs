//! The documents of `plinth.dev/v1alpha1` are what docs/schema says (contracts 20).

use std::{fs, path::Path};

use plinth_api::{Scenario, lock::ReleaseLock, platform::PlatformSpec};
use plinth_support::json_schema::check;
use serde_json::{Value, json};

use crate::plinth;

fn schema(name: &str) -> Value {
    let path = Path::new(env!("CARGO_MANIFEST_DIR")).join(format!("docs/schema/{name}.json"));
    serde_json::from_str(&fs::read_to_string(&path).unwrap_or_else(|error| panic!("{}: {error}", path.display()))).unwrap()
}

/// Fits, and has every property that the schema names, so that none is there that nothing has.
fn is_all_of(name: &str, document: &Value) {
    let schema = schema(name);
    check(&schema, &schema, document, name).unwrap();
    lacks_nothing(&schema, &schema, document, name);
}

fn lacks_nothing(schema: &Value, root: &Value, value: &Value, place: &str) {
    if let Some(path) = schema["$ref"].as_str() {
        return lacks_nothing(root.pointer(path.trim_start_matches('#')).unwrap(), root, value, place);
    }
    for (name, property) in schema["properties"].as_object().into_iter().flatten() {
        let field = value.get(name).unwrap_or_else(|| panic!("no specimen has {place}.{name}"));
        lacks_nothing(property, root, field, &format!("{place}.{name}"));
    }
    if schema["type"] == "array" {
        lacks_nothing(&schema["items"], root, &value[0], &format!("{place}[]"));
    }
}

fn yaml(text: &str) -> Value {
    plinth_engine::yaml::documents(text).unwrap().remove(0).value
}

#[test]
fn a_release_lock_is_what_its_schema_says() {
    let specimen = json!({
        "apiVersion": "plinth.dev/v1alpha1", "kind": "ReleaseLock", "root": {"name": "example.dev/c", "version": "1.0.0"},
        "repositories": [{"type": "OCIRegistry"}],
        "components": [{
            "name": "example.dev/c", "version": "1.0.0", "repository": 0, "digest": "sha256:0", "content": "sha256:2",
            "signatures": [{"name": "s", "digest": "sha256:3"}],
            "references": [{"name": "r", "extraIdentity": {"a": "b"}, "componentName": "example.dev/d", "version": "1.0.0"}],
            "resources": [{"name": "i", "version": "1.0.0", "type": "ociImage", "extraIdentity": {"a": "b"}, "digest": "sha256:1", "access": {"type": "localBlob"}}],
        }],
    });
    let lock: ReleaseLock = serde_json::from_value(specimen.clone()).unwrap();
    assert_eq!(serde_json::to_value(lock).unwrap(), specimen);
    is_all_of("release-lock.v1alpha1", &specimen);
    let sample = Path::new(env!("CARGO_MANIFEST_DIR")).join("distributions/open-control-plane-kind").display().to_string();
    let printed = plinth(&["channel", "lock", &sample]).with_code(0).json();
    let schema = schema("release-lock.v1alpha1");
    check(&schema, &schema, &printed, "the sample's lock").unwrap();
}

/// Events hold plans, and theirs are compared with what is printed.
#[test]
fn a_plan_is_the_plan_of_the_events() {
    let (plan, event) = (schema("plan.v1alpha1"), schema("event.v1"));
    let of_event = &event["$defs"]["plan"];
    assert_eq!(plan["required"], of_event["required"]);
    for (name, property) in of_event["properties"].as_object().unwrap() {
        assert!(name == "apiVersion" || name == "kind" || plan["properties"][name] == *property, "{name}");
    }
    for (name, definition) in plan["$defs"].as_object().unwrap() {
        assert_eq!(event["$defs"][name], *definition, "{name}");
    }
}

#[test]
fn a_scenario_is_what_its_schema_says() {
    let folder = Path::new(env!("CARGO_MANIFEST_DIR"));
    let page = fs::read_to_string(folder.join("docs/scenario.md")).unwrap();
    let example = page.split("```yaml\n").nth(1).unwrap().split("```").next().unwrap();
    let own = fs::read_to_string(folder.join("distributions/open-control-plane-kind/scenario.yaml")).unwrap();
    let schema = schema("scenario.v1alpha1");
    for text in [example, own.as_str()] {
        Scenario::parse(text).unwrap();
        check(&schema, &schema, &yaml(text), "scenario").unwrap();
    }
    let all = yaml(
        "{apiVersion: plinth.dev/v1alpha1, kind: Scenario, metadata: {name: x}, spec: {
          workloads: {start: 1s, complete: 1s, provide: 1s}, permissions: [{verbs: [get]}],
          rules: [{when: {apiVersion: v1, kind: Pod, name: a, namespace: b, state: Ready}, after: 1s, available: true,
            status: {phase: x}, register: [{apiVersion: v1, kind: Namespace, metadata: {name: one}}], away: 1s,
            conflicts: {every: 2, times: 1}, expire: {apiVersion: v1, kind: Pod}}]}}",
    );
    is_all_of("scenario.v1alpha1", &all);
    Scenario::parse(&all.to_string()).unwrap();
}

#[test]
fn a_platform_is_what_its_schema_says() {
    let spec = json!({
        "source": {"channel": "c", "version": "~1", "repositories": ["r"], "credentialsRef": {"name": "s", "namespace": "n"}, "ca": "PEM"},
        "distribution": {"name": "d", "version": "1"}, "select": {"c": "~1"}, "values": {"a": 1},
        "verify": {"policy": "required", "keys": [{"name": "k"}]}, "upgrade": {"policy": "Patch", "window": "w"},
        "artifacts": true, "suspend": true,
    });
    let read: PlatformSpec = serde_json::from_value(spec.clone()).unwrap();
    assert_eq!(serde_json::to_value(read).unwrap(), spec);
    is_all_of(
        "platform.v1alpha1",
        &json!({"apiVersion": "plinth.dev/v1alpha1", "kind": "Platform", "metadata": {"name": "x"}, "spec": spec}),
    );
}
