//! The status that every delivery kind has: conditions, `observedGeneration`, `effectiveOCMConfig`. Pure.
//!
//! | end of a pass | Ready | Reconciling | Stalled |
//! | --- | --- | --- | --- |
//! | done | True `Succeeded` | – | – |
//! | to be tried again, or waiting for somebody | False, a reason | True `ProgressingWithRetry` | – |
//! | the controller lacks rights, beside that | | | | `PermissionMissing` True
//! | wrong until the object changes | False, a reason | – | True, the reason |

use std::collections::BTreeSet;

use jiff::Timestamp;
use plinth_api::{Object, Permission, permission};
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
    /// A component version is not what it was when its Component looked at it.
    ComponentDriftResolutionInProgress,
    /// A component version that a Discovery leads to cannot be read.
    ResolutionFailed,
    /// A selector of a Discovery cannot be evaluated.
    SelectorFailed,
    /// An expression of a Discovery cannot be evaluated.
    ExtractFailed,
    /// What a Discovery found does not fit into an object.
    PayloadTooLarge,
    /// Several resources of a channel would be one Artifact.
    NameCollision,
    /// The controller may not do what is asked for.
    PermissionMissing,
    /// A Platform that this controller does not keep.
    NotKept,
    /// Values that the distribution does not have, or not so.
    ValuesInvalid,
    /// A release that cannot be brought up here.
    PlanRefused,
    /// A move to another release that waits for a component, or stopped at one.
    NotMoved,
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
            Self::ComponentDriftResolutionInProgress => "ComponentDriftResolutionInProgress",
            Self::ResolutionFailed => "ResolutionFailed",
            Self::SelectorFailed => "SelectorFailed",
            Self::ExtractFailed => "ExtractFailed",
            Self::PayloadTooLarge => "PayloadTooLarge",
            Self::NameCollision => "NameCollision",
            Self::PermissionMissing => permission::MISSING,
            Self::NotKept => "NotKept",
            Self::ValuesInvalid => "ValuesInvalid",
            Self::PlanRefused => "PlanRefused",
            Self::NotMoved => "NotMoved",
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
    /// Rights that the controller lacks.
    pub missing: BTreeSet<Permission>,
}

/// What helps against a failure.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Cure {
    /// Trying again after a while.
    Time,
    /// An answer of the registry, which is away: what was found last is still what is in use.
    Away,
    /// A change of another object, which is watched.
    Event,
    /// A change outside the cluster, such as other credentials, a repaired archive or another version: looked for at each interval.
    Repair,
    /// An edit of the object itself.
    Edit,
}

impl Failed {
    fn new(reason: Reason, message: impl Into<String>, cure: Cure) -> Self {
        Self { reason, message: message.into(), cure, missing: BTreeSet::new() }
    }

    /// Somebody has to grant these rights.
    pub fn unpermitted(missing: BTreeSet<Permission>) -> Self {
        let message = permission::message(&missing);
        Self { missing, ..Self::new(Reason::PermissionMissing, message, Cure::Time) }
    }

    /// Trying again may help.
    pub fn retry(reason: Reason, message: impl Into<String>) -> Self {
        Self::new(reason, message, Cure::Time)
    }

    /// The registry cannot be reached.
    pub fn away(reason: Reason, message: impl Into<String>) -> Self {
        Self::new(reason, message, Cure::Away)
    }

    /// Somebody else has to do something first.
    pub fn wait(reason: Reason, message: impl Into<String>) -> Self {
        Self::new(reason, message, Cure::Event)
    }

    /// What the object leads to is wrong, and somebody has to repair it there.
    pub fn repair(reason: Reason, message: impl Into<String>) -> Self {
        Self::new(reason, message, Cure::Repair)
    }

    /// The object is wrong.
    pub fn wrong(reason: Reason, message: impl Into<String>) -> Self {
        Self::new(reason, message, Cure::Edit)
    }
}

/// How a pass ended: the message of Ready, or why not.
pub type End = Result<String, Failed>;

/// Reason of Ready after a pass that succeeded.
pub const SUCCEEDED: &str = "Succeeded";

/// Longest message that an API server takes.
const LONGEST: usize = 32_768;

/// What there is to say of an object beside the end of the pass.
#[derive(Clone, Debug, Default)]
pub struct Facts {
    /// `status.effectiveOCMConfig`.
    pub config: Vec<Value>,
    /// The fields of its kind, kept from before by the caller where a pass failed.
    pub fields: Map<String, Value>,
}

/// The status after a pass; `reason` is that of Ready where it succeeded.
pub fn status(object: &Object, end: &End, reason: &'static str, facts: Facts, now: Timestamp) -> Value {
    let Facts { config, mut fields } = facts;
    let generation = object.generation();
    let before = Before::of(object);
    let said = match end {
        Ok(message) => vec![Said::yes("Ready", reason, shortened(message))],
        Err(failed) => not_ready(failed),
    };
    let list: Vec<_> = said.iter().map(|said| before.stamp(said, generation, now)).collect();
    fields.insert("conditions".into(), conditions::to_value(&list));
    fields.insert("observedGeneration".into(), generation.into());
    fields.insert("effectiveOCMConfig".into(), Value::Array(config));
    Value::Object(fields)
}

fn not_ready(failed: &Failed) -> Vec<Said> {
    let reason = failed.reason.as_str();
    let message = shortened(&failed.message);
    let more = match failed.cure {
        Cure::Edit => Said::yes("Stalled", reason, message.clone()),
        Cure::Time | Cure::Away | Cure::Event | Cure::Repair => Said::yes("Reconciling", "ProgressingWithRetry", message.clone()),
    };
    let lacks = || Said::yes(permission::MISSING, "Forbidden", shortened(&permission::message(&failed.missing)));
    let lacks = (!failed.missing.is_empty()).then(lacks);
    [Said::no("Ready", reason, message), more].into_iter().chain(lacks).collect()
}

/// A Deployer may have thousands of things to say.
fn shortened(message: &str) -> String {
    if message.len() <= LONGEST {
        return message.to_owned();
    }
    let end = (0..LONGEST - 8).rev().find(|at| message.is_char_boundary(*at)).unwrap_or_default();
    format!("{} …", &message[..end])
}

/// Before what a registry that is away said, in the message of Ready.
const SINCE: &str = "; not looked at since: ";

/// The message of an object that is Ready still, although its registry is away: nothing that is in use became wrong by that, and a cluster
/// has to keep itself without the outside world.
pub fn still_good(object: &Object, end: &End) -> Option<String> {
    let Err(Failed { cure: Cure::Away, message, .. }) = end else { return None };
    let ready = conditions::find(object, "Ready").filter(|_| is_ready(object))?;
    let before = ready.get("message").and_then(Value::as_str).unwrap_or_default();
    let before = before.split(SINCE).next().unwrap_or_default();
    Some(format!("{before}{SINCE}{message}"))
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
            let status = status(&object(4, Value::Null), &end, SUCCEEDED, Facts::default(), now);
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
    fn a_message_fits_into_a_condition() {
        let end = Err(Failed::retry(Reason::ApplyFailed, "ä".repeat(20_000)));
        let status = status(&object(1, Value::Null), &end, SUCCEEDED, Facts::default(), Timestamp::UNIX_EPOCH);
        let message = status["conditions"][0]["message"].as_str().unwrap();
        assert!(message.len() <= 32_768 && message.ends_with(" …"), "{}", message.len());
    }

    #[test]
    fn what_is_in_use_stays_ready_while_the_registry_is_away() {
        let ready = |message: &str| json!([{"type": "Ready", "status": "True", "reason": "Succeeded", "message": message}]);
        let away = Err(Failed::away(Reason::CheckVersionFailed, "no route"));
        let good = object(2, json!({"observedGeneration": 2, "conditions": ready("Applied version 1")}));
        let message = still_good(&good, &away).unwrap();
        assert_eq!(message, "Applied version 1; not looked at since: no route");
        let again = object(2, json!({"observedGeneration": 2, "conditions": ready(&message)}));
        assert_eq!(still_good(&again, &away), Some(message), "said once");
        let edited = object(3, json!({"observedGeneration": 2, "conditions": ready("Applied version 1")}));
        assert_eq!(still_good(&edited, &away), None, "what is asked for now was never found");
        let gone = Err(Failed::retry(Reason::CheckVersionFailed, "no such version"));
        assert_eq!((still_good(&good, &gone), still_good(&good, &Ok(String::new()))), (None, None));
    }

    #[test]
    fn ready_counts_for_the_generation_it_is_about() {
        let ready = json!([{"type": "Ready", "status": "True", "reason": "Succeeded", "message": ""}]);
        assert!(is_ready(&object(2, json!({"observedGeneration": 2, "conditions": ready}))));
        assert!(!is_ready(&object(3, json!({"observedGeneration": 2, "conditions": ready}))));
        assert!(!is_ready(&object(3, json!({}))));
    }
}
