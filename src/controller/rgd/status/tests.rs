use plinth_api::{ClusterKey, GroupVersionKind};

use super::*;

fn rgd(status: Value) -> Object {
    Object::from_value(json!({"metadata": {"name": "r", "generation": 3}, "status": status})).unwrap()
}

fn missing(node: &str, kind: &str) -> Missing {
    Missing { node: node.into(), gvk: GroupVersionKind::new("x.test", "v1", kind) }
}

#[test]
fn a_missing_kind_is_named_once_with_its_nodes() {
    let all = [missing("a", "One"), missing("b", "Two"), missing("c", "One")];
    let expected = "waits for kinds that are not served yet: One.x.test/v1 (node a, c); Two.x.test/v1 (node b)";
    assert_eq!(deferred(&all), expected);
}

#[test]
fn findings_fit_into_a_condition() {
    let many: Vec<Diagnostic> = (0..1000).map(|n| Diagnostic::error(format!("spec.resources[{n}]"), "ä is wrong")).collect();
    let message = findings(&many);
    assert!(message.len() <= LONGEST_MESSAGE + '…'.len_utf8() && message.ends_with('…'), "{}", message.len());
}

#[test]
fn a_refused_definition_keeps_what_it_says_of_the_last_good_one() {
    let diagnostics = [Diagnostic::error("spec", "wrong")];
    let status = of(
        &rgd(json!({})),
        &Situation::Refused { diagnostics: &diagnostics, last_good: None },
        History::Kept(None),
        Timestamp::UNIX_EPOCH,
    );
    assert_eq!(status["state"], "Inactive");
    let ready = status["conditions"].as_array().unwrap().last().unwrap();
    assert_eq!((ready["type"].as_str(), ready["reason"].as_str()), (Some("Ready"), Some("InvalidResourceGraph")));
    assert_eq!(ready["observedGeneration"], 3);
    assert!(status.get("topologicalOrder").is_none());
}

/// As kro's controller wrote it for every definition of the corpus that it refused.
#[test]
fn a_refused_new_definition_has_every_condition() {
    let diagnostics = [Diagnostic::error("spec", "wrong")];
    let refused = Situation::Refused { diagnostics: &diagnostics, last_good: None };
    let status = of(&rgd(json!({})), &refused, History::Kept(None), Timestamp::UNIX_EPOCH);
    let mut found: Vec<(&str, &str, &str)> = Vec::new();
    for one in status["conditions"].as_array().unwrap() {
        let text = |field: &str| one[field].as_str().unwrap();
        found.push((text("type"), text("status"), text("reason")));
        let awaited = format!("condition {:?} is awaiting reconciliation", text("type"));
        assert!(text("status") != "Unknown" || text("message") == awaited, "{one}");
    }
    found.sort_unstable();
    let expected = [
        ("ControllerReady", "Unknown", "AwaitingReconciliation"),
        ("GraphAccepted", "False", "InvalidResourceGraph"),
        ("GraphRevisionsResolved", "Unknown", "AwaitingReconciliation"),
        ("KindReady", "Unknown", "AwaitingReconciliation"),
        ("Ready", "False", "InvalidResourceGraph"),
    ];
    assert_eq!(found, expected);
}

#[test]
fn a_waiting_deletion_says_on_whom_and_keeps_the_rest() {
    let instances: Vec<ObjectKey> = (0..7)
        .map(|n| ObjectKey {
            cluster: ClusterKey::host(),
            gvk: GroupVersionKind::new("x.test", "v1", "App"),
            namespace: Some("n".into()),
            name: format!("i{n}"),
        })
        .collect();
    let before = json!({"state": "Active", "conditions": [
        {"type": "KindReady", "status": "True", "reason": "Ready"}, {"type": "Ready", "status": "True", "reason": "Ready"}]});
    let status = waiting_for_instances(&rgd(before), &instances, Timestamp::UNIX_EPOCH);
    assert_eq!(status["state"], "Inactive", "Active is never said beside a Ready that is not True");
    let kinds: Vec<_> = status["conditions"].as_array().unwrap().iter().map(|c| c["type"].as_str().unwrap()).collect();
    assert_eq!(kinds, ["KindReady", "ControllerReady", "Ready"]);
    let message = status["conditions"][2]["message"].as_str().unwrap();
    assert!(message.contains("App.x.test/n/i4, 2 more"), "{message}");
}

#[test]
fn the_revision_in_use_is_said_and_numbers_never_go_back() {
    let before = rgd(json!({"lastIssuedRevision": 4}));
    let diagnostics = [Diagnostic::error("spec", "wrong")];
    let refused = Situation::Refused { diagnostics: &diagnostics, last_good: None };
    let status = of(&before, &refused, History::Kept(Some(3)), Timestamp::UNIX_EPOCH);
    assert_eq!(status["lastIssuedRevision"], 4);
    let said = &status["conditions"][0];
    assert_eq!(
        (said["type"].as_str(), said["message"].as_str()),
        (Some("GraphRevisionsResolved"), Some("revision 3 compiled and active"))
    );
    assert_eq!(of(&rgd(json!({})), &refused, History::Kept(None), Timestamp::UNIX_EPOCH).get("lastIssuedRevision"), None);
}
