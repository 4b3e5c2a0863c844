//! One list and watch of a path: what the server holds, then what changes.

use std::{borrow::Cow, collections::VecDeque, time::Duration};

use bytes::BytesMut;
use futures::StreamExt;
use http_body_util::BodyExt;
use kube::client::Body;
use plinth_api::{GroupVersionKind, Object};
use serde::Deserialize;
use serde_json::Value;
use tokio::time::{Instant, timeout};

use crate::{
    embedded::{self, News, Watched},
    fault,
    http::{ApiStatus, Call, Fault, Transport, chain},
    list,
};

/// How long the server is asked to keep a watch open, in seconds.
const SESSION: &str = "240";
/// Silence after which a connection counts as dead; longer than [`SESSION`], because a quiet server is a healthy one.
const SILENCE: Duration = Duration::from_secs(270);
/// How long the server may take to open a watch.
const OPENING: Duration = Duration::from_secs(30);
/// A watch that ends sooner than this, having said nothing, is a fault, so that it is not opened again in a hot loop.
const SHORTEST: Duration = Duration::from_secs(1);
/// Longest event; etcd refuses objects of far less.
const MAX_EVENT: usize = 16 << 20;

/// What a feed reports.
#[derive(Debug)]
pub(crate) enum Step {
    /// The server answers (again).
    Opened,
    /// Everything there is; what is not in it is gone.
    Reset(Vec<Object>),
    /// One object is new or changed.
    Applied(Object),
    /// One object is gone; this is its last state.
    Deleted(Object),
}

/// Position in the history of one path.
pub(crate) struct Feed {
    transport: Transport,
    path: String,
    gvk: GroupVersionKind,
    /// Selects a single object; `None` for all of them.
    name: Option<String>,
    version: Option<String>,
    /// What is read is thinned; whether its managers are kept.
    thins: Option<bool>,
}

/// The end of one connection.
enum End {
    /// The server closed it in good order, or its history is too old and must be listed again.
    Again,
    Fault(Fault),
}

#[derive(Deserialize)]
struct Line {
    #[serde(rename = "type")]
    kind: Cow<'static, str>,
    object: Object,
}

impl Feed {
    pub(crate) fn new(transport: Transport, path: String, gvk: GroupVersionKind) -> Self {
        Self { transport, path, gvk, name: None, version: None, thins: None }
    }

    /// The same for the object of this name alone.
    pub(crate) fn named(self, name: &str) -> Self {
        Self { name: Some(name.to_owned()), ..self }
    }

    /// The same without what only servers and reviewers of ownership need of what is read. What a server in this process
    /// holds anyway costs nothing as it is.
    pub(crate) fn thinned(self, keep_managers: bool) -> Self {
        Self { thins: Some(keep_managers), ..self }
    }

    /// A field selector, empty for all.
    fn fields(&self) -> String {
        self.name.as_ref().map(|name| format!("metadata.name={name}")).unwrap_or_default()
    }

    /// Reports steps until something fails; called again, it goes on where it was.
    pub(crate) async fn run(&mut self, report: &mut (dyn FnMut(Step) + Send)) -> Fault {
        loop {
            let version = match self.version.clone() {
                Some(version) => version,
                None => match self.list(report).await {
                    Ok(version) => version,
                    Err(fault) => return fault,
                },
            };
            if let End::Fault(fault) = self.watch(&version, report).await {
                return fault;
            }
        }
    }

    async fn list(&mut self, report: &mut (dyn FnMut(Step) + Send)) -> Result<String, Fault> {
        let list = list::all(&self.transport, &self.path, ("fieldSelector", &self.fields()), &self.gvk).await?;
        self.version = Some(list.resource_version.clone());
        let mut objects = list.objects;
        objects.iter_mut().for_each(|object| self.thin(object));
        report(Step::Reset(objects));
        Ok(list.resource_version)
    }

    async fn watch(&mut self, version: &str, report: &mut (dyn FnMut(Step) + Send)) -> End {
        let began = Instant::now();
        let call = Call::get(&self.path)
            .query("watch", "true")
            .query("resourceVersion", version)
            .query("allowWatchBookmarks", "true")
            .query("timeoutSeconds", SESSION);
        let call = if self.name.is_some() { call.query("fieldSelector", self.fields()) } else { call };
        let mut response = match timeout(OPENING, self.transport.open(call)).await {
            Ok(Ok(response)) => response,
            Ok(Err(fault)) => return self.ended(fault),
            Err(_) => return End::Fault(Fault::Connection(format!("the watch of {} did not open", self.path))),
        };
        report(Step::Opened);
        let mut lines = match Watched::take(&mut response) {
            Some(news) => Lines::Taken(news, VecDeque::new()),
            None => Lines::Read(Text::new(response.into_body())),
        };
        let (mut heard, is_read) = (false, matches!(lines, Lines::Read(_)));
        loop {
            match lines.next().await {
                Ok(Some(mut line)) => {
                    heard = true;
                    if is_read {
                        self.thin(&mut line.object);
                    }
                    if let Err(fault) = self.take(line, report) {
                        return self.ended(fault);
                    }
                }
                Ok(None) if heard || began.elapsed() >= SHORTEST => return End::Again,
                Ok(None) => return End::Fault(Fault::Connection(format!("the watch of {} ended at once", self.path))),
                Err(fault) => return End::Fault(fault),
            }
        }
    }

    fn thin(&self, object: &mut Object) {
        if let Some(keep_managers) = self.thins {
            thin_managed_fields(object, keep_managers);
        }
    }

    fn ended(&mut self, fault: Fault) -> End {
        match fault {
            Fault::Status(status) if fault::is_expired(&status) => {
                self.version = None;
                End::Again
            }
            fault => End::Fault(fault),
        }
    }

    fn take(&mut self, line: Line, report: &mut (dyn FnMut(Step) + Send)) -> Result<(), Fault> {
        let Line { kind, object } = line;
        if kind == "ERROR" {
            return Err(Fault::Status(Box::new(status(object.into_value()))));
        }
        if let Some(version) = object.at(&["metadata", "resourceVersion"]).and_then(Value::as_str) {
            self.version = Some(version.to_owned());
        }
        match kind.as_ref() {
            "ADDED" | "MODIFIED" => report(Step::Applied(object)),
            "DELETED" => report(Step::Deleted(object)),
            // A bookmark only moves the version; so does what a later server may add.
            _ => {}
        }
        Ok(())
    }
}

fn status(object: Value) -> ApiStatus {
    let code = object.get("code").and_then(Value::as_u64).and_then(|code| u16::try_from(code).ok()).unwrap_or(500);
    let mut status: ApiStatus = serde_json::from_value(object).unwrap_or_default();
    status.code = code;
    status
}

/// What a watch says, bounded in silence.
enum Lines {
    /// Of a server in this process.
    Taken(News, VecDeque<embedded::Line>),
    /// Of any other.
    Read(Text),
}

impl Lines {
    async fn next(&mut self) -> Result<Option<Line>, Fault> {
        match self {
            Self::Taken(news, waiting) => loop {
                if let Some(embedded::Line { object, kind }) = waiting.pop_front() {
                    return Ok(Some(Line { kind: kind.into(), object }));
                }
                match in_time(news.next()).await? {
                    Some(lines) => waiting.extend(lines.map_err(|error| Fault::Connection(chain(&*error)))?),
                    None => return Ok(None),
                }
            },
            Self::Read(text) => {
                let Some(line) = text.next().await? else { return Ok(None) };
                // The text stays out of the message: it may be a Secret.
                let unreadable = |_| Fault::Connection("a watch sent a line that is no event".to_owned());
                serde_json::from_slice(&line).map(Some).map_err(unreadable)
            }
        }
    }
}

async fn in_time<T>(next: impl Future<Output = T>) -> Result<T, Fault> {
    let silent = |_| Fault::Connection(format!("a watch was silent for {} s", SILENCE.as_secs()));
    timeout(SILENCE, next).await.map_err(silent)
}

/// Lines of a body, bounded in length.
struct Text {
    body: http_body_util::BodyDataStream<Body>,
    buffer: BytesMut,
    searched: usize,
}

impl Text {
    fn new(body: Body) -> Self {
        Self { body: body.into_data_stream(), buffer: BytesMut::new(), searched: 0 }
    }

    async fn next(&mut self) -> Result<Option<BytesMut>, Fault> {
        loop {
            if let Some(end) = self.buffer[self.searched..].iter().position(|byte| *byte == b'\n') {
                let line = self.buffer.split_to(self.searched + end + 1);
                self.searched = 0;
                return Ok(Some(line));
            }
            self.searched = self.buffer.len();
            if self.buffer.len() > MAX_EVENT {
                return Err(Fault::Connection(format!("a watch event is longer than {MAX_EVENT} bytes")));
            }
            match in_time(self.body.next()).await? {
                Some(Ok(bytes)) => self.buffer.extend_from_slice(&bytes),
                Some(Err(error)) => return Err(Fault::Connection(chain(&error))),
                None => return Ok(None),
            }
        }
    }
}

/// Drops what only servers and reviewers of ownership need, and what is often half of an object: `managedFields`, or, where it
/// is wanted who manages, the fields in it.
fn thin_managed_fields(object: &mut Object, keep_managers: bool) {
    if object.at(&["metadata", "managedFields"]).is_none() {
        return;
    }
    let metadata = object.metadata_mut();
    if !keep_managers {
        metadata.remove("managedFields");
        return;
    }
    for entry in metadata.get_mut("managedFields").and_then(Value::as_array_mut).into_iter().flatten() {
        if let Some(entry) = entry.as_object_mut() {
            entry.remove("fieldsV1");
        }
    }
}
