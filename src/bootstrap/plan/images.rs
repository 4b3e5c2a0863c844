//! Images that no resource describes, and images that nothing uses.

use std::collections::{BTreeMap, BTreeSet};

use plinth_api::{
    delivery::{ComponentSpec, ResourceSpec},
    lock::{LockedComponent, LockedRef, ReleaseLock},
};
use plinth_releasechannel::{ComponentVersion, localization::Applied, versions};
use serde_json::Value;

use super::{Remark, expand::Place};
use crate::{
    content::{Content, Manifest},
    distribution::Distribution,
    settings::Settings,
    wanted,
};

/// How many images a remark names.
const NAMED: usize = 12;

type Used = BTreeSet<(ComponentVersion, String)>;

/// One remark a leak, one for everything that is not used.
pub(super) fn remarks(content: &Content, distribution: &Distribution, settings: &Settings, places: &[Place]) -> Vec<Remark> {
    let (instance, in_instance) = wanted::localized_instance(distribution, settings);
    let own = ("the instance ".to_owned() + instance.name(), in_instance);
    let manifests = deployed(places, content);
    let in_manifests = manifests.iter().filter_map(|manifest| in_manifest(content, manifest)).collect::<Vec<_>>();
    let found = || distribution.images.found.iter().chain([&own]).chain(&in_manifests);
    let mut remarks = Vec::new();
    for (document, applied) in found() {
        remarks.extend(applied.leaks.iter().map(|image| leak(document, image)));
    }
    let mut used = by_delivery(places, &content.lock);
    used.extend(found().flat_map(|(_, applied)| applied.used.iter().cloned()));
    remarks.extend(unused(content, distribution, &used));
    remarks
}

/// Resources that Deployers apply, as far as that is known before the run.
pub(super) fn deployed(places: &[Place], content: &Content) -> BTreeSet<Manifest> {
    let text = |place: &Place, path: &[&str]| place.object.at(path).and_then(Value::as_str).unwrap_or_default().to_owned();
    let wanted: BTreeSet<String> = places
        .iter()
        .filter(|place| place.is_delivery("Deployer"))
        .map(|place| text(place, &["spec", "resourceRef", "name"]))
        .collect();
    let is_open = |name: &str| name.contains("${");
    // Two names of which one is known only during the run may be the same.
    let is_wanted =
        |name: &str| wanted.contains(name) || (!wanted.is_empty() && is_open(name)) || wanted.iter().any(|name| is_open(name));
    let components = asked(places, &content.lock);
    let resources = places.iter().filter(|place| place.is_delivery("Resource") && is_wanted(place.object.name()));
    let specs = resources.filter_map(|place| serde_json::from_value::<ResourceSpec>(place.object.spec().clone()).ok());
    let is_named = |spec: &ResourceSpec| spec.resource.by_reference.resource.get("name").is_some_and(|name| !is_open(name));
    specs.filter(is_named).flat_map(|spec| of_resource(&spec, &components, &content.lock)).collect()
}

fn in_manifest(content: &Content, manifest: &Manifest) -> Option<(String, Applied)> {
    let (component, resource) = manifest;
    let mut applied = Applied::default();
    content.manifests.get(manifest)?.iter().cloned().for_each(|mut document| content.images.apply(&mut document, &mut applied));
    Some((format!("the resource {resource} of {component}"), applied))
}

fn leak(document: &str, image: &str) -> Remark {
    let message = format!("no resource describes the image {image}, which {document} names: behind an air gap it is nowhere");
    Remark { reason: "Leak", message }
}

fn unused(content: &Content, distribution: &Distribution, used: &Used) -> Option<Remark> {
    let scope = content.reachable(&distribution.component);
    let in_scope =
        |component: &ComponentVersion| scope.iter().any(|own| own.name == component.name && own.version == component.version);
    let unused = content.images.unused(used);
    let names: Vec<String> = unused
        .iter()
        .filter(|image| in_scope(&image.component))
        .map(|image| format!("{} of {}", image.resource, image.component))
        .collect();
    let more = names.len().saturating_sub(NAMED);
    let rest = if more > 0 { format!(", and {more} more") } else { String::new() };
    let shown: Vec<&str> = names.iter().take(NAMED).map(String::as_str).collect();
    let message = format!("no graph uses these images, an operator may: {}{rest}", shown.join(", "));
    (!names.is_empty()).then_some(Remark { reason: "Unused", message })
}

/// Images that delivery objects ask for. Where a name is known only during the run, every image that may be meant counts.
fn by_delivery(places: &[Place], lock: &ReleaseLock) -> Used {
    let components = asked(places, lock);
    let resources = places.iter().filter(|place| place.is_delivery("Resource"));
    let specs = resources.filter_map(|place| serde_json::from_value::<ResourceSpec>(place.object.spec().clone()).ok());
    specs.flat_map(|spec| of_resource(&spec, &components, lock)).collect()
}

fn of_resource(spec: &ResourceSpec, components: &BTreeMap<String, LockedRef>, lock: &ReleaseLock) -> Used {
    let wanted = &spec.resource.by_reference;
    let name = wanted.resource.get("name").map(String::as_str).unwrap_or_default();
    let from = components.get(&spec.component_ref.name).and_then(|from| find(lock, from));
    let target = from.and_then(|from| wanted.reference_path.iter().try_fold(from, |at, step| follow(lock, at, step)));
    let candidates: Vec<&LockedComponent> = target.map_or_else(|| lock.components.iter().collect(), |target| vec![target]);
    let is_meant = |resource: &str| name.contains("${") || resource == name;
    let named = |component: &LockedComponent| {
        let at = ComponentVersion::new(&component.name, &component.version);
        let resources = component.resources.iter().filter(|resource| is_meant(&resource.name));
        resources.map(|resource| (at.clone(), resource.name.clone())).collect::<Vec<_>>()
    };
    candidates.into_iter().flat_map(named).collect()
}

/// What each Component object resolves to.
fn asked(places: &[Place], lock: &ReleaseLock) -> BTreeMap<String, LockedRef> {
    let component = |place: &Place| {
        let spec: ComponentSpec = serde_json::from_value(place.object.spec().clone()).ok()?;
        let there = lock.components.iter().filter(|locked| locked.name == spec.component).map(|locked| locked.version.as_str());
        let version = versions::pick(Some(&spec.semver), there)?;
        Some((place.object.name().to_owned(), LockedRef { name: spec.component, version }))
    };
    places.iter().filter(|place| place.is_delivery("Component")).filter_map(component).collect()
}

fn follow<'a>(lock: &'a ReleaseLock, at: &LockedComponent, step: &BTreeMap<String, String>) -> Option<&'a LockedComponent> {
    let reference = at.references.iter().find(|reference| step.get("name") == Some(&reference.name))?;
    let target = &reference.target;
    find(lock, &LockedRef { name: target.component_name.clone(), version: target.version.clone() })
}

fn find<'a>(lock: &'a ReleaseLock, at: &LockedRef) -> Option<&'a LockedComponent> {
    lock.components.iter().find(|component| component.name == at.name && component.version == at.version)
}
