//! Component and Resource: what was found goes into the status.

use std::sync::Arc;

use plinth_api::delivery::{ComponentSpec, RepositorySpec, ResourceSpec};
use plinth_releasechannel::{ComponentRepository, ComponentVersion};
use serde_json::Value;

use super::{
    additional, component,
    reconcile::{Delivery, Kind, Pass, spec},
    report::{End, Failed, Reason},
    resource,
    sources::{Credentials, failed},
};

/// Longest path of references that a Resource may name.
const LONGEST_PATH: usize = 64;

impl Delivery {
    /// Finds the version and proves its descriptor.
    pub(super) async fn component(&self, pass: &mut Pass<'_>) -> End {
        let spec: ComponentSpec = spec(pass.object)?;
        let verify = pass.object.spec().get("verify").and_then(Value::as_array);
        if verify.is_some_and(|verify| !verify.is_empty()) {
            // Saying Ready without having verified would be worse than not being Ready.
            let message = "spec.verify: this build does not verify signatures of Components yet";
            return Err(Failed::wrong(Reason::GetComponentVersionFailed, message));
        }
        let parent = self.parent(pass, Kind::Repository, &spec.repository_ref.name, Reason::GetRepositoryFailed).await?;
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
        let wanted = ComponentVersion::new(spec.component, version);
        let found = repository.descriptor(&wanted).await.map_err(|error| failed(Reason::GetComponentVersionFailed, &error))?;
        let info = resource::component_info(&wanted, &parent_spec.repository_spec, found.digest.as_str());
        pass.fields.insert("component".into(), info);
        Ok(format!("found {wanted}"))
    }

    /// Finds the resource, says where it is, and computes the additional fields.
    pub(super) async fn resource(&self, pass: &mut Pass<'_>) -> End {
        let spec: ResourceSpec = spec(pass.object)?;
        let parent = self.parent(pass, Kind::Component, &spec.component_ref.name, Reason::GetComponentVersionFailed).await?;
        let credentials = self.credentials(pass, Some(&parent)).await?;
        let (repository, mut here) = self.located(parent.status().get("component"), &credentials)?;
        let path = &spec.resource.by_reference.reference_path;
        if path.len() > LONGEST_PATH {
            return Err(Failed::wrong(Reason::GetReferenceFailed, format!("referencePath is longer than {LONGEST_PATH}")));
        }
        let read = |here: ComponentVersion| {
            let repository = Arc::clone(&repository);
            async move {
                let found = repository.descriptor(&here).await;
                found.map_err(|error| failed(Reason::GetComponentVersionFailed, &error))
            }
        };
        let mut found = read(here.clone()).await?;
        for identity in path {
            here = resource::follow(&found.descriptor, identity)?;
            found = read(here.clone()).await?;
        }
        let index = resource::find(&found.descriptor, &spec.resource.by_reference)?;
        let specification = repository.specification();
        let described = resource::describe(&found.descriptor, index, &specification, &*self.images);
        pass.fields.insert("component".into(), resource::component_info(&here, &specification, found.digest.as_str()));
        pass.fields.insert("resource".into(), described.status);
        if described.unreachable {
            let message = format!("the image lies inside {here} and no registry serves it: no node could pull it");
            return Err(Failed::retry(Reason::ResourceNotSynced, message));
        }
        let fields = spec.additional_status_fields.unwrap_or_default();
        pass.fields.insert("additional".into(), additional::evaluate(&fields, &described.variable)?);
        Ok(format!("found in {here}"))
    }

    /// The repository and component version that a status names.
    pub(super) fn located(
        &self,
        info: Option<&Value>,
        credentials: &Credentials,
    ) -> Result<(Arc<dyn ComponentRepository>, ComponentVersion), Failed> {
        let text = |field: &str| info.and_then(|info| info[field].as_str()).map(str::to_owned);
        let (Some(name), Some(version)) = (text("component"), text("version")) else {
            return Err(Failed::wait(Reason::ResourceIsNotAvailable, "the component version is not known yet"));
        };
        let specification = info.map(|info| info["repositorySpec"].clone()).unwrap_or_default();
        Ok((self.sources.open(&specification, credentials)?, ComponentVersion::new(name, version)))
    }
}
