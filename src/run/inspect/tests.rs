use jiff::{SignedDuration, Timestamp};
use plinth_api::Object;
use serde_json::json;

use super::*;

fn object(value: Value) -> Object {
    Object::from_value(value).unwrap()
}

fn secret(value: &str) -> Object {
    object(json!({
        "apiVersion": "v1", "kind": "Secret",
        "metadata": {"name": "s", "annotations": {LAST_APPLIED: format!("{{\"data\":\"{value}\"}}"), "a": "b"},
                     "managedFields": [{"manager": "plinth.dev/run"}]},
        "data": {"password": value},
    }))
}

#[test]
fn a_secret_is_nowhere_to_be_read() {
    let (live, desired) = (secret("hunter2"), secret("hunter3"));
    let texts = [
        yaml(&live, true).join("\n"),
        describe(&live, Timestamp::UNIX_EPOCH).join("\n"),
        format!("{:?}", differences(&live, &desired)),
    ];
    for text in texts {
        assert!(!text.contains("hunter"), "{text}");
    }
    let found = differences(&live, &desired);
    assert_eq!(found.iter().map(|found| found.path.as_str()).collect::<Vec<_>>(), ["data.password"], "it is named all the same");
}

#[test]
fn fields_that_are_called_as_secrets_are_masked_anywhere() {
    let object = object(json!({
        "apiVersion": "apps/v1", "kind": "Deployment", "metadata": {"name": "d"},
        "spec": {"dbPassword": "x1", "env": [{"name": "API_TOKEN", "value": "x2"}, {"name": "LEVEL", "value": "debug"}]},
    }));
    let text = yaml(&object, false).join("\n");
    assert!(!text.contains("x1") && !text.contains("x2") && text.contains("debug"), "{text}");
}

#[test]
fn managed_fields_are_folded_into_one_line() {
    let text = yaml(&secret("x"), false).join("\n");
    assert!(text.contains("(folded: 1 managers)") && !text.contains("plinth.dev/run"), "{text}");
    assert!(yaml(&secret("x"), true).join("\n").contains("plinth.dev/run"));
}

#[test]
fn only_wanted_fields_count() {
    let live = object(json!({"kind": "X", "spec": {"replicas": 2, "defaulted": true, "list": [1, 2]}, "status": {}}));
    let desired = object(json!({"kind": "X", "spec": {"replicas": 3, "new": "n", "list": [1, 3]}}));
    let found: Vec<_> = differences(&live, &desired).into_iter().map(|found| (found.path, found.live, found.desired)).collect();
    let row = |path: &str, live: Option<&str>, desired: &str| (path.to_owned(), live.map(str::to_owned), desired.to_owned());
    assert_eq!(
        found,
        [row("spec.list[1]", Some("2"), "3"), row("spec.new", None, "\"n\""), row("spec.replicas", Some("2"), "3")]
    );
}

#[test]
fn a_description_says_state_and_conditions() {
    let object = object(json!({
        "apiVersion": "example.dev/v1", "kind": "Db", "metadata": {"name": "d", "namespace": "n", "generation": 2,
            "creationTimestamp": "1970-01-01T00:00:00Z", "ownerReferences": [{"kind": "Platform", "name": "p"}]},
        "status": {"conditions": [{"type": "Ready", "status": "False", "reason": "NoDisk", "message": "two\nlines",
            "lastTransitionTime": "1970-01-01T00:00:30Z"}]},
    }));
    let text = describe(&object, Timestamp::UNIX_EPOCH + SignedDuration::from_secs(90)).join("\n");
    for words in
        ["Db.example.dev/v1", "progressing NoDisk two lines", "Platform p", "created     1m30s", "1m00s", "NoDisk two lines"]
    {
        assert!(text.contains(words.trim()), "{words} is not in\n{text}");
    }
}
