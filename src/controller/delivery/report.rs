//! The status that every delivery kind has: conditions, `observedGeneration`, `effectiveOCMConfig`. Pure.
//!
//! | end of a pass | Ready | Reconciling | Stalled |
//! | --- | --- | --- | --- |
//! | done | True `Succeeded` | – | – |
//! | to be tried again, or waiting for somebody | False, a reason | True `ProgressingWithRetry` | – |
//! | wrong until the object changes | False, a reason | – | True, the reason |

use jiff::Timestamp;
use plinth_api::Object;
use serde_json::{Map, Value};

use crate::conditions::{self, Before, Said};

/// Reasons of a condition that is not True, in the OCM controllers' words (ocm.md section 16).
#[derive(Clone, Copy, Debug, PartialEq, Eq, PartialOrd, Ord)]
pub enum Reason {
    /// Configuration (a Secret or ConfigMap) cannot be read.
    GetConfigurationFailed,
    /// No version fits, or a downgrade is not allowed.
    CheckVersionFailed,
    /// Something that this object builds on is not there or not Ready.
    ResourceIsNotAvailable,
    /// The repository cannot be opened.
    GetRepositoryFailed,
    /// The component version cannot be read.
    GetComponentVersionFailed,
    /// The resource cannot be found or read.
    GetOcmResourceFailed,
    /// What was read is not what it should be.
    MarshalFailed,
    /// Objects cannot be applied.
    ApplyFailed,
    /// A reference of the component cannot be followed.
    GetReferenceFailed,
    /// The Resource object cannot be found.
    GetResourceFailed,
    /// An additional status field cannot be computed.
    StatusSetFailed,
    /// Something still depends on this object, or objects cannot be removed.
    DeletionFailed,
    /// The image is not where a node could pull it from, or objects wait for their kinds.
    ResourceNotSynced,
}

impl Reason {
    /// The word in the condition.
    pub fn as_str(self) -> &'static str {
        match self {
            Self::GetConfigurationFailed => "GetConfigurationFailed",
            Self::CheckVersionFailed => "CheckVersionFailed",
            Self::ResourceIsNotAvailable => "ResourceIsNotAvailable",
            Self::GetRepositoryFailed => "GetRepositoryFailed",
            Self::GetComponentVersionFailed => "GetComponentVersionFailed",
            Self::GetOcmResourceFailed => "GetOCMResourceFailed",
            Self::MarshalFailed => "MarshalFailed",
            Self::ApplyFailed => "ApplyFailed",
            Self::GetReferenceFailed => "GetReferenceFailed",
            Self::GetResourceFailed => "GetResourceFailed",
            Self::StatusSetFailed => "StatusSetFailed",
            Self::DeletionFailed => "DeletionFailed",
            Self::ResourceNotSynced => "ResourceNotSynced",
        }
    }
}

/// How a pass that did not succeed ended.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Failed {
    /// Why, in a word.
    pub reason: Reason,
    /// Why, in a sentence.
    pub message: String,
    /// What helps.
    pub cure: Cure,
}

/// What helps against a failure.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Cure {
    /// Trying again after a while.
    Time,
    /// A change of another object, which is watched.
    Event,
    /// An edit of the object itself.
    Edit,
}

impl Failed {
    /// Trying again may help.
    pub fn retry(reason: Reason, message: impl Into<String>) -> Self {
        Self { reason, message: message.into(), cure: Cure::Time }
    }

    /// Somebody else has to do something first.
    pub fn wait(reason: Reason, message: impl Into<String>) -> Self {
        Self { reason, message: message.into(), cure: Cure::Event }
    }

    /// The object is wrong.
    pub fn wrong(reason: Reason, message: impl Into<String>) -> Self {
        Self { reason, message: message.into(), cure: Cure::Edit }
    }
}

/// How a pass ended: the message of Ready, or why not.
pub type End = Result<String, Failed>;

/// The status after a pass: `fields` are those of the kind, kept from before by the caller where a pass failed.
pub fn status(object: &Object, end: &End, config: &[Value], mut fields: Map<String, Value>, now: Timestamp) -> Value {
    let generation = object.generation();
    let before = Before::of(object);
    let said = match end {
        Ok(message) => vec![Said::yes("Ready", "Succeeded", message.clone())],
        Err(failed) => not_ready(failed),
    };
    let list: Vec<_> = said.iter().map(|said| before.stamp(said, generation, now)).collect();
    fields.insert("conditions".into(), conditions::to_value(&list));
    fields.insert("observedGeneration".into(), generation.into());
    fields.insert("effectiveOCMConfig".into(), Value::Array(config.to_vec()));
    Value::Object(fields)
}

fn not_ready(failed: &Failed) -> Vec<Said> {
    let reason = failed.reason.as_str();
    let ready = Said::no("Ready", reason, failed.message.clone());
    let more = match failed.cure {
        Cure::Edit => Said::yes("Stalled", reason, failed.message.clone()),
        Cure::Time | Cure::Event => Said::yes("Reconciling", "ProgressingWithRetry", failed.message.clone()),
    };
    vec![ready, more]
}

/// Fields of a status that a failed pass keeps: what was found last stays readable.
pub fn kept(object: &Object, names: &[&str]) -> Map<String, Value> {
    let status = object.status();
    names.iter().filter_map(|name| Some(((*name).to_owned(), status.get(*name)?.clone()))).collect()
}

/// Whether Ready is True and about the object as it is now.
pub fn is_ready(object: &Object) -> bool {
    let observed = object.status().get("observedGeneration").and_then(Value::as_i64);
    conditions::holds(object, "Ready") && observed.is_none_or(|observed| observed >= object.generation())
}

/// What Ready says, for whoever waits for the object.
pub fn why_not_ready(object: &Object) -> String {
    let message = conditions::find(object, "Ready").and_then(|ready| ready.get("message")?.as_str());
    message.filter(|message| !message.is_empty()).unwrap_or("no controller has looked at it yet").to_owned()
}

#[cfg(test)]
mod tests {
    use serde_json::json;

    use super::*;

    fn object(generation: i64, status: Value) -> Object {
        Object::from_value(json!({"metadata": {"name": "x", "generation": generation}, "status": status})).unwrap()
    }

    #[test]
    fn a_pass_says_one_of_three_things() {
        let now = Timestamp::UNIX_EPOCH;
        let cases = [
            (Ok("applied".to_owned()), vec![("Ready", "True", "Succeeded")]),
            (
                Err(Failed::retry(Reason::GetRepositoryFailed, "no route")),
                vec![("Ready", "False", "GetRepositoryFailed"), ("Reconciling", "True", "ProgressingWithRetry")],
            ),
            (
                Err(Failed::wrong(Reason::GetOcmResourceFailed, "no such resource")),
                vec![("Ready", "False", "GetOCMResourceFailed"), ("Stalled", "True", "GetOCMResourceFailed")],
            ),
        ];
        for (end, expected) in cases {
            let status = status(&object(4, Value::Null), &end, &[], Map::new(), now);
            let found: Vec<_> = status["conditions"].as_array().unwrap().iter().collect();
            let found: Vec<_> = found
                .iter()
                .map(|c| (c["type"].as_str().unwrap(), c["status"].as_str().unwrap(), c["reason"].as_str().unwrap()))
                .collect();
            assert_eq!(found, expected);
            assert_eq!(status["observedGeneration"], 4);
            // Contracts 16: always written, so that an expression over it never misses the field.
            assert_eq!(status["effectiveOCMConfig"], json!([]));
        }
    }

    #[test]
    fn ready_counts_for_the_generation_it_is_about() {
        let ready = json!([{"type": "Ready", "status": "True", "reason": "Succeeded", "message": ""}]);
        assert!(is_ready(&object(2, json!({"observedGeneration": 2, "conditions": ready}))));
        assert!(!is_ready(&object(3, json!({"observedGeneration": 2, "conditions": ready}))));
        assert!(!is_ready(&object(3, json!({}))));
    }
}
