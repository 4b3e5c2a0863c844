//! Wire types that every room shares: keys, objects, conditions, and the documents that plinth reads and writes.
//!
//! This room never decides anything. It knows how a document looks, not what it means.

#![cfg_attr(test, allow(clippy::unwrap_used, reason = "tests may unwrap"))]

pub mod artifact;
pub mod bound;
pub mod condition;
pub mod crds;
pub mod delivery;
pub mod fields;
pub mod key;
pub mod lock;
pub mod login;
pub mod object;
pub mod permission;
pub mod platform;
pub mod rbac;
pub mod rgd;
pub mod scenario;

pub use condition::{Condition, ConditionStatus};
pub use key::{ClusterKey, GroupKind, GroupVersionKind, ObjectKey};
pub use object::Object;
pub use permission::Permission;
pub use scenario::Scenario;
