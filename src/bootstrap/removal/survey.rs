//! What a cluster has of a platform.

use std::collections::BTreeSet;

use plinth_api::{ClusterKey, GroupVersionKind, Object, ObjectKey, delivery, rgd};
use plinth_engine::{
    naming::{self, keys},
    ports::{Query, ReadError, Reader},
};
use serde_json::Value;

use super::{content, owners::Owners, scope::Scope};
use crate::{error::Error, install, plan, ports::Ports, rights, wanted};

/// What belongs to a platform, in the order in which it goes.
#[derive(Clone, Debug, Default, PartialEq)]
pub struct Survey {
    /// The label selector that marks it.
    pub selector: String,
    /// What runs the controller in the cluster: it goes first, and the run does its work.
    pub controller: Vec<Found>,
    /// Instances that the run wrote; what is below them the loop removes.
    pub instances: Vec<Found>,
    /// What the loop made and whose instance is not there any more: nobody else would remove it.
    pub orphans: Vec<Found>,
    /// Definitions, those that use others first, and Repositories.
    pub definitions: Vec<Found>,
    /// CRDs that the definitions brought.
    pub generated: Vec<Found>,
    /// Account, roles, lock and journal of the controller.
    pub rights: Vec<Found>,
    /// CRDs and namespaces that the run wrote.
    pub foundation: Vec<Found>,
    /// Where else the label is looked for.
    pub scope: Scope,
}

/// One object.
#[derive(Clone, Debug, PartialEq)]
pub struct Found {
    /// Where and what.
    pub key: ObjectKey,
    /// As it was seen.
    pub object: Object,
    /// What a reviewer should know.
    pub note: Option<String>,
    /// Why it has to stay, where that is known before anything is deleted.
    pub stays: Option<String>,
}

impl Survey {
    /// Everything, in order.
    pub fn all(&self) -> impl Iterator<Item = &Found> {
        let first = [&self.controller, &self.instances, &self.orphans, &self.definitions];
        first.into_iter().chain([&self.generated, &self.rights, &self.foundation]).flatten()
    }
}

/// The kinds that a run writes whatever the distribution.
pub(crate) fn own_kinds() -> Vec<GroupVersionKind> {
    written_kinds().into_iter().chain([wanted::crd_kind(), wanted::namespace_kind()]).collect()
}

/// Those of them that say what the loop is to do.
pub(crate) fn written_kinds() -> Vec<GroupVersionKind> {
    let repository = GroupVersionKind::new(delivery::GROUP, delivery::VERSION, "Repository");
    definition_kinds().into_iter().chain([repository]).collect()
}

/// The kinds of definitions.
fn definition_kinds() -> [GroupVersionKind; 2] {
    [rgd::KRO_GROUP, rgd::KROP_GROUP].map(|group| GroupVersionKind::new(group, rgd::VERSION, rgd::KIND))
}

/// Looks for everything that carries the platform's label, and for what its definitions brought. `plain` asks once, `patient` until
/// there is an answer.
pub(super) async fn look(platform: &str, plain: &Ports, patient: &Ports) -> Result<Survey, Error> {
    let reader = patient.reader.as_ref();
    let selector = naming::platform_selector(platform);
    let mut survey = Survey { selector: selector.clone(), ..Survey::default() };
    for gvk in own_kinds() {
        let found = list(reader, &gvk, &selector).await?;
        match gvk.kind.as_str() {
            "CustomResourceDefinition" => {
                // One that was marked by an earlier removal that did not get to its end is still a generated one.
                let (generated, own): (Vec<Found>, Vec<Found>) = found.into_iter().partition(is_generated);
                survey.generated.extend(generated);
                survey.foundation.extend(noted(own, "stays where other objects of its kind are left"));
            }
            "Namespace" => survey.foundation.extend(found),
            _ => survey.definitions.extend(found),
        }
    }
    // The Lease is in there, and whoever removes holds it until the end.
    survey.foundation.sort_by_key(|found| found.key.gvk == wanted::namespace_kind() && found.key.name == rights::NAMESPACE);
    let installed = format!("{selector},{}={}", keys::PART, keys::PART_CONTROLLER);
    for gvk in install::kinds() {
        let found = list(reader, &gvk, &installed).await?;
        // Without the Platform, a controller that is not gone yet brings nothing back.
        let runs = gvk == install::deployment_kind() || gvk == install::platform_kind();
        if runs { &mut survey.controller } else { &mut survey.rights }.extend(found);
    }
    add_what_others_installed(&mut survey, platform, reader).await?;
    survey.definitions = users_first(survey.definitions);
    let defined = all_defined(&survey.definitions);
    survey.instances = list_all(reader, &defined, &selector).await?;
    let uids: BTreeSet<String> = survey.instances.iter().filter_map(|found| found.object.uid().map(str::to_owned)).collect();
    // One below another goes with it.
    survey.instances.retain(|found| found.object.label(keys::INSTANCE_ID).is_none_or(|parent| !uids.contains(parent)));
    let names: Vec<String> = survey.definitions.iter().filter(|f| is_definition(&f.object)).map(|f| f.key.name.clone()).collect();
    for name in names {
        let generated = format!("{}={}", keys::RGD_NAME, naming::label_value(&name));
        survey.generated.extend(list(reader, &wanted::crd_kind(), &generated).await?);
    }
    survey.generated.sort_by(|a, b| a.key.cmp(&b.key));
    survey.generated.dedup_by(|a, b| a.key == b.key);
    let made = survey.definitions.iter().flat_map(|found| makes(&found.object));
    let recorded: Vec<_> = patient.log.read(|state| state.applied.keys().map(|key| key.gvk.clone()).collect());
    let known = defined.into_iter().chain(made).chain(own_kinds()).chain(install::kinds()).chain(recorded).collect();
    survey.scope = Scope::of(known, patient).await;
    let looked = survey.scope.labelled(&selector, plain, patient).await?;
    survey.scope.unseen = looked.unseen;
    survey.orphans = orphans(looked.found, &survey, reader).await?;
    tell_what_stays(&mut survey, plain, patient).await?;
    Ok(survey)
}

/// A Platform that somebody else made goes first all the same: a controller would bring everything back. What `grant` added beside roles
/// that no run wrote goes with the platform that it was added for.
async fn add_what_others_installed(survey: &mut Survey, platform: &str, reader: &dyn Reader) -> Result<(), Error> {
    let key =
        ObjectKey { cluster: ClusterKey::host(), gvk: install::platform_kind(), namespace: None, name: platform.to_owned() };
    if !survey.controller.iter().any(|found| found.key == key)
        && let Some(object) = plan::read(reader, &key).await?
    {
        let note =
            Some("no run made it; its controller stays where no run installed it, and brings nothing back without it".to_owned());
        survey.controller.insert(0, Found { key, object, note, stays: None });
    }
    let granted = format!("{}={}", keys::PART, keys::PART_CONTROLLER);
    let is_nobodys = |found: &Found| found.key.name == rights::GRANTED && found.object.label(keys::PLATFORM).is_none();
    for gvk in install::kinds() {
        let found = list(reader, &gvk, &granted).await?;
        survey.rights.extend(found.into_iter().filter(is_nobodys));
    }
    Ok(())
}

/// What is found besides and belongs to nothing that is there.
async fn orphans(found: Vec<Found>, survey: &Survey, reader: &dyn Reader) -> Result<Vec<Found>, Error> {
    let known: BTreeSet<&str> = survey.all().filter_map(|found| found.object.uid()).collect();
    let mut owners = Owners::new(reader);
    let mut orphans = Vec::new();
    for found in found.into_iter().filter(|found| found.object.uid().is_none_or(|uid| !known.contains(uid))) {
        if owners.living(&found.object).await?.is_none() {
            orphans.push(Found { note: Some("what it belonged to is gone".to_owned()), ..found });
        }
    }
    Ok(orphans)
}

/// Says of namespaces whether they hold what is not the platform's.
async fn tell_what_stays(survey: &mut Survey, plain: &Ports, patient: &Ports) -> Result<(), Error> {
    for found in survey.foundation.iter_mut().filter(|found| found.key.gvk == wanted::namespace_kind()) {
        let looked = survey.scope.inside(&found.key.name, plain, patient).await?;
        found.stays = content::in_the_way(&looked, &survey.selector);
        found.note = found.stays.as_ref().map(|why| format!("stays: {why}"));
    }
    Ok(())
}

fn is_generated(found: &Found) -> bool {
    found.object.label(keys::RGD_NAME).is_some()
}

fn noted(found: Vec<Found>, note: &str) -> impl Iterator<Item = Found> {
    found.into_iter().map(move |found| Found { note: Some(note.to_owned()), ..found })
}

/// All objects of a kind with a label; none where the kind is not served.
pub(crate) async fn list(reader: &dyn Reader, gvk: &GroupVersionKind, selector: &str) -> Result<Vec<Found>, Error> {
    let query = Query { cluster: ClusterKey::host(), gvk: gvk.clone(), namespace: None, selector: selector.to_owned() };
    Ok(ask(reader, &query).await?)
}

/// The same for several kinds.
async fn list_all(
    reader: &dyn Reader,
    kinds: impl IntoIterator<Item = &GroupVersionKind>,
    selector: &str,
) -> Result<Vec<Found>, Error> {
    let mut all = Vec::new();
    for gvk in kinds {
        all.extend(list(reader, gvk, selector).await?);
    }
    Ok(all)
}

/// The kinds that these definitions define.
fn all_defined(definitions: &[Found]) -> BTreeSet<GroupVersionKind> {
    definitions.iter().filter_map(|found| defines(&found.object)).collect()
}

/// What a list answers; none where the kind is not served.
pub(crate) async fn ask(reader: &dyn Reader, query: &Query) -> Result<Vec<Found>, ReadError> {
    let objects = match reader.list(query).await {
        Err(ReadError::NotServed(_)) => return Ok(Vec::new()),
        answer => answer?,
    };
    // Items of a list may come without their type.
    let found = |object: Object| {
        let key = ObjectKey {
            cluster: ClusterKey::host(),
            gvk: query.gvk.clone(),
            namespace: object.namespace().map(str::to_owned),
            name: object.name().to_owned(),
        };
        Found { key, object, note: None, stays: None }
    };
    Ok(objects.into_iter().map(found).collect())
}

/// The kind that a definition defines, for guards.
pub(crate) fn defined(object: &Object) -> Option<GroupVersionKind> {
    if is_definition(object) { defines(object) } else { None }
}

/// The kind that a CRD stores, in the version that it stores it in.
pub(super) fn stored(crd: &Object) -> Option<GroupVersionKind> {
    let text = |path: &[&str]| crd.at(path).and_then(Value::as_str);
    let versions = crd.at(&["spec", "versions"]).and_then(Value::as_array)?;
    let stored = versions.iter().find(|version| version["storage"] == true)?;
    Some(GroupVersionKind::new(text(&["spec", "group"])?, stored["name"].as_str()?, text(&["spec", "names", "kind"])?))
}

fn is_definition(object: &Object) -> bool {
    object.at(&["spec", "schema", "kind"]).is_some()
}

/// The kind that a definition defines.
fn defines(object: &Object) -> Option<GroupVersionKind> {
    let text = |name: &str| object.at(&["spec", "schema", name]).and_then(Value::as_str);
    Some(GroupVersionKind::new(text("group").unwrap_or(rgd::KRO_GROUP), text("apiVersion")?, text("kind")?))
}

/// Sorts definitions so that each comes before those whose kinds it makes; what defines nothing comes last.
pub(crate) fn users_first(mut rest: Vec<Found>) -> Vec<Found> {
    let mut sorted = Vec::with_capacity(rest.len());
    while !rest.is_empty() {
        let made: BTreeSet<GroupVersionKind> = rest.iter().flat_map(|found| makes(&found.object)).collect();
        let is_free = |found: &Found| defines(&found.object).is_some_and(|gvk| !made.contains(&gvk));
        let next = rest.iter().position(is_free);
        // A circle cannot be; if there is one all the same, it goes in the order of the list.
        let next = next.or_else(|| rest.iter().position(|found| is_definition(&found.object))).unwrap_or(0);
        sorted.push(rest.remove(next));
    }
    sorted
}

fn makes(object: &Object) -> Vec<GroupVersionKind> {
    let resources = object.at(&["spec", "resources"]).and_then(Value::as_array);
    let templates = resources.into_iter().flatten().filter_map(|resource| resource.get("template").cloned());
    templates.filter_map(|template| Object::from_value(template)?.gvk()).collect()
}

/// The instances of a platform's definitions that no other instance made.
pub(crate) async fn tops(platform: &str, reader: &dyn Reader) -> Result<Vec<Found>, Error> {
    let selector = naming::platform_selector(platform);
    let definitions = list_all(reader, &definition_kinds(), &selector).await?;
    let mut tops = list_all(reader, &all_defined(&definitions), &selector).await?;
    // What was torn from its instance was below it, and says nothing of which distribution this is.
    tops.retain(|found| found.object.label(keys::INSTANCE_ID).is_none());
    Ok(tops)
}
