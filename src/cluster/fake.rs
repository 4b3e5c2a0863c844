//! A scripted API server for unit tests: a kube client over a function.

use std::{
    convert::Infallible,
    sync::{Arc, Mutex},
};

use bytes::Bytes;
use futures::stream;
use http::{Request, Response};
use http_body_util::{BodyExt, Full, StreamBody, combinators::UnsyncBoxBody};
use kube::client::Body;
use plinth_api::ClusterKey;
use serde_json::Value;
use tokio::sync::mpsc;

use crate::Cluster;

/// One request as the server sees it.
#[derive(Clone, Debug)]
pub(crate) struct Seen {
    pub(crate) method: String,
    pub(crate) path: String,
    pub(crate) query: String,
    pub(crate) content_type: String,
    pub(crate) body: Value,
}

impl Seen {
    pub(crate) fn line(&self) -> String {
        let mark = if self.query.is_empty() { "" } else { "?" };
        format!("{} {}{mark}{}", self.method, self.path, self.query)
    }

    pub(crate) fn is_watch(&self) -> bool {
        self.query.contains("watch=true")
    }
}

/// One answer.
pub(crate) enum Reply {
    Json(u16, Value),
    Text(u16, &'static str),
    /// Lines of a watch, until the sender is dropped.
    Lines(mpsc::UnboundedReceiver<Value>),
}

/// What a fake server got.
pub(crate) type Log = Arc<Mutex<Vec<Seen>>>;

/// A cluster whose requests `answer` answers.
pub(crate) fn cluster(answer: impl Fn(&Seen) -> Reply + Send + Sync + 'static) -> (Arc<Cluster>, Log) {
    let log = Log::default();
    let (seen, answer) = (Arc::clone(&log), Arc::new(answer));
    let service = tower::service_fn(move |request: Request<Body>| {
        let (seen, answer) = (Arc::clone(&seen), Arc::clone(&answer));
        async move {
            let request = read(request).await;
            seen.lock().unwrap().push(request.clone());
            Ok::<_, Infallible>(response(answer(&request)))
        }
    });
    (Cluster::with_client(ClusterKey::host(), kube::Client::new(service, "default")), log)
}

/// The requests so far, as lines.
pub(crate) fn lines(log: &Log) -> Vec<String> {
    log.lock().unwrap().iter().map(Seen::line).collect()
}

/// An answer of one kind's discovery, and 404 for the rest, for tests about something else.
pub(crate) fn discovery(path: &str) -> Option<Reply> {
    let resources = match path {
        "/api/v1" => vec![("configmaps", "ConfigMap", true), ("namespaces", "Namespace", false), ("secrets", "Secret", true)],
        "/apis/apps/v1" => vec![("deployments", "Deployment", true)],
        _ => return None,
    };
    let resources: Vec<Value> = resources
        .into_iter()
        .map(|(name, kind, namespaced)| serde_json::json!({"name": name, "kind": kind, "namespaced": namespaced}))
        .collect();
    Some(Reply::Json(200, serde_json::json!({"kind": "APIResourceList", "resources": resources})))
}

pub(crate) fn status(code: u16, reason: &str, name: &str) -> Reply {
    let details = serde_json::json!({"name": name, "kind": "things"});
    let message = format!("{reason} {name}");
    Reply::Json(
        code,
        serde_json::json!({"kind": "Status", "code": code, "reason": reason, "message": message, "details": details}),
    )
}

async fn read(request: Request<Body>) -> Seen {
    let (parts, body) = request.into_parts();
    let bytes = body.collect().await.unwrap().to_bytes();
    Seen {
        method: parts.method.to_string(),
        path: parts.uri.path().to_owned(),
        query: parts.uri.query().unwrap_or_default().to_owned(),
        content_type: parts.headers["content-type"].to_str().unwrap().to_owned(),
        body: serde_json::from_slice(&bytes).unwrap_or(Value::Null),
    }
}

fn response(reply: Reply) -> Response<UnsyncBoxBody<Bytes, Infallible>> {
    let (code, body) = match reply {
        Reply::Json(code, value) => (code, Full::new(Bytes::from(value.to_string())).boxed_unsync()),
        Reply::Text(code, text) => (code, Full::new(Bytes::from(text)).boxed_unsync()),
        Reply::Lines(receiver) => {
            let frames = stream::unfold(receiver, async |mut receiver| {
                let line: Value = receiver.recv().await?;
                Some((Ok(http_body::Frame::data(Bytes::from(format!("{line}\n")))), receiver))
            });
            (200, StreamBody::new(frames).boxed_unsync())
        }
    };
    Response::builder().status(code).body(body).unwrap()
}
