//! The rights that the controller in the cluster lacks, from what is there: definitions, their instances, and what objects say that wait.
//!
//! The roles that `up` wrote are not touched: what is granted lies in roles of its own beside them, which the next `up` leaves alone.
//! They only grow, since what a Deployer was refused once is said nowhere after it was granted; `down` takes them away.

#[cfg(test)]
mod tests;

use std::collections::BTreeMap;

use plinth_api::{
    ClusterKey, GroupVersionKind, Object, ObjectKey, Permission, delivery,
    lock::LockedRef,
    permission, platform,
    rbac::{self, Rights},
    rgd,
};
use plinth_engine::{
    graph::{self, Compiled, Definition},
    naming::keys,
    ports::{Query, ReadError, Reader},
    schema::SchemaSource,
};
use serde_json::Value;

use crate::{
    distribution::Rgd,
    error::Error,
    install,
    plan::{self, Built},
    ports::Schemas,
    rights::{self, GRANTED, NAME, NAMESPACE},
};

/// What there is to grant.
#[derive(Clone, Debug, Default, PartialEq)]
pub struct Grant {
    /// What is missing.
    pub missing: Rights,
    /// What was granted before.
    granted: Rights,
    /// The platform that the controller keeps.
    platform: Option<String>,
    /// Versions of the roles that were read, so that nothing is lost which somebody adds meanwhile.
    versions: BTreeMap<ObjectKey, String>,
}

impl Grant {
    /// Whether nothing is missing.
    pub fn is_empty(&self) -> bool {
        self.missing.cluster.is_empty() && self.missing.namespaces.is_empty()
    }

    /// The roles with what was granted and what is missing, each with its binding.
    ///
    /// # Panics
    /// Never: roles have a type.
    pub fn objects(&self) -> Vec<(ObjectKey, Object)> {
        let rights = rights::joined(&self.granted, &self.missing);
        let marked = |mut object: Object| {
            let key = object.key(&ClusterKey::host()).expect("a role has a type");
            let mut labels = serde_json::json!({keys::PART: keys::PART_CONTROLLER});
            if let Some(platform) = &self.platform {
                labels[keys::PLATFORM] = platform.clone().into();
            }
            object.metadata_mut().insert("labels".into(), labels);
            if let Some(version) = self.versions.get(&key) {
                object.metadata_mut().insert("resourceVersion".into(), version.clone().into());
            }
            (key, object)
        };
        rights::granted(&rights).into_iter().map(marked).collect()
    }
}

/// Looks through the cluster; writes nothing. `planned` is what the release takes that a Platform asks for, where that is known: its
/// definitions need not be there yet.
pub async fn survey(planned: Option<&Rights>, reader: &dyn Reader, schemas: &dyn Schemas) -> Result<Grant, Error> {
    let Some(role) = reader.get(&role(None, NAME)).await? else {
        let text = "no controller is installed in this cluster: plinth up installs one, with the rights that its platform takes";
        return Err(Error::Unusable(text.into()));
    };
    let (held, granted, versions) = held(reader, &role).await?;
    let definitions = list(reader, &GroupVersionKind::new(rgd::KRO_GROUP, rgd::VERSION, rgd::KIND)).await?;
    let read: Vec<(&Object, Definition)> =
        definitions.iter().filter_map(|object| Some((object, Definition::from_object(object).ok()?))).collect();
    let kinds: Vec<GroupVersionKind> = read.iter().flat_map(|(_, definition)| graph::kinds(&definition.spec)).collect();
    let served = schemas.ensure(&kinds).await?;
    let built: Vec<Built> = read.into_iter().filter_map(|(object, definition)| build(object, definition, &*served)).collect();
    let (asked, waiting) = asked(reader, &built, &*served).await?;
    let (platforms, others): (Vec<&Object>, Vec<&Object>) =
        definitions.iter().chain(&waiting).partition(|object| object.gvk().is_some_and(|gvk| gvk == install::platform_kind()));
    let needed = rights::joined(&asked, &rights::of_refusals(&refused(others.into_iter())));
    // A Platform names each right that it takes.
    let needed = rights::joined(&needed, &rights::exactly(&refused(platforms.into_iter())));
    let needed = match planned {
        Some(planned) => rights::joined(&needed, planned),
        None => needed,
    };
    let needed = plan::within(&needed, |name| name == NAMESPACE, reader).await?;
    let missing = rights::missing(&needed, &rights::joined(&held, &granted));
    Ok(Grant { missing, granted, platform: role.label(keys::PLATFORM).map(str::to_owned), versions })
}

/// What the controller's roles lack of these rights; writes nothing.
pub async fn lacking(needed: &Rights, reader: &dyn Reader) -> Result<Grant, Error> {
    let Some(role) = reader.get(&role(None, NAME)).await? else {
        let text = "no controller is installed in this cluster, although a Platform says that one keeps it";
        return Err(Error::Unusable(text.into()));
    };
    let (held, granted, versions) = held(reader, &role).await?;
    let missing = rights::missing(needed, &rights::joined(&held, &granted));
    Ok(Grant { missing, granted, platform: role.label(keys::PLATFORM).map(str::to_owned), versions })
}

/// What the graphs ask for, and the objects that may say that they wait for a right.
async fn asked(reader: &dyn Reader, built: &[Built], served: &dyn SchemaSource) -> Result<(Rights, Vec<Object>), Error> {
    let (mut places, mut open, mut waiting) = (Vec::new(), Vec::new(), Vec::new());
    for root in built {
        for instance in list(reader, &root.graph.instance.gvk).await? {
            match plan::below(&instance, root, built) {
                Ok(below) => places.extend(below),
                Err(error) => open.push(error.to_string()),
            }
            waiting.push(instance);
        }
    }
    for (group, kind) in [(delivery::GROUP, "Deployer"), (platform::GROUP, "Platform")] {
        waiting.extend(list(reader, &GroupVersionKind::new(group, platform::VERSION, kind)).await?);
    }
    let mut rights = rights::of((&[], &serde_json::Map::new()), built, &places, served);
    // What a Deployer applies is known by now: it has said what it lacks.
    rights.open.retain(|sentence| !sentence.ends_with("what it applies is known only during the run"));
    rights.open.extend(open);
    Ok((rights, waiting))
}

fn build(object: &Object, definition: Definition, served: &dyn SchemaSource) -> Option<Built> {
    let key = object.key(&ClusterKey::host())?;
    let (Compiled::Active(graph) | Compiled::Deferred { graph, .. }) =
        graph::compile(&definition, served, &graph::Options::default())
    else {
        return None;
    };
    let component = LockedRef { name: String::new(), version: String::new() };
    Some(Built { rgd: Rgd { component, resource: String::new(), object: object.clone(), definition }, key, graph })
}

/// The rights that objects say they wait for.
fn refused<'a>(objects: impl Iterator<Item = &'a Object>) -> Vec<Permission> {
    let of_object = |object: &'a Object| object.at(&["status", "conditions"]).and_then(Value::as_array).into_iter().flatten();
    let waits =
        objects.flat_map(of_object).filter(|condition| condition["type"] == permission::MISSING && condition["status"] == "True");
    waits.flat_map(|condition| permission::in_message(condition["message"].as_str().unwrap_or_default())).collect()
}

/// What the controller's roles say, what those of earlier grants say, and the versions of the latter.
async fn held(reader: &dyn Reader, computed: &Object) -> Result<(Rights, Rights, BTreeMap<ObjectKey, String>), Error> {
    let mut held = Rights { cluster: rights::rules_of(computed), ..Rights::default() };
    let (mut granted, mut versions) = (Rights::default(), BTreeMap::new());
    let mut note = |key: ObjectKey, role: &Object| {
        versions.extend(role.resource_version().map(|version| (key, version.to_owned())));
    };
    if let Some(role) = reader.get(&self::role(None, GRANTED)).await? {
        granted.cluster = rights::rules_of(&role);
        note(self::role(None, GRANTED), &role);
    }
    for role in list(reader, &GroupVersionKind::new(rbac::GROUP, "v1", "Role")).await? {
        let Some(namespace) = role.namespace().map(str::to_owned) else { continue };
        match role.name() {
            NAME => drop(held.namespaces.insert(namespace, rights::rules_of(&role))),
            GRANTED => {
                note(self::role(Some(&namespace), GRANTED), &role);
                granted.namespaces.insert(namespace, rights::rules_of(&role));
            }
            _ => {}
        }
    }
    Ok((held, granted, versions))
}

fn role(namespace: Option<&str>, name: &str) -> ObjectKey {
    let kind = if namespace.is_some() { "Role" } else { "ClusterRole" };
    let gvk = GroupVersionKind::new(rbac::GROUP, "v1", kind);
    ObjectKey { cluster: ClusterKey::host(), gvk, namespace: namespace.map(str::to_owned), name: name.to_owned() }
}

/// All objects of a kind; one that is not served has none.
async fn list(reader: &dyn Reader, gvk: &GroupVersionKind) -> Result<Vec<Object>, Error> {
    let query = Query { cluster: ClusterKey::host(), gvk: gvk.clone(), namespace: None, selector: String::new() };
    match reader.list(&query).await {
        Err(ReadError::NotServed(_)) => Ok(Vec::new()),
        other => Ok(other?),
    }
}
