//! What a pod needs to exist beside it before it can start.

use std::sync::Arc;

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
    find(hands, beside, "serviceaccounts", account).is_none().then(|| account.to_owned())
}

/// The first thing that a pod's volumes and environment name and that is not there, or lacks what they want of it.
pub(super) fn lack(hands: &Hands<'_>, place: &Place, pod: &Object) -> Option<Lack> {
    let (spec, namespace) = (pod.spec(), place.namespace.as_deref().unwrap_or_default());
    let of_volumes = volumes(spec).find_map(|(volume, need)| {
        let fault = need.fault(hands, place).map(|fault| match fault {
            Fault::Absent => format!("{} {:?} not found", need.kind(), need.name),
            Fault::Key(key) => {
                format!("references non-existent {} key: {key}", if need.plural == "secrets" { "secret" } else { "config" })
            }
        })?;
        Some(Lack::Volume(format!("MountVolume.SetUp failed for volume {volume:?} : {fault}")))
    });
    of_volumes.or_else(|| {
        environment(spec).find_map(|(container, need)| {
            let message = match need.fault(hands, place)? {
                Fault::Absent => format!("{} {:?} not found", need.kind(), need.name),
                Fault::Key(key) if need.plural == "secrets" => {
                    format!("couldn't find key {key} in Secret {namespace}/{}", need.name)
                }
                Fault::Key(key) => format!("couldn't find key {key} in ConfigMap {namespace}/{}", need.name),
            };
            Some(Lack::Environment { container: container.to_owned(), message })
        })
    })
}

/// An object beside a pod, and what it must have.
struct Need<'a> {
    plural: &'static str,
    name: &'a str,
    keys: Vec<&'a str>,
}

/// What is wrong with what a pod needs.
enum Fault<'a> {
    Absent,
    Key(&'a str),
}

impl<'a> Need<'a> {
    /// `None` where the pod starts without it too.
    fn read(plural: &'static str, source: &'a Value, name: &str, keys: Vec<&'a str>) -> Option<Self> {
        let name = source[name].as_str().filter(|_| source["optional"] != true)?;
        Some(Self { plural, name, keys })
    }

    fn kind(&self) -> &str {
        self.plural.strip_suffix('s').unwrap_or(self.plural)
    }

    fn fault(&self, hands: &Hands<'_>, beside: &Place) -> Option<Fault<'a>> {
        let Some(object) = find(hands, beside, self.plural, self.name) else { return Some(Fault::Absent) };
        let has = |key: &str| ["data", "binaryData"].iter().any(|field| object.at(&[field, key]).is_some());
        self.keys.iter().find(|key| !has(key)).map(|key| Fault::Key(key))
    }
}

/// Volumes with the objects that they show.
fn volumes(spec: &Value) -> impl Iterator<Item = (&str, Need<'_>)> {
    elements(&spec["volumes"]).filter_map(|volume| {
        let (plural, source, name) = [
            ("secrets", &volume["secret"], "secretName"),
            ("configmaps", &volume["configMap"], "name"),
            ("persistentvolumeclaims", &volume["persistentVolumeClaim"], "claimName"),
        ]
        .into_iter()
        .find(|(_, source, _)| source.is_object())?;
        let keys = elements(&source["items"]).filter_map(|item| item["key"].as_str()).collect();
        Some((volume["name"].as_str().unwrap_or_default(), Need::read(plural, source, name, keys)?))
    })
}

/// Containers with the objects that their environments are made from.
fn environment(spec: &Value) -> impl Iterator<Item = (&str, Need<'_>)> {
    let containers = elements(&spec["initContainers"]).chain(elements(&spec["containers"]));
    containers.flat_map(|container| {
        let own = container["name"].as_str().unwrap_or_default();
        let from = elements(&container["envFrom"])
            .flat_map(|from| [("secrets", &from["secretRef"]), ("configmaps", &from["configMapRef"])]);
        let single = elements(&container["env"]).flat_map(|variable| {
            let source = &variable["valueFrom"];
            [("secrets", &source["secretKeyRef"]), ("configmaps", &source["configMapKeyRef"])]
        });
        let keyed = |(plural, source): (&'static str, _)| {
            Need::read(plural, source, "name", source["key"].as_str().into_iter().collect())
        };
        from.chain(single).filter_map(keyed).map(move |need| (own, need))
    })
}

fn elements(value: &Value) -> impl Iterator<Item = &Value> {
    value.as_array().into_iter().flatten()
}

fn find(hands: &Hands<'_>, beside: &Place, plural: &str, name: &str) -> Option<Arc<Object>> {
    hands.get(&Place { resource: resource("", plural), name: name.to_owned(), ..beside.clone() })
}
