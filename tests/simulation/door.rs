//! Requests straight to the control plane, past all faults: what users, operators and the test itself do.

use std::{pin::Pin, time::Duration};

use bytes::Bytes;
use futures::{Stream, StreamExt};
use http::Request;
use http_body_util::Full;
use plinth_api::Object;
use plinth_cluster::embedded::{Answered, Embedded, Line, Service, Watched, api::rbac::User};
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

    pub(crate) async fn send(&self, method: &str, path: &str, content_type: &str, body: &Value) -> (u16, Option<Answered>) {
        let bytes = if body.is_null() { Bytes::new() } else { Bytes::from(body.to_string()) };
        let response = self.open(method, path, content_type, bytes).await;
        (response.status().as_u16(), Answered::take(response).ok())
    }

    async fn answer(&self, path: &str) -> Option<Answered> {
        let (code, answer) = self.send("GET", path, "application/json", &Value::Null).await;
        answer.filter(|_| code == 200)
    }

    pub(crate) async fn get(&self, path: &str) -> Option<Object> {
        self.answer(path).await?.into_object()
    }

    /// The objects of a collection, none where it is not served.
    pub(crate) async fn list(&self, path: &str) -> Vec<Object> {
        self.answer(path).await.map(|answer| answer.into_list().0).unwrap_or_default()
    }

    pub(crate) async fn create(&self, path: &str, object: &Value) {
        let (code, answer) = self.send("POST", path, "application/json", object).await;
        assert!(code == 201 || code == 409, "{path}: {answer:?}");
    }

    pub(crate) async fn merge(&self, path: &str, patch: &Value) -> bool {
        let (code, _) = self.send("PATCH", path, "application/merge-patch+json", patch).await;
        code == 200
    }

    /// The objects of a collection as they are and as they change, until the stream is dropped. Who lags behind a short history,
    /// or watches for too long, gets all of them again.
    pub(crate) fn watch(&self, path: &'static str) -> Pin<Box<dyn Stream<Item = Line> + Send>> {
        let sessions = futures::stream::unfold((self.clone(), Duration::ZERO), async move |(door, pause)| {
            tokio::time::sleep(pause).await;
            Some((door.session(path).await, (door, Duration::from_millis(100))))
        });
        Box::pin(sessions.flatten().filter(|event| std::future::ready(event.kind != "ERROR")))
    }

    async fn session(&self, path: &str) -> Pin<Box<dyn Stream<Item = Line> + Send>> {
        let mut response = self.open("GET", &format!("{path}?watch=true"), "application/json", Bytes::new()).await;
        let news = Watched::take(&mut response).into_iter();
        Box::pin(futures::stream::iter(news).flatten().flat_map(|lines| futures::stream::iter(lines.unwrap())))
    }
}
