//! What people ask about one object beyond the object itself: its events, and a pod's log.

use plinth_api::{GroupVersionKind, Object, ObjectKey};
use plinth_engine::ports::ReadError;
use serde_json::Value;

use crate::{
    cluster::Cluster,
    fault,
    http::{Call, escape},
};

/// Most events that are read about one object.
const EVENTS: &str = "200";

/// Which log, and how much of it.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct LogQuery {
    /// The pod's namespace.
    pub namespace: String,
    /// The pod.
    pub pod: String,
    /// The container, where the pod has several.
    pub container: Option<String>,
    /// The last so many lines.
    pub lines: u32,
    /// Of the container's run before this one: what a crash leaves.
    pub previous: bool,
}

impl Cluster {
    /// The server's events about an object, in the server's order; a server keeps them for an hour.
    pub async fn events_about(&self, key: &ObjectKey) -> Result<Vec<Object>, ReadError> {
        // Events about cluster-scoped objects lie in the namespace default.
        let namespace = key.namespace.as_deref().unwrap_or("default");
        let about = format!("involvedObject.name={},involvedObject.kind={}", key.name, key.gvk.kind);
        let path = format!("/api/v1/namespaces/{}/events", escape(namespace));
        let call = Call::get(path).query("fieldSelector", about).query("limit", EVENTS);
        let kind = GroupVersionKind::new("", "v1", "Event");
        let mut answer = self.transport().json(call).await.map_err(|fault| fault::read_error(&kind, "events", "list", fault))?;
        let items = answer.get_mut("items").map(Value::take);
        let Some(Value::Array(items)) = items else { return Ok(Vec::new()) };
        Ok(items.into_iter().filter_map(Object::from_value).collect())
    }

    /// The last lines of a pod's log, oldest first.
    pub async fn logs(&self, query: &LogQuery) -> Result<Vec<String>, ReadError> {
        let path = format!("/api/v1/namespaces/{}/pods/{}/log", escape(&query.namespace), escape(&query.pod));
        // A line is as long as its program likes; the server cuts.
        let mut call = Call::get(path).accept("*/*").query("tailLines", query.lines.to_string()).query("limitBytes", "1048576");
        if let Some(container) = &query.container {
            call = call.query("container", container);
        }
        if query.previous {
            call = call.query("previous", "true");
        }
        let kind = GroupVersionKind::new("", "v1", "Pod");
        let text = self.transport().text(call).await.map_err(|fault| fault::read_error(&kind, "pods/log", "get", fault))?;
        Ok(text.lines().map(str::to_owned).collect())
    }
}
