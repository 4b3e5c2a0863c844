//! What will be done, in which order, and what has to wait. Holds no object bodies.

use std::fmt;

use plinth_api::{GroupVersionKind, lock::LockedRef, rbac::Rights};
use serde::{Deserialize, Serialize};

use crate::subject::{ClusterIdentity, StageId, Subject};

/// A plan document (`plinth.dev/v1alpha1`, kind `Plan`).
#[derive(Clone, Debug, Default, PartialEq, Serialize, Deserialize)]
#[serde(rename_all = "camelCase")]
pub struct Plan {
    /// `plinth.dev/v1alpha1`.
    pub api_version: String,
    /// `Plan`.
    pub kind: String,
    /// Name of the platform.
    pub platform: String,
    /// The SOURCE, without credentials.
    pub source: String,
    /// The distribution.
    pub distribution: LockedRef,
    /// The cluster that it was made for; another one is refused.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub cluster: Option<ClusterIdentity>,
    /// Digest over lock, values and settings: a plan is stale when it differs.
    pub inputs: String,
    /// In order.
    pub stages: Vec<Stage>,
    /// What waits for kinds that are not served yet.
    #[serde(default, skip_serializing_if = "Vec::is_empty")]
    pub deferred: Vec<Deferred>,
    /// Checks that were switched off, for people.
    #[serde(default, skip_serializing_if = "Vec::is_empty")]
    pub unverified: Vec<String>,
    /// What the loop may do where it runs in the cluster.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub rights: Option<Rights>,
}

/// Changes that do not depend on each other, and what ends the stage.
#[derive(Clone, Debug, PartialEq, Serialize, Deserialize)]
#[serde(rename_all = "camelCase")]
pub struct Stage {
    /// Position, from 1.
    pub id: StageId,
    /// What it is about, a few words.
    pub title: String,
    /// The changes.
    pub changes: Vec<Change>,
    /// What the stage waits for before the next begins, a sentence.
    pub until: String,
}

/// One object and what happens to it.
#[derive(Clone, Debug, PartialEq, Serialize, Deserialize)]
#[serde(rename_all = "camelCase")]
pub struct Change {
    /// The object.
    pub subject: Subject,
    /// What happens.
    pub action: Action,
    /// Who writes it: the run itself, or the loop once the instance asks for it.
    pub by: Writer,
    /// Digest of what is applied; empty where it is not known before the run.
    #[serde(default, skip_serializing_if = "String::is_empty")]
    pub digest: String,
    /// `metadata.resourceVersion` that was compared with.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub resource_version: Option<String>,
    /// What differs, as field paths without values.
    #[serde(default, skip_serializing_if = "Vec::is_empty")]
    pub fields: Vec<String>,
    /// Anything else that a reviewer should know.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub note: Option<String>,
}

/// Who writes an object.
#[derive(Clone, Copy, Debug, PartialEq, Eq, PartialOrd, Ord, Serialize, Deserialize)]
#[serde(rename_all = "lowercase")]
pub enum Writer {
    /// `up` itself.
    Run,
    /// The loop, from a graph.
    Loop,
}

/// What happens to an object (flux's words, and `Defer`).
#[derive(Clone, Copy, Debug, PartialEq, Eq, PartialOrd, Ord, Hash, Serialize, Deserialize)]
#[serde(rename_all = "lowercase")]
pub enum Action {
    /// It does not exist and will.
    Create,
    /// It exists and changes.
    Configure,
    /// It exists as it is wanted.
    Unchanged,
    /// It is left alone.
    Skip,
    /// It goes.
    Delete,
    /// Its kind is not served yet.
    Defer,
}

impl Action {
    /// The word for a plan: what will happen.
    pub fn verb(self) -> &'static str {
        match self {
            Self::Create => "create",
            Self::Configure => "configure",
            Self::Unchanged => "unchanged",
            Self::Skip => "skip",
            Self::Delete => "delete",
            Self::Defer => "defer",
        }
    }

    /// The word for an event: what happened.
    pub fn done(self) -> &'static str {
        match self {
            Self::Create => "created",
            Self::Configure => "configured",
            Self::Unchanged => "unchanged",
            Self::Skip => "skipped",
            Self::Delete => "deleted",
            Self::Defer => "deferred",
        }
    }

    /// Whether the cluster is written to.
    pub fn is_write(self) -> bool {
        matches!(self, Self::Create | Self::Configure | Self::Delete)
    }
}

impl fmt::Display for Action {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.write_str(self.verb())
    }
}

/// Something that waits for kinds.
#[derive(Clone, Debug, PartialEq, Serialize, Deserialize)]
#[serde(rename_all = "camelCase")]
pub struct Deferred {
    /// The RGD whose node waits.
    pub subject: Subject,
    /// The node.
    pub node: String,
    /// The kinds it waits for.
    pub missing: Vec<GroupVersionKind>,
    /// Who probably brings them, a few words.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub expected_from: Option<String>,
}

impl Deferred {
    /// What it waits for and who brings that, in words. A person decides by them whether waiting has an end.
    pub fn told(&self) -> String {
        let kinds: Vec<String> = self.missing.iter().map(ToString::to_string).collect();
        // A CRD's group has a dot (Kubernetes: names of API groups); those without are the server's own.
        let own = self.missing.iter().find(|gvk| !gvk.group.contains('.'));
        let source = match (own, &self.expected_from) {
            (Some(gvk), _) => {
                format!("the server has no such kind in its own group, and no CRD can bring {}: is it misspelled?", gvk.kind)
            }
            (None, Some(from)) => format!("expected from {from}"),
            (None, None) => "nothing in this plan brings it, so somebody else has to".to_owned(),
        };
        format!("waits for {}; {source}", kinds.join(", "))
    }
}

impl Plan {
    /// Every change, in order.
    pub fn changes(&self) -> impl Iterator<Item = &Change> {
        self.stages.iter().flat_map(|stage| &stage.changes)
    }

    /// How many changes have this action.
    pub fn count(&self, action: Action) -> usize {
        self.changes().filter(|change| change.action == action).count()
    }

    /// Whether it deletes what belongs to nothing else: whoever agrees to that types the platform's name, which nobody does by habit.
    pub fn takes_away(&self) -> bool {
        self.changes().any(|change| change.action == Action::Delete && change.subject.parent.is_none())
    }

    /// Whether carrying it out would write, now or later: what `--detailed-exitcode` asks.
    pub fn has_changes(&self) -> bool {
        self.changes().any(|change| change.action.is_write() || change.action == Action::Defer)
    }

    /// The stage that holds an object.
    pub fn stage_of(&self, key: &plinth_api::ObjectKey) -> Option<StageId> {
        self.stages.iter().find(|stage| stage.changes.iter().any(|change| change.subject.key == *key)).map(|stage| stage.id)
    }
}

#[cfg(test)]
mod tests {
    use plinth_api::{ClusterKey, ObjectKey};

    use super::*;

    #[test]
    fn what_is_deferred_says_whether_waiting_has_an_end() {
        let told = |group: &str, from: Option<&str>| {
            let gvk = GroupVersionKind::new("kro.run", "v1alpha1", "ResourceGraphDefinition");
            let key = ObjectKey { cluster: ClusterKey::host(), gvk, namespace: None, name: "r".into() };
            let missing = vec![GroupVersionKind::new(group, "v1", "Late")];
            Deferred { subject: Subject::root(key), node: "n".into(), missing, expected_from: from.map(str::to_owned) }.told()
        };
        let words = "waits for Late.late.example/v1; ";
        assert_eq!(told("late.example", Some("Deployment.apps/n/d")), format!("{words}expected from Deployment.apps/n/d"));
        assert_eq!(told("late.example", None), format!("{words}nothing in this plan brings it, so somebody else has to"));
        assert!(told("apps", Some("Deployment.apps/n/d")).ends_with("no CRD can bring Late: is it misspelled?"));
    }
}
