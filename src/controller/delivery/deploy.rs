//! What a Deployer applies and takes away (ocm.md section 16). Pure.

use std::collections::{BTreeMap, BTreeSet};

use plinth_api::{ClusterKey, GroupKind, GroupVersionKind, Object, ObjectKey};
use plinth_engine::{
    naming::{applyset_id, keys},
    schema::{Lookup, SchemaSource},
};
use serde_json::{Value, json};

/// `app.kubernetes.io/managed-by` of deployed objects, the OCM controllers' own value.
pub const MANAGED_BY: &str = "deployer.delivery.ocm.software";
/// Field manager of deployed objects.
pub const MANAGER: &str = "plinth.dev/deployer";
/// Finalizer of a Deployer, the OCM controllers' own.
pub const FINALIZER: &str = "finalizers.ocm.software/deployer";

/// What one Deployer wants.
#[derive(Clone, Debug, Default, PartialEq)]
pub struct Wanted {
    /// Objects whose kinds are served, complete, in the order of the manifest.
    pub objects: Vec<(ObjectKey, Object)>,
    /// Kinds that are not served yet, with the objects that wait for them. Waiting is not failing.
    pub deferred: BTreeMap<GroupVersionKind, Vec<String>>,
}

/// Where deployed objects come from, for their annotations.
#[derive(Clone, Debug, Default, PartialEq)]
pub struct Origin {
    /// OCM component name.
    pub component: String,
    /// Its version.
    pub version: String,
    /// Name of the resource.
    pub resource: String,
    /// Digest of the resource's bytes, where it is known.
    pub digest: Option<String>,
}

/// The id of a Deployer's ApplySet.
pub fn set_id(deployer: &str) -> String {
    applyset_id(deployer, "", "Deployer", plinth_api::delivery::GROUP)
}

/// Completes the objects of a manifest: namespace, owner, labels, annotations.
pub fn wanted(
    deployer: &Object,
    manifest: Vec<Object>,
    origin: &Origin,
    schemas: &dyn SchemaSource,
    cluster: &ClusterKey,
) -> Wanted {
    let mut wanted = Wanted::default();
    for mut object in manifest {
        let Some(gvk) = object.gvk() else { continue };
        let Lookup::Served(kind) = schemas.kind(&gvk) else {
            wanted.deferred.entry(gvk).or_default().push(object.name().to_owned());
            continue;
        };
        place(&mut object, kind.namespaced);
        mark(&mut object, deployer, origin);
        if let Some(key) = object.key(cluster) {
            wanted.objects.push((key, object));
        }
    }
    wanted
}

/// Namespaced objects without a namespace go to `default`, others have none.
fn place(object: &mut Object, namespaced: bool) {
    let without = object.namespace().is_none();
    let metadata = object.metadata_mut();
    if !namespaced {
        metadata.remove("namespace");
    } else if without {
        metadata.insert("namespace".into(), "default".into());
    }
}

fn mark(object: &mut Object, deployer: &Object, origin: &Origin) {
    let labels = [
        (keys::MANAGED_BY, MANAGED_BY.to_owned()),
        ("app.kubernetes.io/instance", plinth_engine::naming::label_value(deployer.name())),
        (keys::APPLYSET_PART_OF, set_id(deployer.name())),
    ];
    let mut annotations = vec![
        ("component.delivery.ocm.software/name", origin.component.clone()),
        ("component.delivery.ocm.software/version", origin.version.clone()),
        ("identity.resource.delivery.ocm.software/name", origin.resource.clone()),
    ];
    annotations.extend(origin.digest.clone().map(|digest| ("digest.resource.delivery.ocm.software/value", digest)));
    let metadata = object.metadata_mut();
    insert(metadata.entry("labels").or_insert_with(|| json!({})), labels);
    insert(metadata.entry("annotations").or_insert_with(|| json!({})), annotations);
    metadata.insert("ownerReferences".into(), json!([owner(deployer)]));
}

fn insert<'a>(map: &mut Value, pairs: impl IntoIterator<Item = (&'a str, String)>) {
    if !map.is_object() {
        *map = json!({});
    }
    for (key, value) in pairs {
        map[key] = value.into();
    }
}

fn owner(deployer: &Object) -> Value {
    json!({
        "apiVersion": super::config::api_version(), "kind": "Deployer", "name": deployer.name(),
        "uid": deployer.uid().unwrap_or_default(), "controller": true, "blockOwnerDeletion": true,
    })
}

/// Label, annotations and finalizer of the Deployer itself, as the parent of the set: everything that may exist, written before
/// anything of it does, so that a later prune finds it.
///
/// # Panics
/// Never: the mapping is written here.
pub fn parent(deployer: &Object, groups: &BTreeSet<GroupKind>, namespaces: &BTreeSet<String>) -> Object {
    let list = |items: Vec<String>| items.join(",");
    let groups = list(groups.iter().map(ToString::to_string).collect());
    let namespaces = list(namespaces.iter().cloned().collect());
    Object::from_value(json!({
        "apiVersion": super::config::api_version(), "kind": "Deployer",
        "metadata": {
            "name": deployer.name(),
            "finalizers": [FINALIZER],
            "labels": {keys::APPLYSET_ID: set_id(deployer.name())},
            "annotations": {
                keys::APPLYSET_TOOLING: keys::APPLYSET_TOOLING_VALUE,
                keys::APPLYSET_GROUP_KINDS: groups,
                keys::APPLYSET_NAMESPACES: namespaces,
            },
        },
    }))
    .expect("a mapping was just written")
}

/// Whether the Deployer already carries what [`parent`] would write.
pub fn has_parent(deployer: &Object, parent: &Object) -> bool {
    let annotation = |key| deployer.annotation(key) == parent.annotation(key);
    deployer.finalizers().contains(&FINALIZER)
        && deployer.label(keys::APPLYSET_ID) == parent.label(keys::APPLYSET_ID)
        && annotation(keys::APPLYSET_GROUP_KINDS)
        && annotation(keys::APPLYSET_NAMESPACES)
}

/// Kinds that the set may have members of, as the Deployer remembers.
pub fn remembered_kinds(deployer: &Object) -> BTreeSet<GroupKind> {
    let text = deployer.annotation(keys::APPLYSET_GROUP_KINDS).unwrap_or_default();
    let read = |item: &str| {
        let (kind, group) = item.split_once('.').unwrap_or((item, ""));
        GroupKind { group: group.to_owned(), kind: kind.to_owned() }
    };
    text.split(',').map(str::trim).filter(|item| !item.is_empty()).map(read).collect()
}

/// Namespaces that the set may have members in, as the Deployer remembers.
pub fn remembered_namespaces(deployer: &Object) -> BTreeSet<String> {
    let text = deployer.annotation(keys::APPLYSET_NAMESPACES).unwrap_or_default();
    text.split(',').map(str::trim).filter(|item| !item.is_empty()).map(str::to_owned).collect()
}

/// Members that nobody wants any more, last applied first. Ask only after a complete pass.
pub fn orphans(
    deployer: &Object,
    members: &[Object],
    applied: &BTreeSet<String>,
    cluster: &ClusterKey,
) -> Vec<(ObjectKey, String)> {
    let id = set_id(deployer.name());
    let ours = members.iter().filter(|member| member.label(keys::APPLYSET_PART_OF) == Some(&id) && !member.is_terminating());
    let mut orphans: Vec<_> = ours
        .filter_map(|member| Some((member.key(cluster)?, member.uid()?.to_owned())))
        .filter(|(_, uid)| !applied.contains(uid))
        .collect();
    orphans.sort();
    orphans.reverse();
    orphans
}

/// `status.deployed`.
pub fn deployed(objects: &[Object]) -> Value {
    let entry = |object: &Object| {
        let mut entry = json!({
            "apiVersion": object.0.get("apiVersion").cloned().unwrap_or_default(),
            "kind": object.0.get("kind").cloned().unwrap_or_default(),
            "name": object.name(),
            "uid": object.uid().unwrap_or_default(),
        });
        if let Some(namespace) = object.namespace() {
            entry["namespace"] = namespace.into();
        }
        entry
    };
    objects.iter().map(entry).collect()
}

/// What a Deployer says while kinds are missing.
pub fn waits_for(deferred: &BTreeMap<GroupVersionKind, Vec<String>>) -> String {
    let kinds: Vec<String> = deferred.iter().map(|(gvk, names)| format!("{gvk} ({})", names.join(", "))).collect();
    format!("waits for kinds that are not served yet: {}", kinds.join("; "))
}

#[cfg(test)]
mod tests {
    use std::sync::Arc;

    use plinth_engine::schema::{KindInfo, Schema, SchemaMap};

    use super::*;

    fn object(value: Value) -> Object {
        Object::from_value(value).unwrap()
    }

    fn schemas() -> SchemaMap {
        let kind = |kind: &str, plural: &str, namespaced| KindInfo {
            gvk: GroupVersionKind::new("", "v1", kind),
            plural: plural.into(),
            namespaced,
            schema: Arc::new(Schema::of_type("object")),
        };
        [kind("ConfigMap", "configmaps", true), kind("Namespace", "namespaces", false)].into_iter().collect()
    }

    fn deployer() -> Object {
        object(json!({"apiVersion": "delivery.ocm.software/v1alpha1", "kind": "Deployer", "metadata": {"name": "d", "uid": "u"}}))
    }

    #[test]
    fn objects_are_placed_marked_and_deferred() {
        let manifest = vec![
            object(json!({"apiVersion": "v1", "kind": "ConfigMap", "metadata": {"name": "a", "labels": {"mine": "x"}}})),
            object(json!({"apiVersion": "v1", "kind": "Namespace", "metadata": {"name": "n", "namespace": "wrong"}})),
            object(json!({"apiVersion": "x.test/v1", "kind": "Thing", "metadata": {"name": "t"}})),
        ];
        let origin = Origin { component: "a.test/c".into(), version: "1".into(), resource: "rgd".into(), digest: None };
        let wanted = wanted(&deployer(), manifest, &origin, &schemas(), &ClusterKey::host());
        let keys: Vec<String> = wanted.objects.iter().map(|(key, _)| key.to_string()).collect();
        assert_eq!(keys, ["ConfigMap/default/a", "Namespace/n"]);
        let first = &wanted.objects[0].1;
        assert_eq!(first.label("mine"), Some("x"));
        assert_eq!(first.label(keys::APPLYSET_PART_OF), Some(set_id("d").as_str()));
        assert_eq!(first.annotation("component.delivery.ocm.software/name"), Some("a.test/c"));
        assert_eq!(first.at(&["metadata", "ownerReferences"]).unwrap()[0]["uid"], "u");
        assert_eq!(waits_for(&wanted.deferred), "waits for kinds that are not served yet: Thing.x.test/v1 (t)");
    }

    #[test]
    fn only_members_of_the_set_that_nobody_wants_are_pruned() {
        let member = |name: &str, set: &str| {
            object(json!({"apiVersion": "v1", "kind": "ConfigMap", "metadata": {"name": name, "namespace": "n", "uid": name,
                "labels": {keys::APPLYSET_PART_OF: set}}}))
        };
        let mut going = member("going", &set_id("d"));
        going.metadata_mut().insert("deletionTimestamp".into(), "2026-01-01T00:00:00Z".into());
        let members = [member("kept", &set_id("d")), member("old", &set_id("d")), member("other", "applyset-x-v1"), going];
        let orphans = orphans(&deployer(), &members, &BTreeSet::from(["kept".to_owned()]), &ClusterKey::host());
        assert_eq!(orphans.iter().map(|(_, uid)| uid.as_str()).collect::<Vec<_>>(), ["old"]);
    }

    #[test]
    fn what_the_parent_remembers_is_read_back() {
        let kinds: BTreeSet<GroupKind> = ["ConfigMap", "Deployment.apps"]
            .into_iter()
            .map(|text| text.split_once('.').unwrap_or((text, "")))
            .map(|(kind, group)| GroupKind { group: group.into(), kind: kind.into() })
            .collect();
        let namespaces = BTreeSet::from(["a".to_owned(), "b".to_owned()]);
        let parent = parent(&deployer(), &kinds, &namespaces);
        assert_eq!((remembered_kinds(&parent), remembered_namespaces(&parent)), (kinds, namespaces));
        assert!(has_parent(&parent, &parent) && !has_parent(&deployer(), &parent));
    }
}
