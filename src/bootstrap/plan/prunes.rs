//! What the loop will delete: members of an instance's ApplySet that its graph does not make any more.

use std::collections::{BTreeMap, BTreeSet};

use plinth_api::{ClusterKey, GroupKind, GroupVersionKind, Object, ObjectKey};
use plinth_engine::{
    graph::Graph,
    instance,
    naming::{applyset_id, keys},
    ports::{Query, ReadError},
};
use plinth_run::{Action, Change, Stage, StageId, Subject, plan::Writer};

use super::{Draft, compile::Built, expand::Place, live};
use crate::{error::Error, ports::Ports};

/// Adds the deletions as a last stage, where there are any.
pub(super) async fn add(draft: &Draft, stages: &mut Vec<Stage>, ports: &Ports) -> Result<(), Error> {
    let changes = look(draft, ports).await?;
    if !changes.is_empty() {
        let id = StageId(stages.last().map_or(1, |last| last.id.0 + 1));
        let (title, until) = ("no longer made".to_owned(), "they are gone".to_owned());
        stages.push(Stage { id, title, changes, until });
    }
    Ok(())
}

/// Looks through the ApplySets of all instances that are there and stay, by the kinds that each one recorded.
async fn look(draft: &Draft, ports: &Ports) -> Result<Vec<Change>, Error> {
    let graphs: BTreeMap<&GroupVersionKind, &Built> = draft.built.iter().map(|b| (&b.graph.instance.gvk, b)).collect();
    let root = draft.wanted.last().map(|wanted| &wanted.key);
    let below = draft.places.iter().filter(|place| place.is_named()).map(|place| &place.subject.key);
    let mut changes = Vec::new();
    for key in root.into_iter().chain(below) {
        let Some(built) = graphs.get(&key.gvk) else { continue };
        let Some(live) = live::read(ports.reader.as_ref(), key).await?.filter(|live| !live.is_terminating()) else { continue };
        let own: Vec<&Place> = draft.places.iter().filter(|place| place.subject.parent.as_ref() == Some(key)).collect();
        for (member, object) in members(key, &live, &built.graph, ports).await? {
            if is_pruned(&member, &object, &own) {
                changes.push(deletion(key, member, &object));
            }
        }
    }
    Ok(changes)
}

/// Objects that were applied for an instance.
async fn members(key: &ObjectKey, live: &Object, graph: &Graph, ports: &Ports) -> Result<Vec<(ObjectKey, Object)>, Error> {
    let namespace = key.namespace.as_deref().unwrap_or_default();
    let selector = format!("{}={}", keys::APPLYSET_PART_OF, applyset_id(&key.name, namespace, &key.gvk.kind, &key.gvk.group));
    let mut found = Vec::new();
    for gvk in served(&instance::member_kinds(live), graph, ports).await? {
        let query = Query { cluster: ClusterKey::host(), gvk, namespace: None, selector: selector.clone() };
        let listed = match ports.reader.list(&query).await {
            Ok(listed) => listed,
            // What cannot be seen is not deleted either.
            Err(ReadError::NotServed(_) | ReadError::Forbidden { .. }) => continue,
            Err(error) => return Err(error.into()),
        };
        let applied = listed.into_iter().filter(|object| instance::is_applied(object) && !object.is_terminating());
        found.extend(applied.filter_map(|object| Some((object.key(&query.cluster)?, object))));
    }
    Ok(found)
}

/// The kinds in a version each: the graph's, else one that the cluster serves.
async fn served(kinds: &BTreeSet<GroupKind>, graph: &Graph, ports: &Ports) -> Result<Vec<GroupVersionKind>, Error> {
    let mut known: BTreeMap<GroupKind, GroupVersionKind> =
        graph.nodes.iter().map(|node| (node.gvk.group_kind(), node.gvk.clone())).collect();
    if kinds.iter().any(|kind| !known.contains_key(kind)) {
        for listable in ports.schemas.listable().await? {
            known.entry(listable.gvk.group_kind()).or_insert(listable.gvk);
        }
    }
    Ok(kinds.iter().filter_map(|kind| known.get(kind).cloned()).collect())
}

/// Whether none of the instance's objects is, or may come to be, this member.
fn is_pruned(member: &ObjectKey, object: &Object, own: &[&Place]) -> bool {
    let is_same = |place: &&&Place| {
        let key = &place.subject.key;
        key.gvk.group_kind() == member.gvk.group_kind()
            && key.name == member.name
            && (key.namespace.is_none() || key.namespace == member.namespace)
    };
    let is_open = |place: &&&Place| !place.is_named() && place.subject.node.as_deref() == object.label(keys::NODE_ID);
    !own.iter().any(|place| is_same(&place) || is_open(&place))
}

fn deletion(parent: &ObjectKey, member: ObjectKey, object: &Object) -> Change {
    let node = object.label(keys::NODE_ID).unwrap_or_default();
    Change {
        subject: Subject::child(member, node, parent.clone()),
        action: Action::Delete,
        by: Writer::Loop,
        digest: String::new(),
        resource_version: object.resource_version().map(str::to_owned),
        fields: Vec::new(),
        note: Some("its definition does not make it any more".to_owned()),
    }
}
