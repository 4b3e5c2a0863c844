//! Rules that do not do what they say are told.

use serde_json::json;

use super::{DEPLOYMENTS, Stage, THINGS, workload};

fn told(stage: &Stage, is_over: bool) -> Vec<String> {
    stage.actors.mishaps(is_over).iter().map(ToString::to_string).collect()
}

#[test]
fn what_the_server_refuses_is_told_in_its_words() {
    let mut stage = Stage::new(
        "{rules: [{register: [{apiVersion: v1, kind: ConfigMap, metadata: {name: Upper}}, {apiVersion: v1, kind: ConfigMap, metadata: {name: good}}]}, \
         {expire: {apiVersion: x.test/v1, kind: Thing}}, \
         {when: {apiVersion: v1, kind: ConfigMap, name: good}, available: true, status: {phase: Ready}}]}",
    );
    stage.step(0);
    let found = told(&stage, false);
    let [refused, expired, available, status] = found.as_slice() else { panic!("{found:#?}") };
    assert!(
        refused.starts_with(
            "spec.rules[0]: register[0] (ConfigMap/v1 Upper) is refused: ConfigMap \"Upper\" is invalid: metadata.name"
        ),
        "{refused}"
    );
    assert_eq!(expired, "spec.rules[1]: expire of x.test/v1 Thing is refused: x.test/v1 Thing is not served");
    assert_eq!(
        available,
        "spec.rules[2]: making configmaps default/good available is refused: no pods come of it here; say what it reports in `status`"
    );
    let words = "the server could not find the requested resource";
    assert_eq!(status, &format!("spec.rules[2]: the status of configmaps default/good is refused: {words}"));
}

#[test]
fn what_is_done_in_the_end_is_not_told() {
    let mut stage = Stage::new(&format!(
        "{{rules: [{{register: [{{apiVersion: x.test/v1, kind: Thing, metadata: {{name: first}}}}]}}, {{after: 2s, register: [{THINGS}]}}]}}"
    ));
    stage.step(0);
    let [early] = told(&stage, false).try_into().unwrap();
    assert_eq!(early, "spec.rules[0]: register[0] (Thing.x.test/v1 first) is refused: Thing.x.test/v1 is not served");
    stage.step(2000);
    stage.step(200);
    assert!(told(&stage, true).is_empty());
}

/// An effect that is refused does not have the others done again each time.
#[test]
fn faults_are_made_once() {
    let mut stage = Stage::new(
        "{rules: [{after: 1s, register: [{apiVersion: x.test/v1, kind: Thing, metadata: {name: first}}], conflicts: {every: 2, times: 1}, away: 1s}]}",
    );
    for _ in 0..20 {
        stage.step(500);
    }
    let faults = stage.embedded.shared.with(|state| state.faults.clone());
    assert_eq!((faults.cuts, told(&stage, false).len()), (1, 1));
}

#[test]
fn the_first_of_many_stands_for_all() {
    let mut stage = Stage::new("{rules: [{when: {apiVersion: v1, kind: ConfigMap}, status: {phase: Ready}}]}");
    for name in ["a", "b", "c"] {
        stage.make("/api/v1/namespaces/default/configmaps", &json!({"metadata": {"name": name}}));
    }
    stage.step(0);
    let [all] = told(&stage, false).try_into().unwrap();
    assert!(all.contains("configmaps default/a is refused") && all.ends_with("; the same for 2 more"), "{all}");
    stage.tell("DELETE", "/api/v1/namespaces/default/configmaps/b", &json!(null));
    stage.step(1000);
    assert!(told(&stage, false)[0].ends_with("; the same for 1 more"), "what is gone needs no status");
}

#[test]
fn a_rule_that_never_matched_is_told_once_all_is_over() {
    let mut stage = Stage::new(
        "{rules: [{when: {apiVersion: apps/v1, kind: Deployment, name: wep, namespace: default}, available: true}, \
         {when: {apiVersion: apps/v1, kind: Deployment, name: web, state: Ready}, expire: {apiVersion: v1, kind: Pod}}, \
         {when: {apiVersion: apps/v1, kind: Deployment, name: web}, available: true}]}",
    );
    stage.make(DEPLOYMENTS, &workload("Deployment", "web:1", &json!({})));
    stage.settle();
    assert!(told(&stage, false).is_empty());
    let wanted = [
        "spec.rules[0]: never matched, as apps/v1 Deployment wep in namespace default was never there: are kind and name right?",
        "spec.rules[1]: never matched, as apps/v1 Deployment web was there and never Ready",
    ];
    assert_eq!(told(&stage, true), wanted);
}
