//! The lock covers what the graphs ask for (contracts 4).

use plinth_api::lock::ReleaseLock;
use plinth_releasechannel::versions;
use serde_json::Value;

use super::{Remark, expand::Place};
use crate::error::Error;

/// Refuses a Component of a graph that the lock does not have. Remarks name those that are known only during the run.
pub(super) fn covers(places: &[Place], lock: &ReleaseLock) -> Result<Vec<Remark>, Error> {
    let mut remarks = Vec::new();
    for place in places.iter().filter(|place| is_component(place)) {
        let text = |field: &str| place.object.at(&["spec", field]).and_then(Value::as_str).unwrap_or_default();
        let (component, version) = (text("component"), text("semver"));
        if component.contains("${") || version.contains("${") {
            let message = format!(
                "late: which component {} asks for is known only during the run; it resolves within the lock's repositories",
                place.subject
            );
            remarks.push(Remark { reason: "Late", message });
        } else if !has(lock, component, version) {
            return Err(Error::OutsideLock {
                rgd: place.rgd.clone(),
                node: place.subject.node.clone().unwrap_or_default(),
                component: component.to_owned(),
                version: version.to_owned(),
            });
        }
    }
    Ok(remarks)
}

fn is_component(place: &Place) -> bool {
    place.is_delivery("Component")
}

fn has(lock: &ReleaseLock, component: &str, wanted: &str) -> bool {
    let there = lock.components.iter().filter(|locked| locked.name == component).map(|locked| locked.version.as_str());
    versions::pick(Some(wanted), there).is_some()
}
