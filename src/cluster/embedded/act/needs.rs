//! What a pod needs to exist beside it before it can start.

use plinth_api::Object;
use serde_json::Value;

use super::hands::{Hands, resource};
use crate::embedded::store::{Place, Resource};

/// What keeps a pod from starting.
#[derive(Clone, Debug, PartialEq, Eq)]
pub(super) enum Lack {
    /// A volume cannot be mounted, so that no container is made.
    Volume(String),
    /// A container's environment cannot be made up.
    Environment {
        /// The container.
        container: String,
        /// What is not there.
        message: String,
    },
}

/// Whether pods may wait for an object of this resource.
pub(super) fn is_needed(resource: &Resource) -> bool {
    resource.group.is_empty()
        && ["secrets", "configmaps", "serviceaccounts", "persistentvolumeclaims"].contains(&resource.plural.as_str())
}

/// The service account that a pod asks for and that is not there. `default` always comes.
pub(super) fn absent_account(hands: &Hands<'_>, beside: &Place, spec: &Value) -> Option<String> {
    let account = spec["serviceAccountName"].as_str().filter(|name| !name.is_empty() && *name != "default")?;
    absent(hands, beside, "serviceaccounts", account).then(|| account.to_owned())
}

/// The first thing that a pod's volumes and environment name and that is not there.
pub(super) fn lack(hands: &Hands<'_>, place: &Place, pod: &Object) -> Option<Lack> {
    let spec = pod.spec();
    volumes(spec)
        .find(|(_, plural, name)| absent(hands, place, plural, name))
        .map(|(volume, plural, name)| {
            let what = singular(plural);
            Lack::Volume(format!("MountVolume.SetUp failed for volume {volume:?} : {what} {name:?} not found"))
        })
        .or_else(|| {
            let found = environment(spec).find(|(_, plural, name)| absent(hands, place, plural, name));
            found.map(|(container, plural, name)| Lack::Environment {
                container: container.to_owned(),
                message: format!("{} {name:?} not found", singular(plural)),
            })
        })
}

/// Volume, plural and name of the objects that volumes show.
fn volumes(spec: &Value) -> impl Iterator<Item = (&str, &'static str, &str)> {
    elements(&spec["volumes"]).filter_map(|volume| {
        let (plural, source, name) = [
            ("secrets", &volume["secret"], "secretName"),
            ("configmaps", &volume["configMap"], "name"),
            ("persistentvolumeclaims", &volume["persistentVolumeClaim"], "claimName"),
        ]
        .into_iter()
        .find(|(_, source, _)| source.is_object())?;
        let name = source[name].as_str().filter(|_| source["optional"] != true)?;
        Some((volume["name"].as_str().unwrap_or_default(), plural, name))
    })
}

/// Container, plural and name of the objects that environments are made from.
fn environment(spec: &Value) -> impl Iterator<Item = (&str, &'static str, &str)> {
    let containers = elements(&spec["initContainers"]).chain(elements(&spec["containers"]));
    containers.flat_map(|container| {
        let own = container["name"].as_str().unwrap_or_default();
        let from = elements(&container["envFrom"])
            .flat_map(|from| [("secrets", &from["secretRef"]), ("configmaps", &from["configMapRef"])]);
        let single = elements(&container["env"]).flat_map(|variable| {
            let source = &variable["valueFrom"];
            [("secrets", &source["secretKeyRef"]), ("configmaps", &source["configMapKeyRef"])]
        });
        from.chain(single).filter_map(move |(plural, source)| {
            let name = source["name"].as_str().filter(|_| source["optional"] != true)?;
            Some((own, plural, name))
        })
    })
}

fn elements(value: &Value) -> impl Iterator<Item = &Value> {
    value.as_array().into_iter().flatten()
}

fn absent(hands: &Hands<'_>, beside: &Place, plural: &str, name: &str) -> bool {
    let place = Place { resource: resource("", plural), name: name.to_owned(), ..beside.clone() };
    hands.get(&place).is_none()
}

fn singular(plural: &str) -> &str {
    plural.strip_suffix('s').unwrap_or(plural)
}
