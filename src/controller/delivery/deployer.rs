//! Deployer: applies the manifests that a Resource holds, as one set.

use std::collections::{BTreeMap, BTreeSet};

use plinth_api::{
    GroupKind, GroupVersionKind, Object, ObjectKey,
    delivery::{ByReference, DeployerSpec},
};
use plinth_cluster::watch::WatchKey;
use plinth_engine::{
    health::{Verdict, judge},
    naming::keys,
    permission,
    ports::{Apply, Delete, Query, ReadError, WriteError},
};
use plinth_run::{Action, EventKind, Subject};
use serde_json::Value;
use sha2::{Digest, Sha256};

use super::{
    deploy::{self, MANAGER, Origin},
    found::Located,
    kind::Kind,
    manifests,
    reconcile::{Delivery, Pass, spec},
    report::{End, Failed, Reason},
    resource,
};

/// What a Deployer applied, by object: what is still so needs no write.
#[derive(Clone, Debug, Default, PartialEq)]
pub(super) struct Memory {
    /// What was fetched last, so that an unchanged resource is not fetched again.
    manifest: Option<Manifest>,
    applied: BTreeMap<ObjectKey, Applied>,
    /// How each object was when that was told last.
    told: BTreeMap<ObjectKey, Verdict>,
}

/// The objects of a resource.
#[derive(Clone, Debug, PartialEq)]
struct Manifest {
    /// What they were made from.
    input: String,
    origin: Origin,
    objects: Vec<Object>,
}

#[derive(Clone, Debug, PartialEq)]
struct Applied {
    input: String,
    uid: String,
    generation: i64,
}

impl Delivery {
    /// Applies what is served, defers the rest, prunes after a complete pass.
    pub(super) async fn deployer(&self, pass: &mut Pass<'_>) -> End {
        let spec: DeployerSpec = spec(pass.object)?;
        let (resource_key, warning) = self.resource_of(pass, &spec).await?;
        let mut memory = self.deployed(pass.key);
        let resource = match self.ready_object(pass, resource_key, Reason::GetResourceFailed).await {
            Ok(resource) => resource,
            Err(failed) => return Err(self.keep(pass, memory).await.err().unwrap_or(failed)),
        };
        let (origin, manifest) = self.manifest(pass, &resource, &mut memory).await?;
        let (wanted, applied) = self.apply_manifest(pass, manifest, &origin, &mut memory).await?;
        if !wanted.deferred.is_empty() {
            return Err(Failed::wait(Reason::ResourceNotSynced, deploy::waits_for(&wanted.deferred)));
        }
        self.prune(pass, &applied).await?;
        let warning = warning.map(|warning| format!("; {warning}")).unwrap_or_default();
        Ok(format!("Applied version {}: {} objects{warning}", origin.text("version"), applied.len()))
    }

    /// While its Resource is not Ready, such as when the registry is away, what was applied is put back where somebody changed it.
    /// Nothing is pruned.
    async fn keep(&self, pass: &mut Pass<'_>, mut memory: Memory) -> Result<(), Failed> {
        let Some(Manifest { origin, objects, .. }) = memory.manifest.clone() else { return Ok(()) };
        self.apply_manifest(pass, objects, &origin, &mut memory).await.map(drop)
    }

    async fn apply_manifest(
        &self,
        pass: &mut Pass<'_>,
        manifest: Vec<Object>,
        origin: &Origin,
        memory: &mut Memory,
    ) -> Result<(deploy::Wanted, Vec<Object>), Failed> {
        let kinds: Vec<GroupVersionKind> = manifest.iter().filter_map(Object::gvk).collect();
        let schemas = self.world.schemas.of(&pass.key.cluster, &kinds).await;
        let schemas = schemas.map_err(|error| Failed::retry(Reason::ApplyFailed, error.to_string()))?;
        let wanted = deploy::wanted(pass.object, manifest, origin, &*schemas, &pass.key.cluster);
        pass.missing = wanted.deferred.keys().cloned().collect();
        self.write_parent(pass, &wanted).await?;
        let applied = self.apply_all(pass, &wanted, memory).await;
        self.remember_deployed(pass.key, memory.clone());
        let applied = applied?;
        pass.fields.insert("deployed".into(), deploy::deployed(&applied));
        Ok((wanted, applied))
    }

    /// Contracts 18: without a namespace the only Resource of that name is meant.
    async fn resource_of(&self, pass: &mut Pass<'_>, spec: &DeployerSpec) -> Result<(ObjectKey, Option<String>), Failed> {
        let name = &spec.resource_ref.name;
        let key = |namespace: String| ObjectKey {
            cluster: pass.key.cluster.clone(),
            gvk: Kind::Resource.gvk(),
            namespace: Some(namespace),
            name: name.clone(),
        };
        if let Some(namespace) = spec.resource_ref.namespace.clone().filter(|namespace| !namespace.is_empty()) {
            return Ok((key(namespace), None));
        }
        let query =
            Query { cluster: pass.key.cluster.clone(), gvk: Kind::Resource.gvk(), namespace: None, selector: String::new() };
        let all = self.list(&query).await.map_err(|error| Failed::retry(Reason::GetResourceFailed, error.to_string()))?;
        let mut namespaces: Vec<String> = all
            .iter()
            .filter(|object| object.name() == name)
            .filter_map(|object| object.namespace().map(str::to_owned))
            .collect();
        namespaces.sort();
        let found = match namespaces.as_slice() {
            [only] => Ok(key(only.clone())),
            [] => Err(Failed::wait(Reason::GetResourceFailed, format!("there is no Resource {name} in any namespace"))),
            several => Err(Failed::wait(
                Reason::GetResourceFailed,
                format!("resourceRef.namespace is missing, and Resource {name} is in {}", several.join(", ")),
            )),
        };
        // Another one of that name may come or go.
        pass.watch.lists.insert(query);
        let found = found?;
        let warning = format!("resourceRef.namespace is missing; {found} is taken, the only one of that name");
        self.warn_once(pass.key, warning.clone());
        Ok((found, Some(warning)))
    }

    fn warn_once(&self, key: &ObjectKey, message: String) {
        if self.deployed(key) != Memory::default() {
            return;
        }
        let (subject, reason) = (Some(Subject::root(key.clone())), "NamespaceMissing".to_owned());
        self.world.recorder.record(EventKind::Warning { subject, reason, message });
    }

    /// Images where they can be pulled; one that no resource describes is said once for each manifest.
    fn localize(&self, deployer: &ObjectKey, origin: &Origin, objects: &mut [Object]) {
        let mut leaks = BTreeSet::new();
        for object in objects {
            let mut value = std::mem::take(object).into_value();
            leaks.extend(self.images.localize(&mut value));
            *object = Object::from_value(value).unwrap_or_default();
        }
        for image in leaks {
            let (resource, component) = (origin.text("name"), &origin.component);
            let message = format!("no resource describes the image {image}, which {resource} of {component} names");
            let subject = Some(Subject::root(deployer.clone()));
            self.world.recorder.record(EventKind::Warning { subject, reason: "Leak".to_owned(), message });
        }
    }

    async fn manifest(
        &self,
        pass: &mut Pass<'_>,
        resource: &Object,
        memory: &mut Memory,
    ) -> Result<(Origin, Vec<Object>), Failed> {
        let origin = Origin::of(resource);
        let input = hex(&[resource.status()["component"].to_string().as_bytes(), origin.resource.to_string().as_bytes()]);
        // Which configuration it would be read with is told all the same.
        let credentials = self.credentials(pass, Some(resource)).await?;
        if let Some(known) = memory.manifest.as_ref().filter(|known| known.input == input) {
            return Ok((origin, known.objects.clone()));
        }
        let Located { repository, version, descriptor } = self.located(resource.status().get("component"), &credentials).await?;
        let index = resource::find(&descriptor, &identity(&origin.resource))?;
        let bytes = self.sources.read(&*repository, &descriptor, &descriptor.resources[index], &credentials).await?;
        let mut objects = manifests::objects(&format!("resource {} of {version}", origin.text("name")), &bytes)?;
        self.localize(pass.key, &origin, &mut objects);
        memory.manifest = Some(Manifest { input, origin: origin.clone(), objects: objects.clone() });
        Ok((origin, objects))
    }

    /// The set's parent first: everything that may come to exist can be found again.
    async fn write_parent(&self, pass: &Pass<'_>, wanted: &deploy::Wanted) -> Result<(), Failed> {
        let mut groups = deploy::remembered_kinds(pass.object);
        groups.extend(wanted.objects.iter().map(|(key, _)| key.gvk.group_kind()));
        let mut namespaces = deploy::remembered_namespaces(pass.object);
        namespaces.extend(wanted.objects.iter().filter_map(|(key, _)| key.namespace.clone()));
        self.write_parent_of(pass, &groups, &namespaces).await
    }

    async fn write_parent_of(
        &self,
        pass: &Pass<'_>,
        groups: &BTreeSet<GroupKind>,
        namespaces: &BTreeSet<String>,
    ) -> Result<(), Failed> {
        let parent = deploy::parent(pass.object, groups, namespaces);
        if deploy::has_parent(pass.object, &parent) {
            return Ok(());
        }
        let apply = Apply { key: pass.key.clone(), object: parent, manager: MANAGER.to_owned(), force: true, subresource: None };
        let written = self.world.applier.apply(&apply).await;
        let written = written.map_err(|error| Failed::retry(Reason::ApplyFailed, error.to_string()))?;
        self.wrote(pass.key, written);
        Ok(())
    }

    async fn apply_all(&self, pass: &mut Pass<'_>, wanted: &deploy::Wanted, memory: &mut Memory) -> Result<Vec<Object>, Failed> {
        let mut order: Vec<&(ObjectKey, Object)> = wanted.objects.iter().collect();
        // The manifest's own order else.
        order.sort_by_key(|(key, _)| deploy::rank(&key.gvk.kind));
        let mut applied = Vec::new();
        let mut troubles = Vec::new();
        let mut missing = BTreeSet::new();
        for (key, object) in order {
            pass.watch.objects.insert(key.clone());
            missing.extend(self.world.index.refused(&WatchKey::of(key)).as_ref().and_then(permission::of_read));
            let live = match self.get(key).await {
                Err(error @ ReadError::Forbidden { .. }) => {
                    missing.extend(permission::of_read(&error));
                    continue;
                }
                other => other.ok().flatten(),
            };
            if let Some(owner) = live.as_ref().and_then(|live| deploy::owner_of(live, pass.object)) {
                troubles.push(format!("{key} belongs to {owner} and is left alone"));
                continue;
            }
            match self.apply_one(pass.key, key, object, live, memory).await {
                Ok(object) => {
                    self.tell_of(pass.key, key, &object, memory);
                    applied.push(object);
                }
                Err(WriteError::NotServed(gvk)) => {
                    pass.missing.insert(gvk.clone());
                    troubles.push(format!("{gvk} is not served"));
                }
                Err(error @ WriteError::Forbidden { .. }) => missing.extend(permission::of_write(&error, object)),
                Err(error) => troubles.push(error.to_string()),
            }
        }
        memory.applied.retain(|key, _| wanted.objects.iter().any(|(wanted, _)| wanted == key));
        memory.told.retain(|key, _| wanted.objects.iter().any(|(wanted, _)| wanted == key));
        match (troubles.is_empty(), missing.is_empty()) {
            (true, true) => Ok(applied),
            (true, false) => Err(Failed::unpermitted(missing)),
            (false, _) => Err(Failed { missing, ..Failed::retry(Reason::ApplyFailed, troubles.join("; ")) }),
        }
    }

    async fn apply_one(
        &self,
        deployer: &ObjectKey,
        key: &ObjectKey,
        object: &Object,
        live: Option<Object>,
        memory: &mut Memory,
    ) -> Result<Object, WriteError> {
        // With its key, so that a journal does not tell two equal secrets by it.
        let text = serde_json::to_vec(&object.0).expect("JSON can be written");
        let input = hex(&[key.to_string().as_bytes(), &text]);
        if let (Some(live), Some(applied)) = (&live, memory.applied.get(key))
            && applied.input == input
            && is_as_applied(live, object, applied)
        {
            return Ok(live.clone());
        }
        let apply =
            Apply { key: key.clone(), object: object.clone(), manager: MANAGER.to_owned(), force: true, subresource: None };
        let written = self.world.applier.apply(&apply).await?;
        let uid = written.uid().unwrap_or_default().to_owned();
        let generation = written.generation();
        let action = match &live {
            None => Action::Create,
            Some(live) if live.resource_version() == written.resource_version() => Action::Unchanged,
            Some(_) => Action::Configure,
        };
        self.world.recorder.record(EventKind::ChangeApplied {
            subject: Subject { parent: Some(deployer.clone()), ..Subject::root(key.clone()) },
            action,
            digest: input.clone(),
            generation,
            result: None,
            uid: Some(uid.clone()),
        });
        memory.applied.insert(key.clone(), Applied { input, uid, generation });
        self.wrote(key, written.clone());
        Ok(written)
    }

    /// Tells how a deployed object is, where that is news. A change of it brings the next pass.
    fn tell_of(&self, deployer: &ObjectKey, key: &ObjectKey, object: &Object, memory: &mut Memory) {
        let verdict = judge(object);
        if memory.told.insert(key.clone(), verdict.clone()).as_ref() == Some(&verdict) {
            return;
        }
        let subject = Subject { parent: Some(deployer.clone()), ..Subject::root(key.clone()) };
        let Verdict { health, reason, message, .. } = verdict;
        self.world.recorder.record(EventKind::HealthChanged { subject, health, reason, message, causes: Vec::new() });
    }

    async fn prune(&self, pass: &Pass<'_>, applied: &[Object]) -> Result<(), Failed> {
        let uids: BTreeSet<String> = applied.iter().filter_map(|object| object.uid().map(str::to_owned)).collect();
        let failed = |error: String| Failed::retry(Reason::ApplyFailed, error);
        let members = self.members(pass.key, pass.object).await.map_err(|error| failed(error.to_string()))?;
        for (key, uid) in deploy::orphans(pass.object, &members, &uids, &pass.key.cluster) {
            self.delete(pass.key, key, uid).await.map_err(|error| failed(error.to_string()))?;
        }
        let groups = applied.iter().filter_map(Object::gvk).map(|gvk| gvk.group_kind()).collect();
        let namespaces = applied.iter().filter_map(|object| object.namespace().map(str::to_owned)).collect();
        self.write_parent_of(pass, &groups, &namespaces).await
    }

    /// All objects that carry the set's label, among the kinds that the Deployer remembers.
    async fn members(&self, key: &ObjectKey, deployer: &Object) -> Result<Vec<Object>, ReadError> {
        let selector = format!("{}={}", keys::APPLYSET_PART_OF, deploy::set_id(deployer.name()));
        let mut members = Vec::new();
        for kind in deploy::remembered_kinds(deployer) {
            let gvk = GroupVersionKind::new(kind.group, "", kind.kind);
            let query = Query { cluster: key.cluster.clone(), gvk, namespace: None, selector: selector.clone() };
            match self.world.reader.list(&query).await {
                Ok(found) => members.extend(found),
                // A kind that is gone has no objects.
                Err(ReadError::NotServed(_)) => {}
                Err(error) => return Err(error),
            }
        }
        Ok(members)
    }

    async fn delete(&self, deployer: &ObjectKey, key: ObjectKey, uid: String) -> Result<(), WriteError> {
        self.world.applier.delete(&Delete { key: key.clone(), uid: Some(uid.clone()) }).await?;
        self.world.recorder.record(EventKind::ChangeApplied {
            subject: Subject { parent: Some(deployer.clone()), ..Subject::root(key) },
            action: Action::Delete,
            digest: String::new(),
            generation: 0,
            result: None,
            uid: Some(uid),
        });
        Ok(())
    }

    /// Deletes all members; answers with those that are still there.
    pub(super) async fn undeploy(
        &self,
        key: &ObjectKey,
        object: &Object,
    ) -> Result<Vec<String>, plinth_manager::reconcile::Failure> {
        let members = self.members(key, object).await?;
        for (member, uid) in deploy::orphans(object, &members, &BTreeSet::new(), &key.cluster) {
            self.delete(key, member, uid).await?;
        }
        let left = self.members(key, object).await?;
        Ok(left.iter().filter_map(|member| member.key(&key.cluster)).map(|key| key.to_string()).collect())
    }
}

/// Nobody changed what was applied: same object, same generation, and its labels and annotations are there. Kinds without a
/// generation are compared field by field.
fn is_as_applied(live: &Object, wanted: &Object, applied: &Applied) -> bool {
    let metadata = |object: &Object, field: &str| object.at(&["metadata", field]).cloned().unwrap_or_default();
    let same_metadata = ["labels", "annotations"].iter().all(|field| has_all(&metadata(live, field), &metadata(wanted, field)));
    let same_content = match live.generation() {
        0 => has_all(live.as_value(), wanted.as_value()),
        generation => generation == applied.generation,
    };
    live.uid() == Some(applied.uid.as_str()) && !live.is_terminating() && same_metadata && same_content
}

fn has_all(live: &Value, wanted: &Value) -> bool {
    match (live, wanted) {
        (Value::Object(live), Value::Object(wanted)) => {
            wanted.iter().all(|(key, wanted)| live.get(key).is_some_and(|live| has_all(live, wanted)))
        }
        (Value::Array(live), Value::Array(wanted)) => {
            live.len() == wanted.len() && live.iter().zip(wanted).all(|(live, wanted)| has_all(live, wanted))
        }
        (_, Value::Null) => true,
        _ => live == wanted,
    }
}

/// The identity of a resource as its status says.
fn identity(found: &Value) -> ByReference {
    let mut resource: BTreeMap<String, String> = found["extraIdentity"]
        .as_object()
        .map(|extra| extra.iter().filter_map(|(key, value)| Some((key.clone(), value.as_str()?.to_owned()))).collect())
        .unwrap_or_default();
    for field in ["name", "version"] {
        if let Some(text) = found[field].as_str().filter(|text| !text.is_empty()) {
            resource.insert(field.to_owned(), text.to_owned());
        }
    }
    ByReference { resource, reference_path: Vec::new() }
}

fn hex(parts: &[&[u8]]) -> String {
    let mut hasher = Sha256::new();
    for part in parts {
        hasher.update((part.len() as u64).to_be_bytes());
        hasher.update(part);
    }
    crate::hex(&hasher.finalize())
}
