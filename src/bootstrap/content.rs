//! What a resolved channel holds, as plain data.

use std::{collections::BTreeMap, sync::Arc};

use plinth_api::lock::{LockedRef, ReleaseLock};
use plinth_releasechannel::{Channel, ComponentVersion, localization::Localization};
use serde_json::Value;

/// The part of a channel that bootstrap works on.
#[derive(Clone, Debug, Default)]
pub struct Content {
    /// The closure with digests.
    pub lock: ReleaseLock,
    /// RGD resources, in the channel's order.
    pub rgds: Vec<RgdText>,
    /// `instance` resources by component version.
    pub instances: Vec<(LockedRef, String)>,
    /// The distribution that `--distribution` chose already.
    pub distribution: Option<LockedRef>,
    /// Where the channel's images are: in a mirror, or where the channel says.
    pub images: Arc<Localization>,
    /// Documents of the resources that [`crate::plan::manifests`] names, as far as they were read.
    pub manifests: BTreeMap<Manifest, Vec<Value>>,
}

/// A component version, and the name of one of its resources that a Deployer applies.
pub type Manifest = (ComponentVersion, String);

/// One RGD resource.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct RgdText {
    /// The component version that has it.
    pub component: LockedRef,
    /// Name of the resource.
    pub resource: String,
    /// YAML, one or more documents.
    pub text: String,
}

impl From<&Channel> for Content {
    fn from(channel: &Channel) -> Self {
        let rgds = channel.rgds.iter().map(|rgd| RgdText {
            component: locked(&rgd.component),
            resource: rgd.resource.clone(),
            text: rgd.text.clone(),
        });
        Self {
            lock: channel.lock.clone(),
            rgds: rgds.collect(),
            instances: channel.instances.iter().map(|text| (locked(&text.component), text.text.clone())).collect(),
            distribution: channel.distribution.as_ref().map(locked),
            images: Arc::new(Localization::describing(&channel.lock)),
            manifests: BTreeMap::new(),
        }
    }
}

fn locked(component: &ComponentVersion) -> LockedRef {
    LockedRef { name: component.name.clone(), version: component.version.clone() }
}

impl Content {
    /// The specification of the repository that a component version was found in.
    pub fn repository(&self, component: &LockedRef) -> Option<&Value> {
        let found = self.lock.components.iter().find(|c| c.name == component.name && c.version == component.version)?;
        self.lock.repositories.get(found.repository)
    }

    /// The component versions that this one refers to, directly or not, itself included.
    pub fn reachable(&self, from: &LockedRef) -> Vec<LockedRef> {
        let mut found = vec![from.clone()];
        let mut next = 0;
        while next < found.len() {
            let at = found[next].clone();
            next += 1;
            let component = self.lock.components.iter().find(|c| c.name == at.name && c.version == at.version);
            for reference in component.iter().flat_map(|component| &component.references) {
                let target =
                    LockedRef { name: reference.target.component_name.clone(), version: reference.target.version.clone() };
                if !found.contains(&target) {
                    found.push(target);
                }
            }
        }
        found
    }
}
