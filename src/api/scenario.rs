//! Scenario (`plinth.dev/v1alpha1`): what the programs of a cluster where nothing runs would do, as rules, and what goes wrong
//! meanwhile.
//!
//! One language for two players: the embedded control plane follows all of it; on a real API server a stand-in follows the
//! rules that need no hand inside the server ([`Scenario::needs_embedded`]).

use std::{fmt, time::Duration};

use jiff::SignedDuration;
use serde::{Deserialize, Deserializer, de::Error as _};
use serde_json::{Map, Value};
use thiserror::Error;

use crate::{key::GroupVersionKind, object::Object, platform::API_VERSION};

/// Largest text that is read: CRDs are the bulk of it.
const MAX_BYTES: usize = 4 << 20;
/// Most rules.
const MAX_RULES: usize = 1000;
/// Most objects that all rules together register.
const MAX_OBJECTS: usize = 1000;
/// Deepest nesting; schemas of CRDs are what is deep.
const MAX_DEPTH: usize = 64;
/// Longest time.
const MAX_TIME: Duration = Duration::from_hours(24);

/// Rules, each for every object that it matches, and what is the same for all workloads.
#[derive(Clone, Debug, Default, PartialEq, Deserialize)]
#[serde(deny_unknown_fields)]
pub struct Scenario {
    /// How long workloads take that no rule is about.
    #[serde(default)]
    pub workloads: Workloads,
    /// What the identity that brings the platform up may do, as rules of a ClusterRole; everything where absent.
    #[serde(default)]
    pub permissions: Option<Vec<Map<String, Value>>>,
    /// In the order in which they are tried; they do not depend on one another.
    #[serde(default)]
    pub rules: Vec<Rule>,
}

/// How long the cluster's own programs take.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Deserialize)]
#[serde(rename_all = "camelCase", default, deny_unknown_fields)]
pub struct Workloads {
    /// From a Pod to Ready: its image is pulled, its containers start.
    #[serde(deserialize_with = "duration")]
    pub start: Duration,
    /// From a running Pod of a Job to its end.
    #[serde(deserialize_with = "duration")]
    pub complete: Duration,
    /// From a Service of type LoadBalancer to its address, from a claim to its volume.
    #[serde(deserialize_with = "duration")]
    pub provide: Duration,
}

impl Default for Workloads {
    fn default() -> Self {
        let short = Duration::from_millis(200);
        Self { start: short, complete: short, provide: short }
    }
}

/// One rule. It acts once for each object and generation, or once where it is about no object.
#[derive(Clone, Debug, Default, PartialEq, Deserialize)]
#[serde(rename_all = "camelCase", default, deny_unknown_fields)]
pub struct Rule {
    /// Which objects; absent for the beginning.
    pub when: Option<Trigger>,
    /// How long after the object matched, such as `2s` or `500ms`.
    #[serde(deserialize_with = "duration")]
    pub after: Duration,
    /// Makes a workload available: every replica that its spec wants is ready.
    pub available: bool,
    /// Merged into the object's status.
    pub status: Map<String, Value>,
    /// Objects to apply.
    pub register: Vec<Object>,
    /// For how long the API server is away: no request is answered, and watches break.
    #[serde(deserialize_with = "some_duration")]
    pub away: Option<Duration>,
    /// Writes that are refused as conflicts, from then on.
    pub conflicts: Option<Conflicts>,
    /// The kind whose watches end with 410 and can only begin again with a list.
    pub expire: Option<KindRef>,
}

/// Which objects a rule is about.
#[derive(Clone, Debug, Default, PartialEq, Deserialize)]
#[serde(rename_all = "camelCase", deny_unknown_fields)]
pub struct Trigger {
    /// Group and version.
    pub api_version: String,
    /// Kind.
    pub kind: String,
    /// Name; any where absent.
    #[serde(default)]
    pub name: Option<String>,
    /// Namespace; any where absent.
    #[serde(default)]
    pub namespace: Option<String>,
    /// What must be true of it.
    #[serde(default)]
    pub state: TriggerState,
}

/// What must be true of an object.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq, Deserialize)]
pub enum TriggerState {
    /// It is there.
    #[default]
    Exists,
    /// Its condition `Available` is True for its present generation.
    Available,
    /// Its condition `Ready` is True for its present generation.
    Ready,
}

/// Writes that are refused.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Deserialize)]
#[serde(deny_unknown_fields)]
pub struct Conflicts {
    /// Every how manieth write, from 2.
    pub every: u32,
    /// How many in all; without end where absent.
    #[serde(default)]
    pub times: Option<u32>,
}

/// A kind.
#[derive(Clone, Debug, PartialEq, Eq, Deserialize)]
#[serde(rename_all = "camelCase", deny_unknown_fields)]
pub struct KindRef {
    /// Group and version.
    pub api_version: String,
    /// Kind.
    pub kind: String,
}

/// Why a text is no scenario; names the place where it has one.
#[derive(Clone, Debug, PartialEq, Eq, Error)]
#[error("{0}")]
pub struct ScenarioError(pub String);

#[derive(Deserialize)]
#[serde(rename_all = "camelCase", deny_unknown_fields)]
struct Document {
    api_version: String,
    kind: String,
    #[serde(rename = "metadata")]
    _metadata: Map<String, Value>,
    spec: Scenario,
}

impl Scenario {
    /// Reads a scenario's document. Unknown fields, rules that do nothing, and what is out of bounds are errors.
    pub fn parse(text: &str) -> Result<Self, ScenarioError> {
        if text.len() > MAX_BYTES {
            return Err(error(format!("the text has {} bytes, more than the {MAX_BYTES} that are read", text.len())));
        }
        let document = on_own_stack(|| {
            serde_saphyr::from_str_with_options::<Document>(text, options())
                .map_err(|cause| error(crate::bound::words(&cause).unwrap_or_else(|| cause.to_string())))
        })?;
        if (document.api_version.as_str(), document.kind.as_str()) != (API_VERSION, "Scenario") {
            return Err(error(format!("expected {API_VERSION} Scenario, found {} {}", document.api_version, document.kind)));
        }
        document.spec.checked()
    }

    fn checked(self) -> Result<Self, ScenarioError> {
        if self.rules.len() > MAX_RULES {
            return Err(error(format!("spec.rules has {} rules, more than {MAX_RULES}", self.rules.len())));
        }
        let registered: usize = self.rules.iter().map(|rule| rule.register.len()).sum();
        if registered > MAX_OBJECTS {
            return Err(error(format!("the rules register {registered} objects, more than {MAX_OBJECTS}")));
        }
        for (index, rule) in self.rules.iter().enumerate() {
            rule.check().map_err(|message| error(format!("spec.rules[{index}]: {message}")))?;
        }
        Ok(self)
    }

    /// What of it only a control plane in this process can do; `None` where a stand-in on a real API server can follow it.
    pub fn needs_embedded(&self) -> Option<&'static str> {
        self.rules.iter().find_map(Rule::fault)
    }

    /// How long a workload takes to become available, where a rule says so.
    pub fn available_after(&self, workload: &Object) -> Option<Duration> {
        let about = |rule: &&Rule| rule.available && rule.when.as_ref().is_some_and(|when| when.matches(workload));
        self.rules.iter().find(about).map(|rule| rule.after)
    }
}

impl Rule {
    /// The fault that the rule makes, if it makes one.
    fn fault(&self) -> Option<&'static str> {
        let faults = [("away", self.away.is_some()), ("conflicts", self.conflicts.is_some()), ("expire", self.expire.is_some())];
        faults.into_iter().find(|(_, made)| *made).map(|(name, _)| name)
    }

    fn check(&self) -> Result<(), String> {
        let about_object = self.available || !self.status.is_empty();
        if !about_object && self.register.is_empty() && self.fault().is_none() {
            let effects = "available, status, register, away, conflicts or expire";
            return Err(format!("the rule does nothing; say one of {effects}"));
        }
        if about_object && self.when.is_none() {
            return Err("`available` and `status` are about an object; say which in `when`".to_owned());
        }
        if self.conflicts.is_some_and(|conflicts| conflicts.every < 2) {
            return Err("`conflicts.every` is at least 2, or nothing could ever be written".to_owned());
        }
        match self.register.iter().position(|object| object.gvk().is_none() || object.name().is_empty()) {
            Some(index) => Err(format!("register[{index}] lacks apiVersion, kind or metadata.name")),
            None => Ok(()),
        }
    }
}

impl Trigger {
    /// Whether the object is one of these, and as it must be.
    pub fn matches(&self, object: &Object) -> bool {
        self.is_about(object)
            && match self.state {
                TriggerState::Exists => true,
                TriggerState::Available => holds(object, "Available"),
                TriggerState::Ready => holds(object, "Ready"),
            }
    }

    /// Whether the object is one of these, however it is. Every version of a kind shows the same object.
    pub fn is_about(&self, object: &Object) -> bool {
        let kind = GroupVersionKind::from_api_version(&self.api_version, &self.kind);
        kind.is_some_and(|kind| object.gvk().is_some_and(|own| own.group_kind() == kind.group_kind()))
            && self.name.as_ref().is_none_or(|name| name == object.name())
            && self.namespace.as_deref().is_none_or(|namespace| object.namespace() == Some(namespace))
    }
}

/// The objects, however they are.
impl fmt::Display for Trigger {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        write!(f, "{} {}", self.api_version, self.kind)?;
        if let Some(name) = &self.name {
            write!(f, " {name}")?;
        }
        self.namespace.as_ref().map_or(Ok(()), |namespace| write!(f, " in namespace {namespace}"))
    }
}

/// Whether a condition is True, and about the object as it is now where it says what it is about.
fn holds(object: &Object, kind: &str) -> bool {
    let observed = object.at(&["status", "observedGeneration"]).and_then(Value::as_i64);
    let conditions = object.at(&["status", "conditions"]).and_then(Value::as_array).map(Vec::as_slice).unwrap_or_default();
    observed.is_none_or(|observed| observed >= object.generation())
        && conditions.iter().any(|condition| condition["type"] == kind && condition["status"] == "True")
}

impl fmt::Display for KindRef {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        write!(f, "{} {}", self.api_version, self.kind)
    }
}

fn error(message: String) -> ScenarioError {
    ScenarioError(message)
}

fn options() -> serde_saphyr::Options {
    serde_saphyr::options! {
        with_snippet: false,
        budget: serde_saphyr::budget! {
            max_documents: 1,
            max_nodes: 250_000,
            max_events: 1_000_000,
            max_depth: MAX_DEPTH,
            flow_nesting_limit: MAX_DEPTH,
            max_aliases: 1000,
        },
    }
}

/// Runs the recursive reader where [`MAX_DEPTH`] levels fit, whatever is left of the caller's stack.
fn on_own_stack<T: Send>(work: impl FnOnce() -> Result<T, ScenarioError> + Send) -> Result<T, ScenarioError> {
    const STACK: usize = 16 << 20;
    std::thread::scope(|scope| {
        let thread = std::thread::Builder::new().name("scenario".to_owned()).stack_size(STACK).spawn_scoped(scope, work);
        match thread.map(std::thread::ScopedJoinHandle::join) {
            Ok(Ok(answer)) => answer,
            Ok(Err(panic)) => std::panic::resume_unwind(panic),
            Err(cause) => Err(error(format!("starting the reader: {cause}"))),
        }
    })
}

fn duration<'de, D: Deserializer<'de>>(deserializer: D) -> Result<Duration, D::Error> {
    let text = String::deserialize(deserializer)?;
    let parsed = text.parse::<SignedDuration>().ok().and_then(|span| Duration::try_from(span).ok());
    let time = parsed.ok_or_else(|| D::Error::custom(format!("`{text}` is no time such as 2s or 500ms")))?;
    if time > MAX_TIME {
        return Err(D::Error::custom(format!("`{text}` is longer than 24h")));
    }
    Ok(time)
}

fn some_duration<'de, D: Deserializer<'de>>(deserializer: D) -> Result<Option<Duration>, D::Error> {
    duration(deserializer).map(Some)
}

#[cfg(test)]
mod tests;
