use serde_json::json;

use super::*;

const SAMPLE: &str = include_str!("../../../distributions/open-control-plane-kind/scenario.yaml");

fn check(rules: &str) -> Result<Scenario, String> {
    document(&format!("rules: {rules}"))
}

fn document(spec: &str) -> Result<Scenario, String> {
    let text = format!("apiVersion: plinth.dev/v1alpha1\nkind: Scenario\nmetadata: {{name: x}}\nspec:\n  {spec}\n");
    Scenario::parse(&text).map_err(|error| error.to_string())
}

fn object(value: Value) -> Object {
    Object::from_value(value).unwrap()
}

#[test]
fn the_samples_scenario_is_one() {
    let scenario = Scenario::parse(SAMPLE).unwrap();
    assert!(scenario.rules.len() >= 4 && scenario.rules.iter().any(|rule| rule.register.len() == 3));
    assert_eq!(scenario.needs_embedded(), None);
}

#[test]
fn the_documented_one_is_one() {
    let page = include_str!("../../../docs/scenario.md");
    let (_, rest) = page.split_once("```yaml\n").unwrap();
    let scenario = Scenario::parse(rest.split_once("```").unwrap().0).unwrap();
    assert_eq!((scenario.workloads, scenario.rules.len()), (Workloads::default(), 6));
}

#[test]
fn every_effect_is_read() {
    let text = r"
    - {when: {apiVersion: apps/v1, kind: Deployment, name: x, namespace: y, state: Available}, after: 1m30s, available: true}
    - {when: {apiVersion: v1, kind: Pod, state: Ready}, status: {phase: Running}}
    - {after: 2s, away: 5s}
    - {conflicts: {every: 3, times: 2}}
    - {expire: {apiVersion: v1, kind: Pod}}
    - {register: [{apiVersion: v1, kind: ConfigMap, metadata: {name: a}}]}";
    let rules = check(text).unwrap().rules;
    assert_eq!(rules[0].after, Duration::from_secs(90));
    assert_eq!((rules[2].after, rules[2].away), (Duration::from_secs(2), Some(Duration::from_secs(5))));
    assert_eq!(rules[3].conflicts, Some(Conflicts { every: 3, times: Some(2) }));
    assert_eq!(rules[4].expire.as_ref().unwrap().to_string(), "v1 Pod");
    let spec = "workloads: {start: 3s}\n  permissions: [{apiGroups: [apps], resources: ['*'], verbs: [get]}]";
    let scenario = document(spec).unwrap();
    assert_eq!((scenario.workloads.start, scenario.permissions.unwrap().len()), (Duration::from_secs(3), 1));
    assert_eq!(check(text).unwrap().needs_embedded(), Some("away"));
}

#[test]
fn mistakes_are_named() {
    let deep = format!("[{{register: [{}1{}]}}]", "[".repeat(80), "]".repeat(80));
    let many = format!("[{}]", "{away: 1s},".repeat(MAX_RULES + 1));
    for (rules, part) in [
        ("[{when: {apiVersion: v1, kind: Pod}, available: true, after: soon}]", "`soon` is no time"),
        ("[{away: 25h}]", "longer than 24h"),
        ("[{away: -1s}]", "`-1s` is no time"),
        ("[{when: {apiVersion: v1, kind: Pod}, then: x}]", "then"),
        ("[{when: {kind: Pod}, available: true}]", "apiVersion"),
        ("[{when: {apiVersion: v1, kind: Pod}}]", "spec.rules[0]: the rule does nothing"),
        ("[{status: {phase: Ready}}]", "say which in `when`"),
        ("[{away: 1s}, {conflicts: {every: 1}}]", "spec.rules[1]: `conflicts.every` is at least 2"),
        ("[{register: [{kind: ConfigMap}]}]", "register[0] lacks apiVersion"),
        ("[{when: {apiVersion: v1, kind: Pod, state: Gone}, available: true}]", "Gone"),
        (&deep, "recursion limit"),
        (&many, "more than 1000"),
    ] {
        let error = check(rules).unwrap_err();
        assert!(error.contains(part), "{part}: {error}");
    }
    let place = check("\n    - {away: 5s}\n    - {away: never}").unwrap_err();
    assert!(place.contains("line 7"), "{place}");
    let other = Scenario::parse("apiVersion: v1\nkind: Pod\nmetadata: {}\nspec: {rules: []}\n").unwrap_err();
    assert_eq!(other.to_string(), "expected plinth.dev/v1alpha1 Scenario, found v1 Pod");
    let large = Scenario::parse(&" ".repeat(MAX_BYTES + 1)).unwrap_err();
    assert!(large.to_string().contains("bytes"), "{large}");
}

#[test]
fn a_trigger_knows_its_objects() {
    let trigger = |text: &str| check(&format!("[{{when: {text}, available: true}}]")).unwrap().rules[0].when.clone().unwrap();
    let condition = |status: &str| json!([{"type": "Available", "status": status}]);
    let deployment = |observed: i64, status: &str| {
        object(
            json!({"apiVersion": "apps/v1", "kind": "Deployment", "metadata": {"name": "x", "namespace": "n", "generation": 2},
            "status": {"observedGeneration": observed, "conditions": condition(status)}}),
        )
    };
    let exists = trigger("{apiVersion: apps/v1, kind: Deployment}");
    let available = trigger("{apiVersion: apps/v1, kind: Deployment, name: x, namespace: n, state: Available}");
    assert!(exists.matches(&deployment(1, "False")) && available.matches(&deployment(2, "True")));
    assert!(!available.matches(&deployment(1, "True")) && !available.matches(&deployment(2, "False")));
    for other in ["{apiVersion: apps/v1, kind: Deployment, name: y}", "{apiVersion: apps/v1, kind: DaemonSet}"] {
        assert!(!trigger(other).matches(&deployment(2, "True")), "{other}");
    }
}
