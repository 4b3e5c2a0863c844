//! Requests to one API server: bounded answers, a deadline, typed faults.
//!
//! kube's own `Client::request` is not used, because it logs the text of an answer that it cannot read (it may be a
//! Secret), retries invisibly, and reads without a bound.

use std::{
    fmt::Write as _,
    sync::{Arc, Mutex, PoisonError},
    time::Duration,
};

use bytes::Bytes;
use http::{HeaderValue, Method, Request, StatusCode, header};
use http_body_util::{BodyExt, Limited};
use kube::client::Body;
use plinth_api::login;
use plinth_engine::ports::ServiceAccount;
use serde::Deserialize;
use serde_json::Value;
use tokio::time::Instant;

use crate::embedded::Answered;

/// How long one request may take; a watch is no such request.
const DEADLINE: Duration = Duration::from_secs(30);
/// How long a request may take where the whole has no time left: what was begun is still ended.
const LEAST: Duration = Duration::from_secs(1);
/// Largest answer that is read into memory. OpenAPI documents and pages of 500 objects stay far below.
const MAX_ANSWER: usize = 64 << 20;
/// Largest error text that is kept.
const MAX_TEXT: usize = 2048;

/// Who asks, in the server's audit log.
const USER_AGENT: &str = concat!("plinth/", env!("CARGO_PKG_VERSION"));

/// In whose name a request is made; of a service account the server knows the groups itself.
const IMPERSONATE: &str = "impersonate-user";

/// Content type of a server-side apply; JSON is YAML.
pub(crate) const APPLY: &str = "application/apply-patch+yaml";
/// Content type of plain JSON bodies.
pub(crate) const JSON: &str = "application/json";

/// One request.
#[derive(Clone, Debug)]
pub(crate) struct Call {
    method: Method,
    path: String,
    query: Vec<(&'static str, String)>,
    accept: &'static str,
    body: Option<(&'static str, Vec<u8>)>,
}

impl Call {
    pub(crate) fn new(method: Method, path: impl Into<String>) -> Self {
        Self { method, path: path.into(), query: Vec::new(), accept: JSON, body: None }
    }

    pub(crate) fn get(path: impl Into<String>) -> Self {
        Self::new(Method::GET, path)
    }

    pub(crate) fn query(mut self, name: &'static str, value: impl Into<String>) -> Self {
        self.query.push((name, value.into()));
        self
    }

    pub(crate) fn accept(mut self, accept: &'static str) -> Self {
        self.accept = accept;
        self
    }

    pub(crate) fn body(mut self, content_type: &'static str, value: &impl serde::Serialize) -> Self {
        let bytes = serde_json::to_vec(value).expect("JSON values and wire types always serialize");
        self.body = Some((content_type, bytes));
        self
    }

    /// Method and path, for messages.
    fn words(&self) -> String {
        format!("{} {}", self.method, self.path)
    }

    fn request(self) -> Result<Request<Body>, Fault> {
        let mut uri = self.path;
        for (index, (name, value)) in self.query.iter().enumerate() {
            uri.push(if index == 0 { if uri.contains('?') { '&' } else { '?' } } else { '&' });
            let _ = write!(uri, "{name}={}", escape(value));
        }
        let (content_type, bytes) = self.body.unwrap_or((JSON, Vec::new()));
        Request::builder()
            .method(self.method)
            .uri(uri)
            .header(header::USER_AGENT, USER_AGENT)
            .header(header::ACCEPT, self.accept)
            .header(header::CONTENT_TYPE, content_type)
            .body(Body::from(bytes))
            .map_err(|error| Fault::Connection(format!("the request cannot be formed: {error}")))
    }
}

/// Percent-encodes everything but the characters that RFC 3986 calls unreserved.
pub(crate) fn escape(text: &str) -> String {
    let mut escaped = String::with_capacity(text.len());
    for byte in text.bytes() {
        if byte.is_ascii_alphanumeric() || b"-._~".contains(&byte) {
            escaped.push(char::from(byte));
        } else {
            let _ = write!(escaped, "%{byte:02X}");
        }
    }
    escaped
}

/// Why a request has no answer of the wanted type.
#[derive(Clone, Debug)]
pub(crate) enum Fault {
    /// The server answered with an error.
    Status(Box<ApiStatus>),
    /// The server was not reached, or did not answer in time, or not in a form that can be read.
    Connection(String),
}

/// The parts of `metav1.Status` that decide.
#[derive(Clone, Debug, Default, Deserialize)]
#[serde(default)]
pub(crate) struct ApiStatus {
    kind: String,
    pub(crate) code: u16,
    pub(crate) reason: String,
    pub(crate) message: String,
    pub(crate) details: StatusDetails,
}

/// `metav1.Status.details`.
#[derive(Clone, Debug, Default, Deserialize)]
#[serde(default, rename_all = "camelCase")]
pub(crate) struct StatusDetails {
    pub(crate) name: String,
    pub(crate) kind: String,
    pub(crate) causes: Vec<StatusCause>,
    pub(crate) retry_after_seconds: u64,
}

/// One of `metav1.Status.details.causes`.
#[derive(Clone, Debug, Default, Deserialize)]
#[serde(default)]
pub(crate) struct StatusCause {
    pub(crate) reason: String,
}

impl ApiStatus {
    /// Reads an error answer. What is not a Status (a proxy's page, the mux's plain text, JSON of another kind, as kcp gives
    /// some) keeps its text as message.
    pub(crate) fn read(code: StatusCode, body: &[u8]) -> Self {
        let mut status: Self = serde_json::from_slice(body).unwrap_or_default();
        status.code = code.as_u16();
        if status.message.is_empty() && status.kind != "Status" {
            let text = String::from_utf8_lossy(&body[..body.len().min(MAX_TEXT)]);
            text.trim().clone_into(&mut status.message);
        }
        if status.message.is_empty() {
            code.canonical_reason().unwrap_or("no reason given").clone_into(&mut status.message);
        }
        status
    }
}

/// The HTTP side of a cluster: a kube client, which any tower service can be behind.
#[derive(Clone)]
pub(crate) struct Transport {
    client: kube::Client,
    /// When whoever asks gives up; shared by all clones.
    until: Arc<Mutex<Option<Instant>>>,
    /// As whom it asks, where that is not whom the client logs in as.
    acting_as: Option<HeaderValue>,
}

impl Transport {
    pub(crate) fn new(client: kube::Client) -> Self {
        Self { client, until: Arc::default(), acting_as: None }
    }

    /// The same server, asked in somebody else's name. The server refuses all of it unless the client may impersonate them.
    pub(crate) fn acting_as(&self, account: &ServiceAccount) -> Self {
        let name = HeaderValue::try_from(account.to_string()).expect("namespaces and names of Kubernetes are visible ASCII");
        Self { acting_as: Some(name), ..self.clone() }
    }

    /// Sets when whoever asks gives up, or that nobody does.
    pub(crate) fn give_up_at(&self, until: Option<Instant>) {
        *self.until.lock().unwrap_or_else(PoisonError::into_inner) = until;
    }

    /// How long the next request may take.
    fn patience(&self) -> Duration {
        let until = *self.until.lock().unwrap_or_else(PoisonError::into_inner);
        until.map_or(DEADLINE, |until| until.saturating_duration_since(Instant::now()).clamp(LEAST, DEADLINE))
    }

    pub(crate) fn client(&self) -> &kube::Client {
        &self.client
    }

    /// Sends a request and reads a JSON answer.
    pub(crate) async fn json(&self, call: Call) -> Result<Value, Fault> {
        self.answer(call).await.map(Answered::into_value)
    }

    /// Sends a request and takes or reads a JSON answer.
    pub(crate) async fn answer(&self, call: Call) -> Result<Answered, Fault> {
        let what = call.words();
        let exchange = async {
            let response = match Answered::take(self.open(call).await?) {
                Ok(answered) => return Ok(answered),
                Err(response) => response,
            };
            let read = serde_json::from_slice(&read(response).await?).map(Answered::read);
            // The text of the answer stays out of the message: it may hold a secret.
            read.map_err(|error| Fault::Connection(format!("{what}: the answer is not JSON: {error}")))
        };
        self.in_time(&what, exchange).await
    }

    /// Sends a request and reads a text; what is not UTF-8 is replaced.
    pub(crate) async fn text(&self, call: Call) -> Result<String, Fault> {
        self.bytes(call).await.map(|bytes| String::from_utf8_lossy(&bytes).into_owned())
    }

    /// Sends a request and reads an answer as it is.
    pub(crate) async fn bytes(&self, call: Call) -> Result<Bytes, Fault> {
        let what = call.words();
        let exchange = async { read(self.open(call).await?).await };
        self.in_time(&what, exchange).await
    }

    async fn in_time<T>(&self, what: &str, exchange: impl Future<Output = Result<T, Fault>>) -> Result<T, Fault> {
        let patience = self.patience();
        tokio::time::timeout(patience, exchange)
            .await
            .unwrap_or_else(|_| Err(Fault::Connection(format!("{what}: no answer within {:.1}s", patience.as_secs_f64()))))
    }

    /// Sends a request and hands over the open answer, for a watch; an error status is read and returned as a fault.
    pub(crate) async fn open(&self, call: Call) -> Result<http::Response<Body>, Fault> {
        let mut request = call.request()?;
        if let Some(name) = &self.acting_as {
            request.headers_mut().insert(IMPERSONATE, name.clone());
        }
        let response = self.client.send(request).await.map_err(|error| Fault::Connection(chain(&error)))?;
        let code = response.status();
        if code.is_success() {
            return Ok(response);
        }
        Err(Fault::Status(Box::new(ApiStatus::read(code, &read(response).await?))))
    }
}

/// The whole body of an answer.
async fn read(response: http::Response<Body>) -> Result<Bytes, Fault> {
    let body = Limited::new(response.into_body(), MAX_ANSWER).collect().await;
    body.map(http_body_util::Collected::to_bytes).map_err(|error| Fault::Connection(chain(&*error)))
}

/// An error with its causes, each said once, and no login of a URL. Layers of the client library that only say that there is a cause
/// are left out.
pub fn chain(error: &dyn std::error::Error) -> String {
    let mut text = String::new();
    let mut rest = Some(error);
    while let Some(error) = rest {
        rest = error.source();
        let words = plain(error.to_string());
        let says_nothing = rest.is_some() && LAYERS.iter().any(|layer| words.starts_with(layer));
        if says_nothing || text.contains(&words) {
            continue;
        }
        if !text.is_empty() {
            text.push_str(": ");
        }
        text.push_str(&words);
    }
    login::hidden(&text)
}

/// How errors begin that only wrap another one.
const LAYERS: [&str; 4] = ["ServiceError", "HyperError", "client error (", "tcp connect error"];

/// Without the system's number of the error.
fn plain(words: String) -> String {
    match words.rsplit_once(" (os error ") {
        Some((text, number)) if number.strip_suffix(')').is_some_and(|number| number.parse::<i32>().is_ok()) => text.to_owned(),
        _ => words,
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn queries_are_escaped() {
        let call = Call::get("/api/v1/pods").query("labelSelector", "a in (x,y)").query("limit", "5");
        assert_eq!(call.request().unwrap().uri(), "/api/v1/pods?labelSelector=a%20in%20%28x%2Cy%29&limit=5");
        let call = Call::get("/openapi/v3/apis/apps/v1?hash=A").query("x", "1");
        assert_eq!(call.request().unwrap().uri(), "/openapi/v3/apis/apps/v1?hash=A&x=1");
    }

    #[test]
    fn every_request_says_who_asks() {
        let request = Call::get("/version").request().unwrap();
        assert_eq!(request.headers()[header::USER_AGENT], concat!("plinth/", env!("CARGO_PKG_VERSION")));
    }

    #[derive(Debug, thiserror::Error)]
    #[error("{0}")]
    struct Layer(&'static str, #[source] Option<Box<Layer>>);

    #[test]
    fn a_chain_of_errors_says_what_happened_and_nothing_of_the_library() {
        let of =
            |words: &[&'static str]| words.iter().rev().fold(None, |inner, word| Some(Box::new(Layer(word, inner)))).unwrap();
        let refused = of(&[
            "ServiceError: client error (Connect)",
            "client error (Connect)",
            "tcp connect error",
            "Connection refused (os error 111)",
        ]);
        assert_eq!(chain(&*refused), "Connection refused");
        let tls =
            of(&["client error (Connect)", "invalid peer certificate: UnknownIssuer", "invalid peer certificate: UnknownIssuer"]);
        assert_eq!(chain(&*tls), "invalid peer certificate: UnknownIssuer");
        assert_eq!(chain(&*of(&["client error (Connect)"])), "client error (Connect)");
    }

    #[test]
    fn an_error_that_is_no_status_keeps_its_text() {
        let status = ApiStatus::read(StatusCode::NOT_FOUND, b"404 page not found\n");
        assert_eq!((status.code, status.message.as_str()), (404, "404 page not found"));
        let status = ApiStatus::read(StatusCode::FORBIDDEN, br#"{"error": "access_denied", "hint": "ask bob"}"#);
        assert_eq!(status.message, r#"{"error": "access_denied", "hint": "ask bob"}"#);
        let status = ApiStatus::read(StatusCode::FORBIDDEN, br#"{"message": "no", "code": "E17"}"#);
        assert_eq!((status.code, status.message.as_str()), (403, r#"{"message": "no", "code": "E17"}"#));
        let status = ApiStatus::read(StatusCode::BAD_GATEWAY, b"");
        assert_eq!(status.message, "Bad Gateway");
    }
}
