//! An executable as an image of one layer: how plinth itself gets into a bundle and from there into a cluster (contracts 10).
//!
//! The image has the executable and the certificate authorities of the build, and nothing else. A folder with one build for each
//! architecture becomes an index of such images. The same executables give the same bytes: no time, no owner, no name of the machine.

mod chart;
mod elf;
mod layer;

use std::collections::BTreeMap;
use std::fs::File;
use std::path::{Path, PathBuf};

use serde_json::{Value, json};

use crate::assembly::{Blobs, INDEX, MANIFEST, Packed, added, store};
use crate::ctf::archive::regular;
use crate::ctf::{Contents, Payload, file_error};
use crate::descriptor::Descriptor;
use crate::digest::Digest;
use crate::error::RepositoryError;
use crate::image::ImageReference;

pub use chart::Chart;
pub(crate) use chart::{HELM, TAR};

/// Name of the component that plinth is.
pub const COMPONENT: &str = "plinth.dev/plinth";
/// Name of its resource with the image.
pub const RESOURCE: &str = "image";

const CONFIG: &str = "application/vnd.oci.image.config.v1+json";
const LAYER: &str = "application/vnd.oci.image.layer.v1.tar+gzip";
/// Larger than any build, so that a wrong path does not fill the disk.
const LONGEST: u64 = 2 << 30;
/// More builds than there are architectures.
const MOST_BUILDS: usize = 16;
/// Nobody, by number: the image has no list of users.
const USER: &str = "65532:65532";

/// Where the layer's bytes are kept.
pub(crate) enum Keep<'a> {
    /// In memory.
    Memory,
    /// As a file of this folder, under its digest.
    Folder(&'a Path),
}

/// Refuses an executable, or a folder of them, that cannot run in an image with nothing else in it.
pub fn check(path: &Path) -> Result<(), RepositoryError> {
    let files = if path.is_dir() { builds(path)? } else { vec![path.to_owned()] };
    files.iter().try_for_each(|file| check_one(file))
}

fn check_one(executable: &Path) -> Result<(), RepositoryError> {
    let failed = |error| file_error("read", executable, error);
    let mut file = File::open(regular(executable)?).map_err(failed)?;
    let found = elf::architecture(&mut file).map_err(failed)?;
    found.map(|_| ()).map_err(|reason| refused(executable, reason))
}

/// Packs a static Linux executable, or a folder with one for each architecture. `name` is `repository:tag`, the ordinary name of the image.
pub(crate) fn pack(path: &Path, name: &str, keep: &Keep<'_>, contents: &mut Contents) -> Result<Packed, RepositoryError> {
    if ImageReference::parse(name).is_none_or(|image| image.tag.is_none()) {
        return Err(refused(path, format!("`{name}` is not a name and a tag for its image")));
    }
    let program = path.file_name().map_or_else(|| "plinth".to_owned(), |name| name.to_string_lossy().into_owned());
    if !path.is_dir() {
        let manifest = image(path, &program, keep, contents)?.manifest;
        let size = manifest["size"].as_u64().unwrap_or_default();
        let digest = digest_of(&manifest);
        let manifests = vec![(digest.clone(), MANIFEST.to_owned())];
        return Ok(Packed { digest, media_type: MANIFEST.to_owned(), size, reference_name: Some(name.to_owned()), manifests });
    }
    let mut images = BTreeMap::new();
    for build in builds(path)? {
        let Image { architecture, manifest } = image(&build, &program, keep, contents)?;
        if images.insert(architecture, manifest).is_some() {
            return Err(refused(path, format!("it has two builds for {architecture}")));
        }
    }
    Ok(index(&images, name, contents))
}

/// The index of the images, by their architectures.
fn index(images: &BTreeMap<&'static str, Value>, name: &str, contents: &mut Contents) -> Packed {
    let members: Vec<Value> = images
        .iter()
        .map(|(architecture, manifest)| {
            let mut member = manifest.clone();
            member["platform"] = json!({"architecture": architecture, "os": "linux"});
            member
        })
        .collect();
    let index = bytes(&json!({"schemaVersion": 2, "mediaType": INDEX, "manifests": members}));
    let size = index.len() as u64;
    let digest = contents.add_blob(index);
    let members = images.values().map(|manifest| (digest_of(manifest), MANIFEST.to_owned()));
    let manifests = std::iter::once((digest.clone(), INDEX.to_owned())).chain(members).collect();
    Packed { digest, media_type: INDEX.to_owned(), size, reference_name: Some(name.to_owned()), manifests }
}

/// The files of a folder with builds.
fn builds(folder: &Path) -> Result<Vec<PathBuf>, RepositoryError> {
    let failed = |error| file_error("list", folder, error);
    let entries = std::fs::read_dir(folder).map_err(failed)?.take(MOST_BUILDS + 1);
    let mut builds = entries.map(|entry| Ok(entry?.path())).collect::<std::io::Result<Vec<PathBuf>>>().map_err(failed)?;
    if builds.is_empty() || builds.len() > MOST_BUILDS {
        return Err(refused(folder, format!("it has not 1 to {MOST_BUILDS} builds")));
    }
    builds.sort();
    Ok(builds)
}

/// One image that is in the contents.
struct Image {
    architecture: &'static str,
    /// What an index says of its manifest.
    manifest: Value,
}

/// The image of one executable.
fn image(executable: &Path, program: &str, keep: &Keep<'_>, contents: &mut Contents) -> Result<Image, RepositoryError> {
    let failed = |error| file_error("read", executable, error);
    let mut file = File::open(regular(executable)?).map_err(failed)?;
    let size = file.metadata().map_err(failed)?.len();
    if size > LONGEST {
        return Err(RepositoryError::Limit { what: executable.display().to_string(), limit: LONGEST, unit: "bytes" });
    }
    let architecture = elf::architecture(&mut file).map_err(failed)?.map_err(|reason| refused(executable, reason))?;
    let layer = layer::keep(&mut file, size, program, keep, contents).map_err(|error| file_error("pack", executable, error))?;
    let config = json!({"architecture": architecture, "os": "linux", "config": {"Entrypoint": [format!("/{program}")], "User": USER, "WorkingDir": "/"},
        "rootfs": {"type": "layers", "diff_ids": [layer.plain.as_str()]}, "history": [{"created_by": "plinth"}]});
    let config = added(contents, bytes(&config), CONFIG);
    let layer = json!({"mediaType": LAYER, "digest": layer.packed.as_str(), "size": layer.size});
    let manifest = json!({"schemaVersion": 2, "mediaType": MANIFEST, "config": config, "layers": [layer]});
    Ok(Image { architecture, manifest: added(contents, bytes(&manifest), MANIFEST) })
}

fn digest_of(entry: &Value) -> Digest {
    entry["digest"].as_str().and_then(|digest| digest.parse().ok()).expect("made by our own hash")
}

fn refused(path: &Path, reason: String) -> RepositoryError {
    RepositoryError::malformed(path.display().to_string(), reason)
}

/// What [`component`] added.
pub(crate) struct Added {
    /// Ordinary name of the image.
    pub(crate) name: String,
    /// Its manifests with their types, the main one first.
    pub(crate) manifests: Vec<(Digest, String)>,
    /// Every resource with its type and its bytes, of the image manifests, configurations and layers; the image comes first.
    pub(crate) resources: Vec<(&'static str, &'static str, u64)>,
}

/// Packs the executable and puts it into a component version of its own, with the chart.
pub(crate) fn component(
    executable: &Path,
    version: &str,
    chart: &Chart,
    keep: &Keep<'_>,
    contents: &mut Contents,
) -> Result<Added, RepositoryError> {
    let name = format!("{COMPONENT}:{version}");
    let mut image = Contents::default();
    let packed = pack(executable, &name, keep, &mut image)?;
    let size = image.blobs.values().map(Payload::size).sum::<Result<u64, _>>()?;
    contents.blobs.extend(image.blobs);
    let manifests = packed.manifests.clone();
    let mut all = vec![(RESOURCE, "ociImage", packed)];
    all.extend(chart.packed(contents)?);
    let mut added = Added { name, manifests, resources: Vec::new() };
    let (mut elements, mut blobs) = (Vec::new(), Blobs::default());
    for (name, kind, packed) in all {
        added.resources.push((name, kind, if name == RESOURCE { size } else { packed.size }));
        let element = resource((name, kind, version), &packed);
        blobs.add(packed, "resource", element.as_object().expect("an object was just written"));
        elements.push(element);
    }
    let document = json!({"meta": {"schemaVersion": "v2"}, "component": {"name": COMPONENT, "version": version, "provider": "plinth.dev",
        "repositoryContexts": [], "resources": elements, "sources": [], "componentReferences": []}});
    let read = Descriptor::from_value(document).map_err(|error| RepositoryError::malformed(COMPONENT, error))?;
    store(contents, &read, bytes(&read.document), &blobs);
    Ok(added)
}

/// A resource whose bytes are beside its descriptor.
fn resource((name, kind, version): (&str, &str, &str), packed: &Packed) -> Value {
    let digest =
        json!({"hashAlgorithm": "SHA-256", "normalisationAlgorithm": "genericBlobDigest/v1", "value": packed.digest.hex()});
    let mut access = json!({"type": "localBlob", "localReference": packed.digest.as_str(), "mediaType": packed.media_type});
    if let Some(reference) = &packed.reference_name {
        access["referenceName"] = reference.as_str().into();
    }
    json!({"name": name, "version": version, "type": kind, "relation": "local", "access": access, "digest": digest})
}

fn bytes(value: &Value) -> Vec<u8> {
    serde_json::to_vec(value).expect("plain data")
}

#[cfg(test)]
pub(crate) mod tests;
