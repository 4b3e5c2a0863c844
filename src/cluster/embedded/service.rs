//! The API as a tower service: HTTP requests in, HTTP responses out, no socket.

use std::{
    convert::Infallible,
    pin::Pin,
    sync::{Arc, Mutex, OnceLock, PoisonError},
    task::{Context, Poll},
};

use bytes::Bytes;
use futures::{StreamExt, future::BoxFuture, stream, stream::BoxStream};
use http::{HeaderMap, Method, Request, Response, header};
use http_body::{Body, Frame, SizeHint};
use http_body_util::{BodyExt, Full, Limited, StreamBody, combinators::UnsyncBoxBody};
use jiff::Timestamp;
use plinth_api::Object;
use serde_json::{Map, Value};

use super::{
    Shared,
    api::{
        listing::Listing,
        problem::Problem,
        rbac::{Acting, User},
        route::QueryText,
        state::{Call, MAX_BODY, Reply},
        watch,
    },
    faults::Away,
};

/// Body of answers.
pub(super) type Answer = UnsyncBoxBody<Bytes, Infallible>;

/// The API for somebody; a bearer token or impersonation in a request says otherwise.
#[derive(Clone)]
pub struct Service {
    shared: Arc<Shared>,
    user: User,
    /// What every path begins with.
    root: String,
}

impl Service {
    pub(super) fn new(shared: Arc<Shared>, user: User) -> Self {
        Self { shared, user, root: String::new() }
    }

    /// The same below a path, such as `/clusters/NAME`: what a kubeconfig says whose server's address ends in it.
    #[must_use]
    pub fn at(mut self, root: impl Into<String>) -> Self {
        self.root = root.into();
        self
    }

    async fn answer<B>(self, request: Request<B>) -> Result<Response<Answer>, Away>
    where
        B: Body<Data = Bytes> + Send,
        B::Error: Into<Box<dyn std::error::Error + Send + Sync>>,
    {
        let (parts, body) = request.into_parts();
        // One byte more, so that the API sees that it is too much.
        let Ok(body) = Limited::new(body, MAX_BODY + 1).collect().await else {
            let problem = Problem::too_large(MAX_BODY);
            return Ok(json(problem.code, Said::Value(Arc::new(problem.status()))));
        };
        let text = |name| header_text(&parts.headers, name);
        let call = Call {
            method: parts.method,
            path: format!("{}{}", self.root, parts.uri.path()),
            query: QueryText::parse(parts.uri.query().unwrap_or_default()),
            content_type: text(header::CONTENT_TYPE.as_str()),
            acceptable: takes_json(&parts.headers),
            agent: text(header::USER_AGENT.as_str()),
            user: self.user,
            acting: acting(&parts.headers),
            token: text(header::AUTHORIZATION.as_str()).strip_prefix("Bearer ").map(str::to_owned),
            body: body.to_bytes(),
            now: self.shared.now(),
        };
        Ok(match self.shared.answer(&call)? {
            Reply::Json(code, value) => json(code, Said::Value(Arc::new(value))),
            Reply::Object(code, object) => json(code, Said::Value(object.into_shared())),
            Reply::List(list) => json(200, Said::List(list.into())),
            Reply::Written(code, text) => response(code, "application/json", Full::new(text).boxed_unsync()),
            Reply::Text(code, text) => {
                response(code, "text/plain; charset=utf-8", Full::new(Bytes::from(text.into_owned())).boxed_unsync())
            }
            Reply::Watch(plan) => Watched::new(watch::lines(self.shared, *plan).map(Ok).boxed()).answer(),
        })
    }
}

impl<B> tower::Service<Request<B>> for Service
where
    B: Body<Data = Bytes> + Send + 'static,
    B::Error: Into<Box<dyn std::error::Error + Send + Sync>>,
{
    type Response = Response<UnsyncBoxBody<Bytes, Infallible>>;
    type Error = Away;
    type Future = BoxFuture<'static, Result<Self::Response, Away>>;

    fn poll_ready(&mut self, _: &mut Context<'_>) -> Poll<Result<(), Away>> {
        Poll::Ready(Ok(()))
    }

    fn call(&mut self, request: Request<B>) -> Self::Future {
        let service = self.clone();
        Box::pin(service.answer(request))
    }
}

impl Call {
    /// A request of the control plane itself.
    pub(super) fn internal(path: String, body: &Value, now: Timestamp) -> Self {
        Self {
            method: Method::POST,
            path,
            query: QueryText::default(),
            content_type: "application/json".to_owned(),
            acceptable: true,
            agent: "kube-apiserver".to_owned(),
            user: User::admin(),
            acting: None,
            token: None,
            body: Bytes::from(body.to_string()),
            now,
        }
    }
}

fn header_text(headers: &HeaderMap, name: &str) -> String {
    headers.get(name).and_then(|value| value.to_str().ok()).unwrap_or_default().to_owned()
}

/// Whether JSON is wanted, which is the only form that objects come in. A table is not made, and who wants one or an object gets
/// the object.
fn takes_json(headers: &HeaderMap) -> bool {
    const TAKEN: [&str; 3] = ["application/json", "application/yaml", "*/*"];
    let mut said = headers.get_all(header::ACCEPT).iter().filter_map(|value| value.to_str().ok()).peekable();
    said.peek().is_none_or(|first| first.is_empty())
        || said.flat_map(|accept| accept.split(',')).any(|clause| {
            let mut parts = clause.split(';').map(str::trim);
            let kind = parts.next().unwrap_or_default();
            TAKEN.iter().any(|taken| kind.eq_ignore_ascii_case(taken)) && !parts.any(|part| part == "as=Table")
        })
}

fn acting(headers: &HeaderMap) -> Option<Acting> {
    let name = header_text(headers, "impersonate-user");
    let groups = headers.get_all("impersonate-group").iter().filter_map(|value| value.to_str().ok());
    let groups: Vec<String> = groups.map(str::to_owned).collect();
    (!name.is_empty() || !groups.is_empty()).then_some(Acting { name, groups })
}

/// What a JSON answer says, as an extension of the response: who asks in this process takes it, and no text is written or read.
/// Objects in it are shared with the store.
#[derive(Clone, Debug)]
pub struct Answered(Said);

#[derive(Clone, Debug)]
enum Said {
    Value(Arc<Value>),
    List(Arc<Listing>),
}

impl Answered {
    /// Takes it out of a response, whose body then goes unread.
    pub fn take<B>(mut response: Response<B>) -> Result<Self, Response<B>> {
        response.extensions_mut().remove().ok_or(response)
    }

    /// An answer that was read as text.
    pub(crate) fn read(value: Value) -> Self {
        Self(Said::Value(Arc::new(value)))
    }

    /// As JSON.
    pub fn into_value(self) -> Value {
        match self.0 {
            Said::Value(value) => Arc::unwrap_or_clone(value),
            Said::List(list) => serde_json::to_value(&*list).expect(SERIALIZE),
        }
    }

    /// As an object; `None` where it is none.
    pub fn into_object(self) -> Option<Object> {
        match self.0 {
            Said::Value(value) => Object::from_shared(value),
            Said::List(_) => None,
        }
    }

    /// As the objects of a list and its metadata.
    pub fn into_list(self) -> (Vec<Object>, Map<String, Value>) {
        match self.0 {
            Said::List(list) => {
                let list = Arc::unwrap_or_clone(list);
                (list.items, list.metadata)
            }
            Said::Value(value) => {
                let mut list = Arc::unwrap_or_clone(value);
                let items = list.get_mut("items").map(Value::take);
                let items = items.and_then(|items| if let Value::Array(items) = items { Some(items) } else { None });
                let metadata = list.get_mut("metadata").map(Value::take).and_then(Object::from_value).unwrap_or_default();
                let objects = items.into_iter().flatten().filter_map(Object::from_value).collect();
                (objects, Map::clone(&metadata.0))
            }
        }
    }

    /// The object, where it is one, and the response keeps it.
    pub fn object(&self) -> Option<Object> {
        self.clone().into_object()
    }

    fn text(&self) -> Vec<u8> {
        match &self.0 {
            Said::Value(value) => serde_json::to_vec(&**value),
            Said::List(list) => serde_json::to_vec(&**list),
        }
        .expect(SERIALIZE)
    }
}

const SERIALIZE: &str = "JSON values always serialize";

/// JSON as a body, written out when somebody reads it or asks how long it is.
struct Json {
    said: Answered,
    text: OnceLock<Bytes>,
    is_read: bool,
}

impl Json {
    fn text(&self) -> &Bytes {
        self.text.get_or_init(|| self.said.text().into())
    }
}

impl Body for Json {
    type Data = Bytes;
    type Error = Infallible;

    fn poll_frame(mut self: Pin<&mut Self>, _: &mut Context<'_>) -> Poll<Option<Result<Frame<Bytes>, Infallible>>> {
        if std::mem::replace(&mut self.is_read, true) {
            return Poll::Ready(None);
        }
        Poll::Ready(Some(Ok(Frame::data(self.text().clone()))))
    }

    fn is_end_stream(&self) -> bool {
        self.is_read
    }

    fn size_hint(&self) -> SizeHint {
        SizeHint::with_exact(if self.is_read { 0 } else { self.text().len() as u64 })
    }
}

fn json(code: u16, said: Said) -> Response<Answer> {
    let said = Answered(said);
    let body = Json { said: said.clone(), text: OnceLock::new(), is_read: false };
    let mut response = response(code, "application/json", body.boxed_unsync());
    response.extensions_mut().insert(said);
    response
}

/// What a watch says, in order. An error is a connection that breaks.
pub type News = BoxStream<'static, Result<Vec<watch::Line>, Box<dyn std::error::Error + Send + Sync>>>;

/// What a watch says, as an extension of the response: who watches in this process takes it, as with [`Answered`].
#[derive(Clone)]
pub struct Watched(Arc<Mutex<Option<News>>>);

impl Watched {
    /// A watch that nobody has taken yet.
    pub fn new(news: News) -> Self {
        Self(Arc::new(Mutex::new(Some(news))))
    }

    /// Takes it out of a response, whose body then says nothing.
    pub fn take<B>(response: &mut Response<B>) -> Option<News> {
        response.extensions_mut().remove::<Self>()?.news()
    }

    fn news(&self) -> Option<News> {
        self.0.lock().unwrap_or_else(PoisonError::into_inner).take()
    }

    /// The response. Its body is the text of what was not taken.
    pub fn answer(self) -> Response<UnsyncBoxBody<Bytes, Infallible>> {
        let held = self.clone();
        let news = stream::once(async move { held.news().unwrap_or_else(|| stream::empty().boxed()) }).flatten();
        let lines = news
            .take_while(|lines| std::future::ready(lines.is_ok()))
            .filter_map(async |lines| lines.ok())
            .map(|lines| Ok(Frame::data(watch::text(&lines))));
        let mut response = response(200, "application/json", StreamBody::new(lines).boxed_unsync());
        response.extensions_mut().insert(self);
        response
    }
}

fn response(code: u16, kind: &'static str, body: Answer) -> Response<Answer> {
    let response = Response::builder().status(code).header(header::CONTENT_TYPE, kind);
    response.body(body).expect("the codes and headers in this file are valid")
}
