//! From a Platform to a release: which version, what is in it, and what is asked of it.

use std::{collections::BTreeMap, path::Path, sync::Arc};

use plinth_api::{Object, ObjectKey, lock::LockedRef, platform::PlatformSpec};
use plinth_bootstrap::{Choice, Content, Distribution, Manifest, Settings, distribution, plan, settings::Way};
use plinth_engine::{naming::keys, schema::builtin};
use plinth_releasechannel::{Channel, Selection, versions};
use serde_json::Value;

use super::{
    Platforms, of_error,
    policy::{self, Policy},
    secrets,
};
use crate::delivery::{
    report::{Failed, Reason},
    sources::Credentials,
};

/// How long one step of a run may wait for the cluster.
const PATIENCE: std::time::Duration = std::time::Duration::from_mins(1);

/// A release with what a Platform asks of it.
pub(super) struct Loaded {
    /// The component version that the channel is.
    pub(super) release: Arc<LockedRef>,
    /// A higher version that is offered.
    pub(super) next: Option<String>,
    pub(super) content: Content,
    pub(super) distribution: Distribution,
    pub(super) settings: Settings,
}

impl Platforms {
    /// Reads the channel, as far as that is needed: a release that is known already is not read again.
    pub(super) async fn load(
        &self,
        key: &ObjectKey,
        platform: &Object,
        spec: &PlatformSpec,
        installed: Option<&LockedRef>,
        before: Option<&Arc<Loaded>>,
    ) -> Result<Loaded, Failed> {
        let (mut spec, credentials) = secrets::read(&self.world, &key.cluster, spec.clone()).await?;
        let (version, next) = self.choose(&spec, &credentials, installed).await?;
        if let Some(before) = before.filter(|before| version.as_ref() == Some(&before.release.version)) {
            let Loaded { release, content, distribution, settings, .. } = before.as_ref();
            let (content, distribution, settings) = (content.clone(), distribution.clone(), settings.clone());
            return Ok(Loaded { release: Arc::clone(release), next, content, distribution, settings });
        }
        if version.is_some() {
            spec.source.version = version;
        }
        let channel = self.sources.release(&spec, &selection(&spec), Path::new("/"), &credentials).await?;
        let images = Arc::new(self.sources.localization(&channel).await?);
        let mut content = Content { images, ..Content::from(&channel) };
        let settings = settings(platform, &spec, &channel);
        let choice = spec.distribution.as_ref().map(|choice| Choice { name: choice.name.clone(), range: choice.version.clone() });
        let distribution = distribution::choose(&content, choice.as_ref()).map_err(|error| of_error(&error))?;
        content.manifests = manifests(&channel, &content, &distribution, &settings).await;
        Ok(Loaded { release: Arc::new(content.lock.root.clone()), next, content, distribution, settings })
    }

    /// The version that is to run and the one that is offered; `None` where the source alone decides.
    async fn choose(
        &self,
        spec: &PlatformSpec,
        credentials: &Credentials,
        installed: Option<&LockedRef>,
    ) -> Result<(Option<String>, Option<String>), Failed> {
        let wrong = |message: String| Failed::wrong(Reason::MarshalFailed, message);
        let (policy, window) = policy::read(spec.upgrade.as_ref()).map_err(wrong)?;
        let wanted = spec.source.version.as_deref();
        let found = match self.sources.versions(spec, Path::new("/"), credentials).await {
            // One version needs no list; whether it is there is seen when it is read.
            Err(_) if wanted.is_some_and(versions::is_exact) => return Ok((wanted.map(str::to_owned), None)),
            other => other?,
        };
        let Some((component, there)) = found else { return Ok((None, None)) };
        let installed = installed.filter(|installed| installed.name == component).map(|installed| installed.version.as_str());
        let moves = policy != Policy::Manual && window.is_none_or(|window| window.is_open(self.world.clock.now()));
        let policy::Choice { version, next } = policy::choose(wanted, installed, &there, policy, moves);
        match version {
            Some(version) => Ok((Some(version), next)),
            None => Err(no_version(&component, wanted.unwrap_or("*"), &there)),
        }
    }
}

fn no_version(component: &str, wanted: &str, there: &[String]) -> Failed {
    let there = if there.is_empty() { "none".to_owned() } else { there.join(", ") };
    if versions::Constraint::parse(wanted).is_err() {
        let message = format!("`{wanted}` is not a range of versions of {component}; there are: {there}");
        return Failed::wrong(Reason::CheckVersionFailed, message);
    }
    // It may be published later.
    Failed::repair(Reason::CheckVersionFailed, format!("no version of {component} satisfies `{wanted}`; there are: {there}"))
}

fn selection(spec: &PlatformSpec) -> Selection {
    let distribution = spec.distribution.as_ref().map(|choice| (choice.name.clone(), choice.version.clone()));
    Selection { distribution, select: spec.select.clone(), labels: spec.labels.clone(), ..Selection::default() }
}

/// As `up` has them, but for what only it writes.
fn settings(platform: &Object, spec: &PlatformSpec, channel: &Channel) -> Settings {
    Settings {
        platform: platform.name().to_owned(),
        source: spec.source.channel.clone(),
        namespace: spec.namespace.clone(),
        values: spec.values.clone(),
        repository: channel.lock.repositories.first().cloned(),
        definitions: Vec::new(),
        hands_over: true,
        asked: platform.spec().as_object().cloned(),
        way: if platform.annotation(keys::ROLLBACK) == Some("true") { Way::Back } else { Way::On },
        allow_breaking: platform.annotation(keys::ALLOW_BREAKING_CHANGES) == Some("true"),
        unverified: channel.verification.switched_off.clone(),
        timeout: PATIENCE,
        ..Settings::default()
    }
}

/// What Deployers will apply, for its images. One that cannot be read is said by its Deployer.
async fn manifests(
    channel: &Channel,
    content: &Content,
    distribution: &Distribution,
    settings: &Settings,
) -> BTreeMap<Manifest, Vec<Value>> {
    let mut manifests = BTreeMap::new();
    for (component, resource) in plan::manifests(content, distribution, settings, Arc::new(builtin().clone())) {
        if let Ok(documents) = channel.documents(&component, &resource).await {
            manifests.insert((component, resource), documents);
        }
    }
    manifests
}
