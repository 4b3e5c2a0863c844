//! What a Deployer applies and takes away (ocm.md section 16). Pure.

use std::collections::{BTreeMap, BTreeSet};

use plinth_api::{ClusterKey, GroupKind, GroupVersionKind, Object, ObjectKey};
use plinth_engine::{
    naming::{applyset_id, keys, label_value},
    schema::{Lookup, SchemaSource},
};
use serde_json::{Value, json};

/// `app.kubernetes.io/managed-by` of deployed objects, the OCM controllers' own value.
pub const MANAGED_BY: &str = "deployer.delivery.ocm.software";
/// Field manager of deployed objects.
pub const MANAGER: &str = "plinth.dev/deployer";
/// Finalizers of a Deployer, the OCM controllers' own: ours is the first, the second is what they leave behind.
pub const FINALIZERS: [&str; 2] = ["delivery.ocm.software/applyset-prune", "delivery.ocm.software/watch"];

/// What one Deployer wants.
#[derive(Clone, Debug, Default, PartialEq)]
pub struct Wanted {
    /// Objects whose kinds are served, complete, in the order of the manifest.
    pub objects: Vec<(ObjectKey, Object)>,
    /// Kinds that are not served yet, with the objects that wait for them. Waiting is not failing.
    pub deferred: BTreeMap<GroupVersionKind, Vec<String>>,
}

/// Where deployed objects come from, for their labels and annotations.
#[derive(Clone, Debug, Default, PartialEq)]
pub struct Origin {
    /// Name of the Resource object.
    pub name: String,
    /// Its UID.
    pub uid: String,
    /// OCM component name.
    pub component: String,
    /// Its version.
    pub version: String,
    /// `status.resource` of the Resource object.
    pub resource: Value,
}

impl Origin {
    /// What a Resource object says.
    pub fn of(resource: &Object) -> Self {
        let status = resource.status();
        let text = |field: &str| status["component"][field].as_str().unwrap_or_default().to_owned();
        Self {
            name: resource.name().to_owned(),
            uid: resource.uid().unwrap_or_default().to_owned(),
            component: text("component"),
            version: text("version"),
            resource: status.get("resource").cloned().unwrap_or_default(),
        }
    }

    /// A field of the resource, empty where it is not there.
    pub fn text(&self, field: &str) -> &str {
        self.resource[field].as_str().unwrap_or_default()
    }
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

/// The OCM controllers' labels and annotations, and the set's.
fn mark(object: &mut Object, deployer: &Object, origin: &Origin) {
    let labels = [
        (keys::MANAGED_BY, MANAGED_BY.to_owned()),
        ("app.kubernetes.io/part-of", label_value(deployer.name())),
        ("app.kubernetes.io/name", label_value(&origin.name)),
        ("app.kubernetes.io/component", label_value(&origin.name)),
        ("app.kubernetes.io/instance", label_value(&origin.uid)),
        ("app.kubernetes.io/version", version_label(origin.text("version"))),
        (keys::APPLYSET_PART_OF, set_id(deployer.name())),
    ];
    let metadata = object.metadata_mut();
    insert(metadata.entry("labels").or_insert_with(|| json!({})), labels);
    insert(metadata.entry("annotations").or_insert_with(|| json!({})), annotations(origin));
    metadata.insert("ownerReferences".into(), json!([owner(deployer)]));
}

/// A label's value has no `+`.
fn version_label(version: &str) -> String {
    let fits = |c: char| c.is_ascii_alphanumeric() || "-_.".contains(c);
    let text: String = version.chars().map(|c| if fits(c) { c } else { '-' }).collect();
    label_value(text.trim_matches(|c: char| !c.is_ascii_alphanumeric()))
}

fn annotations(origin: &Origin) -> Vec<(String, String)> {
    let mut annotations = vec![
        ("component.delivery.ocm.software/name".to_owned(), origin.component.clone()),
        ("component.delivery.ocm.software/version".to_owned(), origin.version.clone()),
        ("resource.delivery.ocm.software/access".to_owned(), origin.resource["access"].to_string()),
    ];
    let mut add = |prefix: &str, name: &str, value: Option<&str>| {
        let Some(value) = value.filter(|_| is_annotation_name(name)) else { return };
        annotations.push((format!("{prefix}.delivery.ocm.software/{name}"), value.to_owned()));
    };
    for (name, value) in origin.resource["extraIdentity"].as_object().into_iter().flatten() {
        add("identity.resource", name, value.as_str());
    }
    for name in ["name", "version"] {
        add("identity.resource", name, origin.resource[name].as_str());
    }
    for name in ["value", "hashAlgorithm", "normalisationAlgorithm"] {
        add("digest.resource", name, origin.resource["digest"][name].as_str());
    }
    annotations
}

/// Names of further identity attributes are free; an API server takes only these as part of a key.
fn is_annotation_name(name: &str) -> bool {
    let is_end = |c: Option<char>| c.is_some_and(|c| c.is_ascii_alphanumeric());
    let is_inner = |c: char| c.is_ascii_alphanumeric() || "-_.".contains(c);
    name.len() <= 63 && is_end(name.chars().next()) && is_end(name.chars().last()) && name.chars().all(is_inner)
}

fn insert(map: &mut Value, pairs: impl IntoIterator<Item = (impl Into<String>, String)>) {
    if !map.is_object() {
        *map = json!({});
    }
    for (key, value) in pairs {
        map[key.into()] = value.into();
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
            "finalizers": [FINALIZERS[0]],
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
    deployer.finalizers().contains(&FINALIZERS[0])
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

/// In which order kinds are applied: what others need first. They go the other way round.
pub fn rank(kind: &str) -> u8 {
    match kind {
        "Namespace" => 0,
        "CustomResourceDefinition" => 1,
        _ => 2,
    }
}

/// Whose a live object is, where it is somebody else's: of another set, or controlled by another object. It is left alone.
pub fn owner_of(live: &Object, deployer: &Object) -> Option<String> {
    let set = live.label(keys::APPLYSET_PART_OF);
    if set == Some(&set_id(deployer.name())) {
        return None;
    }
    let owners = live.at(&["metadata", "ownerReferences"]).and_then(Value::as_array);
    let controller = owners.into_iter().flatten().find(|owner| owner["controller"] == true);
    if let Some(owner) = controller.filter(|owner| owner["uid"].as_str() != deployer.uid()) {
        return Some(format!("{}/{}", owner["kind"].as_str().unwrap_or_default(), owner["name"].as_str().unwrap_or_default()));
    }
    set.map(|set| format!("the set {set}"))
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
    orphans.sort_by(|(a, _), (b, _)| rank(&a.gvk.kind).cmp(&rank(&b.gvk.kind)).then_with(|| a.cmp(b)));
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
        let origin = Origin {
            name: "rgd".into(),
            uid: "r".into(),
            component: "a.test/c".into(),
            version: "1".into(),
            resource: json!({"name": "rgd", "version": "2+b", "extraIdentity": {"os": "linux", "not/one": "x"},
                "access": {"type": "none"}, "digest": {"value": "ab", "hashAlgorithm": "SHA-256", "normalisationAlgorithm": "x/v1"}}),
        };
        let wanted = wanted(&deployer(), manifest, &origin, &schemas(), &ClusterKey::host());
        let keys: Vec<String> = wanted.objects.iter().map(|(key, _)| key.to_string()).collect();
        assert_eq!(keys, ["ConfigMap/default/a", "Namespace/n"]);
        let first = &wanted.objects[0].1;
        assert_eq!(first.label("mine"), Some("x"));
        assert_eq!(first.label(keys::APPLYSET_PART_OF), Some(set_id("d").as_str()));
        let labels = ["name", "component", "instance", "version", "part-of", "managed-by"];
        let labels = labels.map(|name| first.label(&format!("app.kubernetes.io/{name}")).unwrap_or_default());
        assert_eq!(labels, ["rgd", "rgd", "r", "2-b", "d", "deployer.delivery.ocm.software"]);
        let annotations = [
            ("component.delivery.ocm.software/name", Some("a.test/c")),
            ("component.delivery.ocm.software/version", Some("1")),
            ("resource.delivery.ocm.software/access", Some(r#"{"type":"none"}"#)),
            ("identity.resource.delivery.ocm.software/version", Some("2+b")),
            ("identity.resource.delivery.ocm.software/os", Some("linux")),
            ("identity.resource.delivery.ocm.software/not/one", None),
            ("digest.resource.delivery.ocm.software/hashAlgorithm", Some("SHA-256")),
        ];
        for (name, value) in annotations {
            assert_eq!(first.annotation(name), value, "{name}");
        }
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
    fn what_belongs_to_somebody_else_is_told() {
        let live = |labels: Value, owners: Value| object(json!({"metadata": {"labels": labels, "ownerReferences": owners}}));
        let theirs = json!([{"kind": "Deployer", "name": "e", "uid": "v", "controller": true}]);
        let cases = [
            (live(json!({}), json!([])), None),
            (live(json!({}), json!([{"kind": "Node", "name": "n", "uid": "v"}])), None),
            (live(json!({}), json!([{"kind": "Deployer", "name": "d", "uid": "u", "controller": true}])), None),
            (live(json!({}), theirs.clone()), Some("Deployer/e".to_owned())),
            (live(json!({keys::APPLYSET_PART_OF: "applyset-x-v1"}), theirs.clone()), Some("Deployer/e".to_owned())),
            (live(json!({keys::APPLYSET_PART_OF: "applyset-x-v1"}), json!([])), Some("the set applyset-x-v1".to_owned())),
            // Left by an earlier Deployer of this name: the set is the same.
            (live(json!({keys::APPLYSET_PART_OF: set_id("d")}), theirs), None),
        ];
        for (live, owner) in cases {
            assert_eq!(owner_of(&live, &deployer()), owner, "{live:?}");
        }
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
