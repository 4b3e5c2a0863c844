//! Component and Resource: what was found goes into the status.

use std::{sync::Arc, time::Duration};

use plinth_api::{
    GroupVersionKind, Object, ObjectKey,
    delivery::{ComponentSpec, RepositorySpec, ResourceSpec, SignatureRef},
};
use plinth_releasechannel::{ComponentRepository, ComponentVersion, Descriptor, normalise, signature::Key};
use serde_json::Value;

use super::{
    additional, component,
    kind::Kind,
    reconcile::{Delivery, Pass, spec},
    report::{End, Failed, Reason},
    resource,
    sources::{Credentials, failed},
    verify,
};

/// Longest path of references that a Resource may name.
const LONGEST_PATH: usize = 64;

/// A component version with its proven descriptor.
pub(super) struct Located {
    pub(super) repository: Arc<dyn ComponentRepository>,
    pub(super) version: ComponentVersion,
    pub(super) descriptor: Arc<Descriptor>,
}

impl Delivery {
    /// Finds the version, proves its descriptor, and its signatures where they are asked for.
    pub(super) async fn component(&self, pass: &mut Pass<'_>) -> End {
        let spec: ComponentSpec = spec(pass.object)?;
        let parent = self.known_parent(pass, Kind::Repository, &spec.repository_ref.name, Reason::GetRepositoryFailed).await?;
        let parent_spec: RepositorySpec = super::reconcile::spec(&parent)?;
        let credentials = self.credentials(pass, Some(&parent)).await?;
        let repository = self.sources.open(&parent_spec.repository_spec, &credentials)?;
        let there = if component::needs_list(&spec) {
            repository.versions(&spec.component).await.map_err(|error| failed(Reason::CheckVersionFailed, &error))?
        } else {
            Vec::new()
        };
        let current = pass.fields.get("component").filter(|found| found["component"] == spec.component.as_str());
        let current = current.and_then(|found| found["version"].as_str()).map(str::to_owned);
        let version = component::choose(&spec, &there, current.as_deref())?;
        let wanted = ComponentVersion::new(spec.component.as_str(), version.as_str());
        let found = repository.descriptor(&wanted).await.map_err(|error| failed(Reason::GetComponentVersionFailed, &error))?;
        if !spec.verify.is_empty() {
            let keys = self.keys(pass.key, &spec.verify).await?;
            verify::check(&found.descriptor, &keys, since_epoch(self.world.clock.now()))?;
        }
        let info = resource::component_info(&wanted, &parent_spec.repository_spec, &normalise::digest(&found.descriptor));
        pass.fields.insert("component".into(), info);
        Ok(format!("Applied version {version}"))
    }

    /// The key of each signature that has to be right.
    async fn keys(&self, component: &ObjectKey, wanted: &[SignatureRef]) -> Result<Vec<(String, Key)>, Failed> {
        let mut keys = Vec::new();
        for wanted in wanted {
            let key = match verify::place(wanted)? {
                verify::KeyPlace::Value(text) => verify::key(text).map_err(|reason| {
                    let message = format!("spec.verify: the key of {:?} cannot be used: {reason}", wanted.signature);
                    Failed::wrong(Reason::GetComponentVersionFailed, message)
                })?,
                verify::KeyPlace::Secret(name) => self.key_in_secret(component, name, &wanted.signature).await?,
            };
            keys.push((wanted.signature.clone(), key));
        }
        Ok(keys)
    }

    async fn key_in_secret(&self, component: &ObjectKey, name: &str, signature: &str) -> Result<Key, Failed> {
        let gvk = GroupVersionKind::new("", "v1", "Secret");
        let secret = ObjectKey { gvk, name: name.to_owned(), ..component.clone() };
        let retry = |message: String| Failed::retry(Reason::GetComponentVersionFailed, format!("spec.verify: {message}"));
        // Read, not watched: a watch would hold every Secret of the cluster in memory.
        let found = self.world.reader.get(&secret).await.map_err(|error| retry(error.to_string()))?;
        let found = found.ok_or_else(|| retry(format!("{secret} does not exist")))?;
        verify::key_in_secret(found.0.get("data"), signature).map_err(|reason| retry(format!("{secret} {reason}")))
    }

    /// Finds the resource, says where it is, and computes the additional fields.
    pub(super) async fn resource(&self, pass: &mut Pass<'_>) -> End {
        let spec: ResourceSpec = spec(pass.object)?;
        let parent = self.parent(pass, Kind::Component, &spec.component_ref.name, Reason::GetComponentVersionFailed).await?;
        let credentials = self.credentials(pass, Some(&parent)).await?;
        let root = self.located(parent.status().get("component"), &credentials).await?;
        let found = follow_path(root, &spec, is_verified(&parent)).await?;
        let index = resource::find(&found.descriptor, &spec.resource.by_reference)?;
        if spec.verification_policy.as_deref() != Some("Never") {
            resource::check_digest(&found.descriptor, index)?;
        }
        let specification = found.repository.specification();
        let described = resource::describe(&found.descriptor, index, &specification, &*self.images);
        let info = resource::component_info(&found.version, &specification, &normalise::digest(&found.descriptor));
        pass.fields.insert("component".into(), info);
        pass.fields.insert("resource".into(), described.status);
        if described.unreachable {
            let message = format!("the image lies inside {} and no registry serves it: no node could pull it", found.version);
            return Err(Failed::retry(Reason::ResourceNotSynced, message));
        }
        let fields = spec.additional_status_fields.unwrap_or_default();
        pass.fields.insert("additional".into(), additional::evaluate(&fields, &described.variable)?);
        Ok(format!("Applied version {}", found.descriptor.resources[index].version))
    }

    /// The repository and component version that a status names. What is there now has to be what the status is about: a version that was
    /// published again with other content is looked at by its Component first, which verifies it.
    pub(super) async fn located(&self, info: Option<&Value>, credentials: &Credentials) -> Result<Located, Failed> {
        let text = |field: &str| info.and_then(|info| info[field].as_str()).map(str::to_owned);
        let (Some(name), Some(version)) = (text("component"), text("version")) else {
            return Err(Failed::wait(Reason::ResourceIsNotAvailable, "the component version is not known yet"));
        };
        let specification = info.map(|info| info["repositorySpec"].clone()).unwrap_or_default();
        let repository = self.sources.open(&specification, credentials)?;
        let version = ComponentVersion::new(name, version);
        let found = repository.descriptor(&version).await;
        let descriptor = found.map_err(|error| failed(Reason::GetComponentVersionFailed, &error))?.descriptor;
        let known = info.and_then(|info| verify::digest_in(&info["digest"]));
        if known.is_some_and(|known| normalise::has_digest(&descriptor, &known) == Ok(false)) {
            let message =
                format!("{version} was published again with other content; its Component looks at it at its next interval");
            return Err(Failed::retry(Reason::ComponentDriftResolutionInProgress, message));
        }
        Ok(Located { repository, version, descriptor })
    }
}

/// Follows the references. Below a Component with verified signatures every step is proven by the digest in its parent.
async fn follow_path(root: Located, spec: &ResourceSpec, is_verified: bool) -> Result<Located, Failed> {
    let path = &spec.resource.by_reference.reference_path;
    if path.len() > LONGEST_PATH {
        return Err(Failed::wrong(Reason::GetReferenceFailed, format!("referencePath is longer than {LONGEST_PATH}")));
    }
    let mut here = root;
    for identity in path {
        let reference = resource::follow(&here.descriptor, identity)?.clone();
        let version = ComponentVersion::new(reference.component.as_str(), reference.version.as_str());
        let found = here.repository.descriptor(&version).await;
        let descriptor = found.map_err(|error| failed(Reason::GetComponentVersionFailed, &error))?.descriptor;
        if is_verified {
            resource::check_reference(&reference, &descriptor)?;
        }
        here = Located { version, descriptor, ..here };
    }
    Ok(here)
}

/// Whether its signatures are verified.
pub(super) fn is_verified(component: &Object) -> bool {
    component.spec().get("verify").and_then(Value::as_array).is_some_and(|verify| !verify.is_empty())
}

fn since_epoch(now: jiff::Timestamp) -> Duration {
    Duration::from_secs(u64::try_from(now.as_second()).unwrap_or_default())
}
