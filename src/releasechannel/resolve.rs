//! From a SOURCE to a [`Channel`].

use std::path::{Path, PathBuf};
use std::sync::Arc;

use bytes::Bytes;
use futures::stream::{self, StreamExt};
use plinth_api::lock::{
    LockedComponent, LockedRef, LockedReference, LockedResource, LockedSignature, ReferenceTarget, ReleaseLock,
};
use plinth_api::platform::{API_VERSION, PlatformSpec};
use serde_json::Value;

use crate::channel::{Channel, ComponentText, RgdDocument};
use crate::closure::{Closure, Fallbacks, Node, Opener, Walk};
use crate::config::Configuration;
use crate::ctf::archive::gunzip_bytes;
use crate::descriptor::{Descriptor, Resource};
use crate::error::{ErrorKind, RepositoryError, ResolveError};
use crate::fetch::Fetcher;
use crate::open::{Opened, open};
use crate::options::{Limits, Options};
use crate::registry::Registries;
use crate::repository::{ComponentRepository, ComponentVersion};
use crate::selection::Selection;
use crate::signature::KeyRing;
use crate::source::{RepositoryRef, SourceRef};
use crate::text::TextError;
use crate::verify::verify;
use crate::{text, versions};

/// Resolves a source for an installation: everything that [`inspect`] does, and the RGDs, instances and scenarios are read and proven.
pub async fn resolve(source: &SourceRef, selection: &Selection, options: &Options) -> Result<Channel, ResolveError> {
    let mut channel = inspect(source, selection, options).await?;
    let documents = read_documents(&channel.closure, &channel.fetcher, &options.limits).await?;
    Documents { rgds: channel.rgds, instances: channel.instances, scenarios: channel.scenarios } = documents;
    Ok(channel)
}

/// Resolves a source for looking at it: finds the root's version, follows all references, proves every descriptor's bytes and writes down
/// the lock. No resource is read, so that a channel whose documents are no RGDs can be listed too. Nothing is written anywhere.
pub async fn inspect(source: &SourceRef, selection: &Selection, options: &Options) -> Result<Channel, ResolveError> {
    let options = &asked_for(source, options)?;
    let registries = Registries::for_run(options)?;
    let opened = open(source, &registries, options).await?;
    let selection = merged(selection, opened.platform.as_ref());
    // Resolvers lead to other places than the mirror.
    let resolvers = if options.mirror_only { &[][..] } else { &registries.configuration().resolvers };
    let fallbacks = Fallbacks::new(resolvers);
    let open = |reference: &RepositoryRef| crate::open::repository(reference, &registries, options);
    let root = find_root(&opened, &fallbacks, &open).await?;
    crate::selection::allows(&selection, &root.name, &root.version)?;
    let Opened { repositories, platform, .. } = opened;
    let repositories = crate::open::at_mirror(repositories, &registries, options)?;
    let walk = Walk { selection: &selection, limits: &options.limits, fallbacks: &fallbacks, open: &open };
    let mut closure = match Closure::walk(root.clone(), repositories.clone(), &walk).await {
        // With the versions that there are, where they can be had.
        Err(error @ ResolveError::Repository { .. }) if error.kind() == ErrorKind::NotFound && error.is_of_root() => {
            return Err(absent(&root, &repositories).await.unwrap_or(error));
        }
        walked => walked?,
    };
    crate::nested::fill(&mut closure, &root)?;
    let distribution = choose_distribution(&closure, selection.distribution.as_ref())?;
    let keys = KeyRing::load(options, registries.configuration())?;
    let verification = verify(&closure, &root, &keys, options.verify.unwrap_or_default(), now())?;
    let fetcher = Fetcher { registries, limits: options.limits.clone() };
    let lock = lock_of(&root, &closure);
    let mut remarks = remarks(&root, &closure, fetcher.registries.configuration());
    remarks.extend(fetcher.registries.remarks());
    let (rgds, instances, scenarios) = (Vec::new(), Vec::new(), Vec::new());
    Ok(Channel { lock, root, rgds, instances, scenarios, distribution, platform, verification, remarks, closure, fetcher })
}

/// The descriptor of a component version alone: nothing that it refers to is looked for, and no signature is.
pub async fn find_descriptor(source: &SourceRef, options: &Options) -> Result<Arc<Descriptor>, ResolveError> {
    let (root, repositories) = find_source_root(source, options).await?;
    let mut missing = None;
    for repository in &repositories {
        match repository.descriptor(&root).await {
            Ok(found) => return Ok(found.descriptor),
            Err(error) if error.kind() == ErrorKind::NotFound => missing = Some(error),
            Err(error) => return Err(error.into()),
        }
    }
    Err(missing.expect("an opened source has at least one repository").into())
}

/// Which component version a source means, and where it may be.
pub(crate) async fn find_source_root(
    source: &SourceRef,
    options: &Options,
) -> Result<(ComponentVersion, Vec<Arc<dyn ComponentRepository>>), ResolveError> {
    let options = &asked_for(source, options)?;
    let registries = Registries::for_run(options)?;
    let opened = open(source, &registries, options).await?;
    let resolvers = if options.mirror_only { &[][..] } else { &registries.configuration().resolvers };
    let fallbacks = Fallbacks::new(resolvers);
    let root = find_root(&opened, &fallbacks, &|reference| crate::open::repository(reference, &registries, options)).await?;
    Ok((root, opened.repositories))
}

/// The options with what SOURCE says, where it is a Platform file.
fn asked_for(source: &SourceRef, options: &Options) -> Result<Options, ResolveError> {
    let SourceRef::Path(path) = source else { return Ok(options.clone()) };
    crate::policy::with_platform(options, platform_file(path)?.as_ref(), &folder_of(path))
}

/// For the validity of certificates.
pub(crate) fn now() -> std::time::Duration {
    std::time::Duration::from_secs(u64::try_from(jiff::Timestamp::now().as_second()).unwrap_or_default())
}

/// A repository by its OCM specification, for Repository objects. Relative paths of archives are taken as they are.
pub fn repository_from_spec(specification: &Value, options: &Options) -> Result<Arc<dyn ComponentRepository>, ResolveError> {
    let reference = crate::source::RepositoryRef::from_value(specification)?;
    crate::open::repository(&reference, &Registries::new(options)?, options)
}

/// The Platform in this file, if the file is one; `None` where it is something else.
pub fn platform_file(path: &Path) -> Result<Option<PlatformSpec>, ResolveError> {
    const LIMIT: u64 = 4 << 20;
    let is_text = path.extension().is_some_and(|end| end == "yaml" || end == "yml" || end == "json");
    if !is_text || !path.is_file() {
        return Ok(None);
    }
    let bytes = crate::ctf::archive::read_file(path, LIMIT)?;
    let refuse = |reason: String| ResolveError::Option { option: path.display().to_string(), reason };
    let document: Value = text::document(&bytes).map_err(|error| misread(path, error))?;
    if document.get("kind").and_then(Value::as_str) != Some("Platform") {
        return Ok(None);
    }
    if document.get("apiVersion").and_then(Value::as_str) != Some(API_VERSION) {
        return Err(refuse(format!("a Platform file must have apiVersion {API_VERSION}")));
    }
    let spec = document.get("spec").cloned().unwrap_or_default();
    serde_json::from_value(spec).map(Some).map_err(|error| match spec_in(&bytes) {
        Err(placed) => misread(path, TextError { message: format!("spec: {}", placed.message), ..placed }),
        Ok(()) => refuse(format!("spec: {error}")),
    })
}

/// Reads the specification out of the text itself: its error has a place.
fn spec_in(bytes: &[u8]) -> Result<(), TextError> {
    #[derive(serde::Deserialize)]
    struct File {
        #[serde(rename = "spec")]
        _spec: PlatformSpec,
    }
    text::yaml::<File>(std::str::from_utf8(bytes).unwrap_or_default()).map(drop)
}

fn misread(path: &Path, error: TextError) -> ResolveError {
    ResolveError::Option { option: error.place_in(path.display()), reason: error.message }
}

/// Flags win over the Platform file.
fn merged(selection: &Selection, platform: Option<&PlatformSpec>) -> Selection {
    let mut merged = selection.clone();
    let Some(platform) = platform else { return merged };
    for (component, range) in &platform.select {
        merged.select.entry(component.clone()).or_insert_with(|| range.clone());
    }
    if merged.distribution.is_none() {
        merged.distribution = platform.distribution.as_ref().map(|choice| (choice.name.clone(), choice.version.clone()));
    }
    merged
}

async fn find_root(opened: &Opened, fallbacks: &Fallbacks, open: Opener<'_>) -> Result<ComponentVersion, ResolveError> {
    let component = match &opened.component {
        Some(component) => component.clone(),
        None => return the_only_root(opened).await,
    };
    match &opened.version {
        Some(version) if versions::is_exact(version) => exact(opened, ComponentVersion::new(component, version)).await,
        wanted => highest(opened, fallbacks, open, &component, wanted.as_deref()).await,
    }
}

/// The error for a version that is not there, where there are others.
async fn absent(root: &ComponentVersion, repositories: &[Arc<dyn ComponentRepository>]) -> Option<ResolveError> {
    let mut there = Vec::new();
    for repository in repositories {
        there.extend(repository.versions(&root.name).await.ok()?);
    }
    let (component, wanted) = (root.name.clone(), root.version.clone());
    (!there.is_empty()).then_some(ResolveError::NoVersion { component, wanted, there })
}

/// Somebody who read a version off a registry's tag means the version that the tag stands for.
async fn exact(opened: &Opened, asked: ComponentVersion) -> Result<ComponentVersion, ResolveError> {
    let meant = ComponentVersion::new(&asked.name, versions::from_tag(&asked.version));
    if meant == asked {
        return Ok(asked);
    }
    for repository in &opened.repositories {
        match (repository.descriptor(&asked).await, repository.descriptor(&meant).await) {
            (Ok(_), _) => return Ok(asked),
            (Err(_), Ok(_)) => return Ok(meant),
            (Err(_), Err(_)) => {}
        }
    }
    Ok(asked)
}

/// Looks in every repository in turn, then where resolvers say; the first that has a fitting version gives the root.
async fn highest(
    opened: &Opened,
    fallbacks: &Fallbacks,
    open: Opener<'_>,
    component: &str,
    wanted: Option<&str>,
) -> Result<ComponentVersion, ResolveError> {
    let mut there = Vec::new();
    let fits = |versions: &[String]| versions::pick(wanted, versions.iter().map(String::as_str));
    for repository in &opened.repositories {
        let versions = match repository.versions(component).await {
            Ok(versions) => versions,
            Err(error) if error.kind() == ErrorKind::NotFound => continue,
            Err(error) => return Err(error.into()),
        };
        if let Some(version) = fits(&versions) {
            return Ok(settled(repository.as_ref(), ComponentVersion::new(component, version)).await);
        }
        there.extend(versions);
    }
    for versions in fallbacks.versions(component, open).await? {
        if let Some(version) = fits(&versions) {
            return Ok(ComponentVersion::new(component, version));
        }
        there.extend(versions);
    }
    Err(ResolveError::no_version(component, wanted.unwrap_or("*"), there))
}

/// A tag with `.build-` in a prerelease can mean two versions: the descriptor decides (ocm.md 3.1).
async fn settled(repository: &dyn ComponentRepository, listed: ComponentVersion) -> ComponentVersion {
    if !versions::is_ambiguous(&listed.version) {
        return listed;
    }
    let literal = ComponentVersion::new(&listed.name, versions::to_tag(&listed.version));
    match (repository.descriptor(&listed).await, repository.descriptor(&literal).await) {
        (Err(_), Ok(_)) => literal,
        _ => listed,
    }
}

/// A shared registry often has no catalogue, or shows it to few: then somebody must say what is meant.
fn listed(components: Result<Option<Vec<String>>, RepositoryError>, place: &str) -> Result<Vec<String>, ResolveError> {
    let unlisted = |reason: String| ResolveError::Source { text: place.to_owned(), reason };
    match components {
        Ok(Some(components)) => Ok(components),
        Ok(None) => Err(unlisted("the registry does not list what it holds: name the component after `//`".to_owned())),
        Err(denied @ RepositoryError::Denied { .. }) => Err(unlisted(format!(
            "{denied}: name the component after `//`, or give a login that may list what the registry holds, by --ocm-config or docker's config.json"
        ))),
        Err(error) => Err(error.into()),
    }
}

/// In an archive with one channel: the component that no other refers to. Several versions of it: the highest release.
async fn the_only_root(opened: &Opened) -> Result<ComponentVersion, ResolveError> {
    const LISTED: usize = 10_000;
    let mut all = Vec::new();
    let mut referenced = std::collections::BTreeSet::new();
    for repository in &opened.repositories {
        let components = listed(repository.components().await, &opened.place)?;
        for component in components {
            for version in repository.versions(&component).await? {
                let at = settled(repository.as_ref(), ComponentVersion::new(&component, version)).await;
                let found = repository
                    .descriptor(&at)
                    .await
                    .map_err(|source| ResolveError::Repository { path: vec![at.clone()], source })?;
                referenced.extend(found.descriptor.references.iter().map(|reference| reference.component.clone()));
                all.push(at);
                if all.len() > LISTED {
                    return Err(ResolveError::Limit { what: format!("the content of {}", opened.place), limit: LISTED });
                }
            }
        }
    }
    let roots: Vec<ComponentVersion> = all.iter().filter(|at| !referenced.contains(&at.name)).cloned().collect();
    let mut names: Vec<&str> = roots.iter().map(|root| root.name.as_str()).collect();
    names.dedup();
    // plinth itself is in every bundle, beside the channel.
    if names.len() > 1 {
        names.retain(|name| *name != crate::program::COMPONENT);
    }
    match names.as_slice() {
        // Everything is referred to: there is a cycle, and following the references will find and print it.
        [] if !all.is_empty() => Ok(all.swap_remove(0)),
        [name] => {
            let own = roots.iter().filter(|root| root.name == *name);
            let there = own.map(|root| root.version.as_str()).collect::<Vec<_>>();
            let version = versions::pick(opened.version.as_deref(), there.iter().copied());
            version.map(|version| ComponentVersion::new(*name, version)).ok_or_else(|| {
                let there = there.iter().map(|version| (*version).to_owned()).collect();
                ResolveError::no_version(name, opened.version.as_deref().unwrap_or("*"), there)
            })
        }
        _ => {
            let choices = roots.iter().map(|root| format!("{}//{root}", opened.place)).collect();
            Err(ResolveError::Choice {
                question: format!("{} holds {} channels", opened.place, names.len()),
                choices,
                by: "write one of them as SOURCE",
            })
        }
    }
}

/// What chooses a distribution.
const CHOOSES: &str = "--distribution NAME[@RANGE] chooses";

fn choose_distribution(
    closure: &Closure,
    wanted: Option<&(String, Option<String>)>,
) -> Result<Option<ComponentVersion>, ResolveError> {
    let Some((name, range)) = wanted else { return Ok(None) };
    let is_named =
        |component: &ComponentVersion| component.name == *name || component.name.rsplit('/').next() == Some(name.as_str());
    let named: Vec<&ComponentVersion> = closure.nodes.keys().filter(|component| is_named(component)).collect();
    let mut names: Vec<&str> = named.iter().map(|component| component.name.as_str()).collect();
    names.dedup();
    match names.as_slice() {
        [] => {
            let choices = closure.nodes.keys().map(ToString::to_string).collect();
            Err(ResolveError::Choice { question: format!("the channel has no component `{name}`"), choices, by: CHOOSES })
        }
        [component] => {
            let there = named.iter().map(|component| component.version.as_str()).collect::<Vec<_>>();
            // Without a range a prerelease is as good as any, if it is the only one.
            let only = if let ([version], None) = (there.as_slice(), range) { Some((*version).to_owned()) } else { None };
            let version = only.or_else(|| versions::pick(range.as_deref(), there.iter().copied()));
            let none = || {
                let there = there.iter().map(|version| (*version).to_owned()).collect();
                ResolveError::no_version(component, range.as_deref().unwrap_or("*"), there)
            };
            version.map(|version| Some(ComponentVersion::new(*component, version))).ok_or_else(none)
        }
        several => {
            let choices = several.iter().map(|name| (*name).to_owned()).collect();
            Err(ResolveError::Choice { question: format!("several components are called `{name}`"), choices, by: CHOOSES })
        }
    }
}

struct Documents {
    rgds: Vec<RgdDocument>,
    instances: Vec<ComponentText>,
    scenarios: Vec<ComponentText>,
}

#[derive(Clone, Copy, PartialEq)]
enum Role {
    Rgd,
    Instance,
    Scenario,
}

/// What a resource is for bootstrap (contracts 1 and 7). `rgd-gz` and `rgd-oci` are other encodings of `rgd`, taken by name only.
fn role(resource: &Resource) -> Option<Role> {
    let name = resource.identity.name.as_str();
    match name {
        "rgd" => Some(Role::Rgd),
        "instance" => Some(Role::Instance),
        "scenario" => Some(Role::Scenario),
        _ if resource.kind.ends_with("rgd") && !name.ends_with("-gz") && !name.ends_with("-oci") => Some(Role::Rgd),
        _ => None,
    }
}

async fn read_documents(closure: &Closure, fetcher: &Fetcher, limits: &Limits) -> Result<Documents, ResolveError> {
    let wanted = closure.nodes.values().flat_map(|node| {
        node.descriptor.resources.iter().filter_map(move |resource| role(resource).map(|role| (node, resource, role)))
    });
    let reads = wanted.map(|(node, resource, role)| async move {
        let text = read_text(node, resource, role, fetcher, limits).await?;
        Ok::<_, ResolveError>((node.at(), resource.identity.name.clone(), role, text))
    });
    let reads: Vec<_> = reads.collect();
    let mut results = stream::iter(reads).buffered(limits.parallel.max(1));
    let mut documents = Documents { rgds: Vec::new(), instances: Vec::new(), scenarios: Vec::new() };
    while let Some(read) = results.next().await {
        let (component, resource, role, text) = read?;
        match role {
            Role::Rgd => documents.rgds.push(RgdDocument { component, resource, text }),
            Role::Instance => documents.instances.push(ComponentText { component, text }),
            Role::Scenario => documents.scenarios.push(ComponentText { component, text }),
        }
    }
    documents.rgds.sort_by(|a, b| (&a.component, &a.resource).cmp(&(&b.component, &b.resource)));
    Ok(documents)
}

async fn read_text(
    node: &Node,
    resource: &Resource,
    role: Role,
    fetcher: &Fetcher,
    limits: &Limits,
) -> Result<String, ResolveError> {
    let bytes = fetcher.read(node, resource).await?;
    let refuse =
        |reason: String| ResolveError::Document { component: node.at(), resource: resource.identity.to_string(), reason };
    let plain: Bytes = gunzip_bytes(&bytes, "the document", limits.document_bytes).map_err(|error| refuse(error.to_string()))?;
    if role == Role::Rgd {
        check_rgd(&plain).map_err(refuse)?;
    }
    String::from_utf8(plain.to_vec()).map_err(|_| refuse("it is not UTF-8 text".to_owned()))
}

/// Every document is a ResourceGraphDefinition of one of the two groups; anything else is refused (contracts 1).
fn check_rgd(bytes: &[u8]) -> Result<(), String> {
    let documents = text::yaml_documents(bytes).map_err(|error| format!("it is not YAML: {error}"))?;
    let documents: Vec<&Value> = documents.iter().filter(|document| !document.is_null()).collect();
    if documents.is_empty() {
        return Err("it holds no document".to_owned());
    }
    for (index, document) in documents.iter().enumerate() {
        let text = |key: &str| document.get(key).and_then(Value::as_str).unwrap_or_default();
        let group = text("apiVersion").split('/').next().unwrap_or_default();
        if text("kind") != "ResourceGraphDefinition" || !matches!(group, "kro.run" | "krop.opendefense.cloud") {
            return Err(format!(
                "document {} is a `{} {}`, not a ResourceGraphDefinition",
                index + 1,
                text("apiVersion"),
                text("kind")
            ));
        }
    }
    Ok(())
}

/// Writes the lock: sorted, so that the same content is the same text.
fn lock_of(root: &ComponentVersion, closure: &Closure) -> ReleaseLock {
    let repositories = closure.repositories.iter().map(|repository| repository.specification()).collect();
    let components = closure.nodes.values().map(locked_component).collect();
    ReleaseLock {
        api_version: API_VERSION.to_owned(),
        kind: "ReleaseLock".to_owned(),
        root: LockedRef { name: root.name.clone(), version: root.version.clone() },
        repositories,
        components,
    }
}

pub(crate) fn locked_component(node: &Node) -> LockedComponent {
    let reference = |reference: &crate::descriptor::Reference| LockedReference {
        name: reference.identity.name.clone(),
        extra_identity: reference.identity.extra.clone(),
        target: ReferenceTarget { component_name: reference.component.clone(), version: reference.version.clone() },
    };
    let resource = |resource: &Resource| LockedResource {
        name: resource.identity.name.clone(),
        version: resource.version.clone(),
        kind: resource.kind.clone(),
        extra_identity: resource.identity.extra.clone(),
        digest: resource.digest.as_ref().and_then(crate::descriptor::DigestSpec::digest).map(|digest| digest.to_string()),
        access: resource.access.clone(),
    };
    let signature = |signature: &crate::descriptor::Signature| LockedSignature {
        name: signature.name.clone(),
        digest: crate::descriptor::of_signature(signature).to_string(),
    };
    LockedComponent {
        name: node.descriptor.name.clone(),
        version: node.descriptor.version.clone(),
        repository: node.repository,
        digest: node.digest.to_string(),
        content: Some(crate::descriptor::content(&node.descriptor).to_string()),
        signatures: node.descriptor.signatures.iter().map(signature).collect(),
        references: node.references().map(reference).collect(),
        resources: node.descriptor.resources.iter().map(resource).collect(),
    }
}

fn remarks(root: &ComponentVersion, closure: &Closure, configuration: &Configuration) -> Vec<String> {
    let switched_off = |host: &String| format!("the certificate of {host} is not looked at: the check is switched off");
    let mut remarks: Vec<String> = configuration.insecure_tls.iter().map(switched_off).collect();
    if let Some(node) = closure.nodes.get(root) {
        let (references, resources) = (node.descriptor.references.len(), node.descriptor.resources.len());
        if references > 0 && resources > 0 {
            remarks.push(format!("{root} has {resources} resources of its own beside its {references} component references"));
        }
    }
    remarks
}

/// Relative paths in a Platform file are taken from the file's folder.
pub(crate) fn folder_of(path: &Path) -> PathBuf {
    path.parent().map_or_else(PathBuf::new, Path::to_path_buf)
}

#[cfg(test)]
mod tests;
