//! What a `coordination.k8s.io/v1` Lease says.

use std::time::Duration;

use jiff::Timestamp;
use plinth_api::{Object, ObjectKey};
use serde_json::{Map, Value, json};

use super::Holder;

/// `spec` of a Lease.
#[derive(Clone, Debug, Default, PartialEq, Eq)]
pub struct LeaseRecord {
    /// Who holds it, empty where nobody does.
    pub holder: String,
    /// How long it counts after `renewed`.
    pub duration: Duration,
    /// When the holder took it.
    pub acquired: Option<Timestamp>,
    /// When the holder last renewed it, by the holder's clock.
    pub renewed: Option<Timestamp>,
    /// How often it went from one holder to another.
    pub transitions: i64,
    /// Whether its holder gives it up where another one asks for it.
    pub yields: bool,
    /// Who asks for it, empty where nobody does.
    pub asked_by: String,
}

/// Annotation `"true"`: the holder gives the Lease up where it is asked to.
const YIELDS: &str = "plinth.dev/yields";
/// Annotation: who asks for the Lease.
const ASKED_BY: &str = "plinth.dev/asked-by";

impl LeaseRecord {
    /// Reads a Lease; absent fields are empty.
    pub fn read(object: &Object) -> Self {
        let field = |name: &str| object.at(&["spec", name]);
        let time = |name: &str| field(name).and_then(Value::as_str).and_then(|text| text.parse().ok());
        Self {
            holder: field("holderIdentity").and_then(Value::as_str).unwrap_or_default().to_owned(),
            duration: Duration::from_secs(field("leaseDurationSeconds").and_then(Value::as_u64).unwrap_or_default()),
            acquired: time("acquireTime"),
            renewed: time("renewTime"),
            transitions: field("leaseTransitions").and_then(Value::as_i64).unwrap_or_default(),
            yields: object.annotation(YIELDS) == Some("true"),
            asked_by: object.annotation(ASKED_BY).unwrap_or_default().to_owned(),
        }
    }

    /// Whether, by our clock, it was not renewed for its duration; a Lease without a time never was.
    pub(super) fn is_outdated(&self, now: Timestamp) -> bool {
        let age = self.renewed.map(|renewed| now.duration_since(renewed));
        age.is_none_or(|age| Duration::try_from(age).is_ok_and(|age| age > self.duration))
    }

    /// Ours, or still ours. Who asked for it still asks, unless it is the one that has it now.
    pub(super) fn taken_by(&self, holder: &Holder, duration: Duration, now: Timestamp) -> Self {
        let identity = holder.identity.as_str();
        let ours = self.holder == identity;
        Self {
            holder: identity.to_owned(),
            duration,
            acquired: if ours { self.acquired.or(Some(now)) } else { Some(now) },
            renewed: Some(now),
            transitions: self.transitions.saturating_add(i64::from(!ours && self.acquired.is_some())),
            yields: holder.yields,
            asked_by: if ours { self.asked_by.clone() } else { String::new() },
        }
    }

    /// Nobody's, so that it can be taken at once.
    pub(super) fn given_back(&self, now: Timestamp) -> Self {
        Self { holder: String::new(), duration: Duration::from_secs(1), renewed: Some(now), ..self.clone() }
    }

    /// As an object: `old` with another spec, so that labels, and the resourceVersion that guards the write, stay.
    pub(super) fn object(&self, key: &ObjectKey, old: Option<Object>) -> Object {
        let mut object = old.unwrap_or_else(|| bare(key));
        let mut spec = Map::new();
        spec.insert("holderIdentity".to_owned(), json!(self.holder));
        spec.insert("leaseDurationSeconds".to_owned(), json!(self.duration.as_secs().max(1)));
        spec.insert("leaseTransitions".to_owned(), json!(self.transitions));
        spec.extend(self.acquired.map(|at| ("acquireTime".to_owned(), micro_time(at))));
        spec.extend(self.renewed.map(|at| ("renewTime".to_owned(), micro_time(at))));
        object.0.insert("spec".to_owned(), Value::Object(spec));
        let annotations = object.metadata_mut().entry("annotations").or_insert_with(|| json!({}));
        if let Some(annotations) = annotations.as_object_mut() {
            let yields = if self.yields { "true" } else { "" };
            for (name, value) in [(YIELDS, yields), (ASKED_BY, &self.asked_by)] {
                match value {
                    "" => drop(annotations.remove(name)),
                    value => drop(annotations.insert(name.to_owned(), json!(value))),
                }
            }
        }
        object
    }
}

fn bare(key: &ObjectKey) -> Object {
    let value = json!({
        "apiVersion": key.gvk.api_version(),
        "kind": key.gvk.kind,
        "metadata": {"name": key.name, "namespace": key.namespace},
    });
    Object::from_value(value).expect("the literal is an object")
}

/// `metav1.MicroTime`: exactly six digits of a second.
fn micro_time(at: Timestamp) -> Value {
    Value::String(format!("{at:.6}"))
}
