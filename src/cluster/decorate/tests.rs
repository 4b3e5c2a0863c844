use std::sync::Mutex;

use plinth_api::{ClusterKey, GroupVersionKind};
use serde_json::json;

use super::*;

/// Fails a number of times, then answers with what it was given.
struct Flaky {
    failures: Mutex<u32>,
    error: fn(&ObjectKey) -> WriteError,
}

impl Flaky {
    fn times(failures: u32, error: fn(&ObjectKey) -> WriteError) -> Self {
        Self { failures: Mutex::new(failures), error }
    }

    fn answer(&self, key: &ObjectKey) -> Result<(), WriteError> {
        let mut left = self.failures.lock().unwrap();
        if *left == 0 {
            return Ok(());
        }
        *left -= 1;
        Err((self.error)(key))
    }
}

impl Applier for Flaky {
    fn apply<'a>(&'a self, request: &'a Apply) -> Answer<'a, Result<Object, WriteError>> {
        Box::pin(async move { self.answer(&request.key).map(|()| request.object.clone()) })
    }

    fn delete<'a>(&'a self, request: &'a Delete) -> Answer<'a, Result<(), WriteError>> {
        Box::pin(async move { self.answer(&request.key) })
    }
}

fn unavailable(key: &ObjectKey) -> WriteError {
    WriteError::Unavailable { key: key.clone(), message: "away".into() }
}

fn conflict(key: &ObjectKey) -> WriteError {
    WriteError::Conflict { key: key.clone(), message: "owned".into() }
}

fn request(labels: &serde_json::Value) -> Apply {
    let gvk = GroupVersionKind::new("", "v1", "ConfigMap");
    let key = ObjectKey { cluster: ClusterKey::host(), gvk, namespace: Some("ns".into()), name: "a".into() };
    let object = Object::from_value(json!({"metadata": {"name": "a", "labels": labels}})).unwrap();
    Apply { key, object, manager: "m".into(), force: false, subresource: None }
}

#[tokio::test]
async fn labels_are_added_and_win() {
    let labels = BTreeMap::from([("plinth.dev/platform".to_owned(), "demo".to_owned())]);
    let labelled = Labelled { inner: Flaky::times(0, conflict), labels };
    let applied = labelled.apply(&request(&json!({"a": "b", "plinth.dev/platform": "other"}))).await.unwrap();
    assert_eq!(applied.at(&["metadata", "labels"]), Some(&json!({"a": "b", "plinth.dev/platform": "demo"})));
    let status = Apply { subresource: Some("status"), ..request(&json!({})) };
    assert_eq!(labelled.apply(&status).await.unwrap(), status.object, "a status write names no labels");
}

#[tokio::test(start_paused = true)]
async fn only_what_may_get_better_is_tried_again_and_each_attempt_is_shown() {
    let shown: Arc<Mutex<Vec<(u32, Duration)>>> = Arc::default();
    let retrying = |inner: Flaky| {
        let shown = Arc::clone(&shown);
        let on_retry: OnRetry = Arc::new(move |retry| shown.lock().unwrap().push((retry.attempt, retry.next)));
        Retrying { inner, backoff: Backoff { jitter: 0.0, ..Backoff::REQUESTS }, attempts: 4, on_retry }
    };
    let began = tokio::time::Instant::now();
    assert!(retrying(Flaky::times(2, unavailable)).apply(&request(&json!({}))).await.is_ok());
    assert_eq!(*shown.lock().unwrap(), [(1, Duration::from_millis(200)), (2, Duration::from_millis(400))]);
    assert_eq!(began.elapsed().as_millis(), 600);
    let error = retrying(Flaky::times(9, unavailable)).apply(&request(&json!({}))).await;
    assert!(matches!(error, Err(WriteError::Unavailable { .. })));
    assert_eq!(shown.lock().unwrap().len(), 2 + 3, "the last attempt has no next one");
    let error = retrying(Flaky::times(1, conflict)).apply(&request(&json!({}))).await;
    assert!(matches!(error, Err(WriteError::Conflict { .. })));
    assert_eq!(shown.lock().unwrap().len(), 5);
}

#[tokio::test]
async fn every_write_is_recorded_once_with_its_answer() {
    let seen: Arc<Mutex<Vec<String>>> = Arc::default();
    let log = Arc::clone(&seen);
    let on_write: OnWrite = Arc::new(move |written| {
        let line = match written {
            Written::Apply(request, answer) => format!("apply {} {}", request.key, answer.is_ok()),
            Written::Delete(request, answer) => format!("delete {} {}", request.key, answer.is_ok()),
        };
        log.lock().unwrap().push(line);
    });
    let recording = Recording { inner: Flaky::times(1, conflict), on_write };
    let _ = recording.apply(&request(&json!({}))).await;
    recording.delete(&Delete { key: request(&json!({})).key, uid: None }).await.unwrap();
    assert_eq!(*seen.lock().unwrap(), ["apply ConfigMap/ns/a false", "delete ConfigMap/ns/a true"]);
}
