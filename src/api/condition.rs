//! Conditions as Kubernetes writes them (`metav1.Condition`).

use jiff::Timestamp;
use serde::{Deserialize, Serialize};

/// What a condition says.
#[derive(Clone, Copy, Debug, PartialEq, Eq, PartialOrd, Ord, Hash, Serialize, Deserialize)]
pub enum ConditionStatus {
    /// It holds.
    True,
    /// It does not hold.
    False,
    /// It is not known.
    Unknown,
}

/// One condition of an object.
#[derive(Clone, Debug, PartialEq, Serialize, Deserialize)]
#[serde(rename_all = "camelCase")]
pub struct Condition {
    /// Type in UpperCamelCase, unique in its list.
    #[serde(rename = "type")]
    pub kind: String,
    /// True, False or Unknown.
    pub status: ConditionStatus,
    /// One word in UpperCamelCase for machines.
    #[serde(default)]
    pub reason: String,
    /// A sentence for people.
    #[serde(default)]
    pub message: String,
    /// When `status` last changed, to the second.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub last_transition_time: Option<Timestamp>,
    /// `metadata.generation` that the condition was judged on.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub observed_generation: Option<i64>,
}
