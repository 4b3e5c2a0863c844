//! Answers what the terminal asks about one object. Every question is a task: a server that hangs blocks no key.

use std::{collections::BTreeMap, sync::Arc};

use jiff::Timestamp;
use plinth_api::{ClusterKey, GroupVersionKind, Object, ObjectKey};
use plinth_cluster::LogQuery;
use plinth_engine::{
    health::{Health, judge},
    ports::{Query, ReadError, Reader},
};
use plinth_tui::{Answer, Ask, ClusterEvent, Fetched, Message, What};
use serde_json::Value;
use tokio::{
    runtime::Handle,
    sync::{mpsc as channel, oneshot},
};

use super::{host::Host, line::Line};

/// How many lines of a log are shown.
const LOG_LINES: u32 = 500;

/// Who knows what an object should be.
#[derive(Clone)]
pub(crate) enum Wanted {
    /// A run: what it applies.
    Run(Arc<BTreeMap<ObjectKey, Object>>),
    /// Whoever follows the platform: asked, and answered by what its graphs say.
    Graphs(channel::Sender<(ObjectKey, oneshot::Sender<Option<Object>>)>),
}

impl Wanted {
    async fn of(&self, key: &ObjectKey) -> Option<Object> {
        match self {
            Self::Run(objects) => objects.get(key).cloned(),
            Self::Graphs(follower) => {
                let (sender, answer) = oneshot::channel();
                follower.send((key.clone(), sender)).await.ok()?;
                answer.await.ok()?
            }
        }
    }
}

/// Reads for the terminal.
#[derive(Clone)]
pub(crate) struct Fetcher {
    host: Host,
    wanted: Wanted,
    line: Line,
    runtime: Handle,
}

impl Fetcher {
    /// A reader that answers on `line`. Must be called inside the runtime.
    pub(crate) fn new(host: Host, wanted: Wanted, line: impl Into<Line>) -> Self {
        Self { host, wanted, line: line.into(), runtime: Handle::current() }
    }

    /// Begins to answer; returns at once.
    pub(crate) fn ask(&self, ask: Ask) {
        let this = self.clone();
        self.runtime.spawn(async move {
            let answer = if ask.key.cluster == ClusterKey::host() {
                this.answer(&ask).await
            } else {
                Err(format!("there is no access to cluster {} from here", ask.key.cluster))
            };
            // A terminal that is gone asks no more.
            let _gone = this.line.send(Message::Fetched(Box::new(Fetched { ask, answer })));
        });
    }

    async fn answer(&self, ask: &Ask) -> Result<Answer, String> {
        let cluster = &self.host.0;
        let told = |error: ReadError| format!("read {}: {error}", ask.key);
        match ask.what {
            What::Object => {
                let live = cluster.get(&ask.key).await.map_err(told)?;
                Ok(Answer::Object { live, desired: self.wanted.of(&ask.key).await })
            }
            What::Events => {
                let events = cluster.events_about(&ask.key).await.map_err(told)?;
                Ok(Answer::Events(events.iter().filter_map(|event| event_of(event, &ask.key)).collect()))
            }
            What::Logs => {
                let pod = self.worst_pod(&ask.key).await?;
                let query = query_of(&pod).ok_or("the pod has no namespace")?;
                let lines = cluster.logs(&query).await.map_err(told)?;
                let container = query.container.as_ref().map(|name| format!(" container {name}")).unwrap_or_default();
                let before = if query.previous { ", before it was restarted" } else { "" };
                Ok(Answer::Logs { of: format!("pod {}{container}{before}", query.pod), lines })
            }
        }
    }

    /// The pod itself, or of a workload's pods the one that is worst off.
    async fn worst_pod(&self, key: &ObjectKey) -> Result<Object, String> {
        let told = |error: ReadError| format!("read pods of {key}: {error}");
        let object = self.host.0.get(key).await.map_err(told)?.ok_or("it does not exist")?;
        if key.gvk.group.is_empty() && key.gvk.kind == "Pod" {
            return Ok(object);
        }
        let selector = selector_of(&object).ok_or("it has no pods of its own; choose a workload or a pod below it")?;
        let gvk = GroupVersionKind::new("", "v1", "Pod");
        let query = Query { cluster: key.cluster.clone(), gvk, namespace: key.namespace.clone(), selector };
        let pods = self.host.0.list(&query).await.map_err(told)?;
        pods.into_iter().min_by_key(|pod| order_of(judge(pod).health)).ok_or_else(|| "it has no pods yet".to_owned())
    }
}

/// What failed first, what is well last.
fn order_of(health: Health) -> u8 {
    match health {
        Health::Failed => 0,
        Health::Current => 2,
        _ => 1,
    }
}

/// A workload's `spec.selector.matchLabels` in the text form.
fn selector_of(object: &Object) -> Option<String> {
    let labels = object.at(&["spec", "selector", "matchLabels"])?.as_object()?;
    let pairs: Vec<String> = labels.iter().filter_map(|(key, value)| Some(format!("{key}={}", value.as_str()?))).collect();
    (!pairs.is_empty()).then(|| pairs.join(","))
}

/// The log of the container that is not ready, of its run before where it has crashed.
fn query_of(pod: &Object) -> Option<LogQuery> {
    let statuses = ["initContainerStatuses", "containerStatuses"];
    let mut statuses =
        statuses.iter().filter_map(|list| pod.at(&["status", list])?.as_array()).flatten().filter(|status| !is_well(status));
    let worst = statuses.next();
    let text = |name: &str| worst.and_then(|status| status.get(name)).and_then(Value::as_str).map(str::to_owned);
    let first = || pod.at(&["spec", "containers"])?.as_array()?.first()?.get("name")?.as_str().map(str::to_owned);
    let waits = worst.and_then(|status| status.pointer("/state/waiting")).is_some();
    let restarts = worst.and_then(|status| status.get("restartCount")).and_then(Value::as_i64).unwrap_or_default();
    Some(LogQuery {
        namespace: pod.namespace()?.to_owned(),
        pod: pod.name().to_owned(),
        container: text("name").or_else(first),
        lines: LOG_LINES,
        previous: waits && restarts > 0,
    })
}

fn is_well(status: &Value) -> bool {
    let done = status.pointer("/state/terminated/exitCode").and_then(Value::as_i64) == Some(0);
    done || status.get("ready").and_then(Value::as_bool) == Some(true)
}

fn event_of(event: &Object, key: &ObjectKey) -> Option<ClusterEvent> {
    let text = |path: &[&str]| event.at(path).and_then(Value::as_str).unwrap_or_default();
    let at = [["lastTimestamp"].as_slice(), &["eventTime"], &["metadata", "creationTimestamp"]];
    let at = at.iter().find_map(|path| text(path).parse::<Timestamp>().ok())?;
    Some(ClusterEvent {
        at,
        key: key.clone(),
        warning: text(&["type"]) == "Warning",
        reason: text(&["reason"]).to_owned(),
        message: text(&["message"]).to_owned(),
    })
}

#[cfg(test)]
mod tests {
    use serde_json::json;

    use super::*;

    fn object(value: Value) -> Object {
        Object::from_value(value).unwrap()
    }

    #[test]
    fn the_log_is_of_the_container_that_crashed_and_of_the_run_that_did() {
        let pod = object(json!({
            "metadata": {"name": "p", "namespace": "n"},
            "spec": {"containers": [{"name": "main"}, {"name": "side"}]},
            "status": {
                "initContainerStatuses": [{"name": "init", "ready": false, "state": {"terminated": {"exitCode": 0}}}],
                "containerStatuses": [
                    {"name": "main", "ready": true},
                    {"name": "side", "ready": false, "restartCount": 3, "state": {"waiting": {"reason": "CrashLoopBackOff"}}},
                ],
            },
        }));
        let query = query_of(&pod).unwrap();
        assert_eq!((query.container.as_deref(), query.previous), (Some("side"), true));
    }

    #[test]
    fn events_are_read_in_both_of_their_forms() {
        let key = ObjectKey {
            cluster: ClusterKey::host(),
            gvk: GroupVersionKind::new("", "v1", "Pod"),
            namespace: Some("n".to_owned()),
            name: "p".to_owned(),
        };
        let old = json!({"type": "Warning", "reason": "Failed", "message": "m", "lastTimestamp": "2026-01-01T00:00:00Z"});
        let new = json!({"type": "Normal", "reason": "Pulled", "lastTimestamp": null, "eventTime": "2026-01-01T00:00:01.5Z"});
        assert!(event_of(&object(old), &key).unwrap().warning);
        assert!(!event_of(&object(new), &key).unwrap().warning);
        assert_eq!(event_of(&object(json!({"reason": "Undated"})), &key), None);
    }
}
