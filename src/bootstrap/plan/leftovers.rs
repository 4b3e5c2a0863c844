//! Definitions of an earlier release that the new one does not have: they go once the new set is complete and nothing of their kind is left.

use plinth_api::{GroupVersionKind, ObjectKey, rgd};
use plinth_engine::{naming, ports::Reader};
use plinth_run::{Action, Change, Stage, StageId, Subject, plan::Writer};

use crate::{
    error::Error,
    removal::{self, Found},
    wanted::Wanted,
};

/// A definition that the platform has no more use for.
#[derive(Clone, Debug, PartialEq)]
pub struct Leftover {
    /// The definition.
    pub key: ObjectKey,
    /// The kind that it defines, where it can be read.
    pub kind: Option<GroupVersionKind>,
    /// `metadata.uid`: another one of the same name is not meant.
    pub uid: Option<String>,
}

/// The platform's definitions that are there and not wanted; those that make use of others come first.
pub(crate) async fn look(wanted: &[Wanted], platform: &str, reader: &dyn Reader) -> Result<Vec<Leftover>, Error> {
    let gvk = GroupVersionKind::new(rgd::KRO_GROUP, rgd::VERSION, rgd::KIND);
    let found = removal::list(reader, &gvk, &naming::platform_selector(platform)).await?;
    let is_left = |found: &Found| !found.object.is_terminating() && !wanted.iter().any(|wanted| wanted.key == found.key);
    let left = removal::users_first(found.into_iter().filter(is_left).collect());
    let leftover = |found: Found| Leftover {
        kind: removal::defined(&found.object),
        uid: found.object.uid().map(str::to_owned),
        key: found.key,
    };
    Ok(left.into_iter().map(leftover).collect())
}

/// Adds them as a last stage, where there are any.
pub(super) fn add(leftovers: &[Leftover], stages: &mut Vec<Stage>) {
    if leftovers.is_empty() {
        return;
    }
    let id = StageId(stages.last().map_or(1, |last| last.id.0 + 1));
    let changes = leftovers.iter().map(deletion).collect();
    let until = "everything else is ready, and none of their kinds is left".to_owned();
    stages.push(Stage { id, title: "definitions of the release before".to_owned(), changes, until });
}

fn deletion(leftover: &Leftover) -> Change {
    Change {
        subject: Subject::root(leftover.key.clone()),
        action: Action::Delete,
        by: Writer::Run,
        digest: String::new(),
        resource_version: None,
        fields: Vec::new(),
        note: Some("the release does not have it any more".to_owned()),
    }
}
