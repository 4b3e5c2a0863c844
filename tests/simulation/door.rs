//! Requests straight to the control plane, past all faults: what users, operators and the test itself do.

use std::{pin::Pin, time::Duration};

use bytes::Bytes;
use futures::{Stream, StreamExt};
use http::Request;
use http_body_util::{BodyExt, Full};
use plinth_cluster::embedded::{Answered, Embedded, Service, api::rbac::User};
use serde_json::Value;
use tower::ServiceExt;

/// A client that may do everything.
#[derive(Clone)]
pub(crate) struct Door(Service);

impl Door {
    pub(crate) fn to(plane: &Embedded) -> Self {
        Self(plane.service(User::admin()))
    }

    async fn open(
        &self,
        method: &str,
        path: &str,
        content_type: &str,
        body: Bytes,
    ) -> http::Response<impl http_body::Body<Data = Bytes, Error = std::convert::Infallible> + use<>> {
        let request = Request::builder().method(method).uri(path).header("content-type", content_type);
        self.0.clone().oneshot(request.body(Full::new(body)).unwrap()).await.unwrap()
    }

    pub(crate) async fn send(&self, method: &str, path: &str, content_type: &str, body: &Value) -> (u16, Value) {
        let bytes = if body.is_null() { Bytes::new() } else { Bytes::from(body.to_string()) };
        let response = self.open(method, path, content_type, bytes).await;
        let code = response.status().as_u16();
        (code, Answered::take(response).unwrap_or_default())
    }

    pub(crate) async fn get(&self, path: &str) -> Option<Value> {
        let (code, object) = self.send("GET", path, "application/json", &Value::Null).await;
        (code == 200).then_some(object)
    }

    /// The objects of a collection, none where it is not served.
    pub(crate) async fn list(&self, path: &str) -> Vec<Value> {
        let found = self.get(path).await.and_then(|mut list| Some(list.get_mut("items")?.take()));
        found.and_then(|items| items.as_array().cloned()).unwrap_or_default()
    }

    pub(crate) async fn create(&self, path: &str, object: &Value) {
        let (code, answer) = self.send("POST", path, "application/json", object).await;
        assert!(code == 201 || code == 409, "{path}: {answer}");
    }

    pub(crate) async fn merge(&self, path: &str, patch: &Value) -> bool {
        let (code, _) = self.send("PATCH", path, "application/merge-patch+json", patch).await;
        code == 200
    }

    /// The objects of a collection as they are and as they change, until the stream is dropped. Who lags behind a short history,
    /// or watches for too long, gets all of them again.
    pub(crate) fn watch(&self, path: &'static str) -> Pin<Box<dyn Stream<Item = Value> + Send>> {
        let sessions = futures::stream::unfold((self.clone(), Duration::ZERO), async move |(door, pause)| {
            tokio::time::sleep(pause).await;
            Some((door.session(path).await, (door, Duration::from_millis(100))))
        });
        Box::pin(sessions.flatten().filter(|event| std::future::ready(event["type"] != "ERROR")))
    }

    async fn session(&self, path: &str) -> Pin<Box<dyn Stream<Item = Value> + Send>> {
        let response = self.open("GET", &format!("{path}?watch=true"), "application/json", Bytes::new()).await;
        let lines = response.into_body().into_data_stream().flat_map(|chunk| {
            let chunk = chunk.unwrap();
            let lines: Vec<Value> =
                chunk.split(|byte| *byte == b'\n').filter_map(|line| serde_json::from_slice(line).ok()).collect();
            futures::stream::iter(lines)
        });
        Box::pin(lines)
    }
}
