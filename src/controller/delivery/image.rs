//! Where a node can pull an image from: `imageReference` of `status.resource.access` (contracts 17, openmcp.md finding 4). Pure.

use std::{
    collections::BTreeSet,
    sync::{Arc, PoisonError, RwLock},
};

use plinth_releasechannel::{
    ComponentVersion,
    descriptor::Resource,
    localization::{Applied, Localization},
};
use serde_json::Value;

/// Knows where images of a release channel lie, when that is not where their component says: a mirror, or the registry that
/// serves an archive.
pub trait Images: Send + Sync {
    /// The pullable reference, `host/path[:tag]@digest`, of a resource; `None` where it is not known.
    fn pullable(&self, component: &ComponentVersion, resource: &Resource) -> Option<String>;

    /// Puts the mirror's references into a manifest; gives the images that no resource describes.
    fn localize(&self, manifest: &mut Value) -> BTreeSet<String>;
}

/// Images of the release in use, and of the one that a platform moves to meanwhile.
#[derive(Debug, Default)]
pub struct SharedImages(RwLock<Vec<Arc<Localization>>>);

impl SharedImages {
    /// Those of a release.
    pub fn new(images: Arc<Localization>) -> Self {
        Self(RwLock::new(vec![images]))
    }

    /// Goes on with those of another one.
    pub fn set(&self, images: Arc<Localization>) {
        self.replace(vec![images]);
    }

    /// Takes those of another one too, and first.
    pub fn also(&self, images: Arc<Localization>) {
        let last = self.get().into_iter().next_back().filter(|last| !Arc::ptr_eq(last, &images));
        self.replace([images].into_iter().chain(last).collect());
    }

    fn replace(&self, images: Vec<Arc<Localization>>) {
        // A panic elsewhere leaves shared pointers as good as they were.
        *self.0.write().unwrap_or_else(PoisonError::into_inner) = images;
    }

    fn get(&self) -> Vec<Arc<Localization>> {
        self.0.read().unwrap_or_else(PoisonError::into_inner).clone()
    }
}

impl Images for SharedImages {
    fn pullable(&self, component: &ComponentVersion, resource: &Resource) -> Option<String> {
        self.get().iter().find_map(|images| Images::pullable(images.as_ref(), component, resource))
    }

    fn localize(&self, manifest: &mut Value) -> BTreeSet<String> {
        let mut unknown: Option<BTreeSet<String>> = None;
        for images in self.get() {
            let here = Images::localize(images.as_ref(), manifest);
            unknown = Some(unknown.map_or_else(|| here.clone(), |before| before.intersection(&here).cloned().collect()));
        }
        unknown.unwrap_or_default()
    }
}

/// Nothing is mirrored.
#[derive(Clone, Copy, Debug, Default)]
pub struct NotMirrored;

impl Images for NotMirrored {
    fn pullable(&self, _: &ComponentVersion, _: &Resource) -> Option<String> {
        None
    }

    fn localize(&self, _: &mut Value) -> BTreeSet<String> {
        BTreeSet::new()
    }
}

/// The images of a release channel, by its map.
impl Images for Localization {
    fn pullable(&self, component: &ComponentVersion, resource: &Resource) -> Option<String> {
        self.of_resource(component, &resource.identity.name, &resource.identity.extra).map(str::to_owned)
    }

    fn localize(&self, manifest: &mut Value) -> BTreeSet<String> {
        let mut applied = Applied::default();
        self.apply(manifest, &mut applied);
        applied.leaks
    }
}

/// The access as it goes into the status, and whether anybody can pull what is an image.
#[derive(Clone, Debug, PartialEq)]
pub struct Located {
    /// The access, with `imageReference` where the resource is an OCI artifact that can be pulled.
    pub access: Value,
    /// The resource is an image, and nothing says where to pull it from.
    pub unreachable: bool,
}

/// Completes the access of a resource that was found in `repository` (an OCM repository specification).
pub fn locate(component: &ComponentVersion, resource: &Resource, repository: &Value, images: &dyn Images) -> Located {
    let mut access = resource.access.clone();
    let reference = images.pullable(component, resource).or_else(|| reference(component, &resource.access, repository));
    let unreachable = reference.is_none() && is_image(resource);
    if let (Some(reference), Some(fields)) = (reference, access.as_object_mut()) {
        fields.insert("imageReference".into(), without_scheme(&reference).into());
    }
    Located { access, unreachable }
}

/// The reference that the access of a component's image and its repository (an OCM specification) say, where nothing is mirrored.
pub fn reference(component: &ComponentVersion, access: &Value, repository: &Value) -> Option<String> {
    written(component, access, repository).map(|reference| without_scheme(&reference).to_owned())
}

fn written(component: &ComponentVersion, access: &Value, repository: &Value) -> Option<String> {
    let text = |value: &Value, key: &str| value.get(key).and_then(Value::as_str).map(str::to_owned);
    match access_type(access).as_str() {
        "ociartifact" | "ociartefact" | "ociregistry" | "ociimage" => text(access, "imageReference"),
        "relativeocireference" => {
            let (host, _) = oci_place(repository)?;
            Some(format!("{host}/{}", text(access, "reference")?))
        }
        "localblob" if is_native(access) => {
            let (host, path) = oci_place(repository)?;
            let digest = text(access, "localReference")?;
            let base = [host, path].into_iter().filter(|part| !part.is_empty()).collect::<Vec<_>>().join("/");
            Some(format!("{base}/component-descriptors/{}@{digest}", component.name))
        }
        _ => None,
    }
}

/// The access type's name in lower case, without its version.
fn access_type(access: &Value) -> String {
    let name = access.get("type").and_then(Value::as_str).unwrap_or_default();
    name.split('/').next().unwrap_or_default().to_ascii_lowercase()
}

/// Whether a local blob is a manifest or index that lies in the registry as such, not packed into an archive (ocm.md 4.1).
fn is_native(access: &Value) -> bool {
    matches!(
        access.get("mediaType").and_then(Value::as_str),
        Some(
            "application/vnd.oci.image.manifest.v1+json"
                | "application/vnd.oci.image.index.v1+json"
                | "application/vnd.docker.distribution.manifest.v2+json"
                | "application/vnd.docker.distribution.manifest.list.v2+json"
        )
    )
}

/// Whether a node would have to pull it.
fn is_image(resource: &Resource) -> bool {
    matches!(resource.kind.to_ascii_lowercase().as_str(), "ociimage" | "ociartifact" | "ociartefact")
}

/// Host and path of an OCI repository specification; `None` for archives.
fn oci_place(repository: &Value) -> Option<(String, String)> {
    let text = |key: &str| repository.get(key).and_then(Value::as_str).unwrap_or_default();
    let name = text("type").split('/').next().unwrap_or_default().to_ascii_lowercase();
    if !matches!(name.as_str(), "ociregistry" | "oci" | "ocirepository") {
        return None;
    }
    let base = without_scheme(text("baseUrl")).trim_matches('/').to_owned();
    let (host, path) = base.split_once('/').unwrap_or((&base, ""));
    let sub = text("subPath").trim_matches('/');
    let path = [path, sub].into_iter().filter(|part| !part.is_empty()).collect::<Vec<_>>().join("/");
    (!host.is_empty()).then(|| (host.to_owned(), path))
}

/// A pod's image has no scheme, although some tools write one (ocm.md 15, traps).
fn without_scheme(reference: &str) -> &str {
    ["http://", "https://", "oci://"].into_iter().find_map(|scheme| reference.strip_prefix(scheme)).unwrap_or(reference)
}

#[cfg(test)]
mod tests {
    use plinth_releasechannel::descriptor::Identity;
    use serde_json::json;

    use super::*;

    fn resource(kind: &str, access: Value) -> Resource {
        Resource {
            identity: Identity { name: "image".into(), ..Identity::default() },
            version: "1.0.0".into(),
            kind: kind.into(),
            relation: String::new(),
            access,
            digest: None,
            labels: Vec::new(),
        }
    }

    struct Mirror;

    impl Images for Mirror {
        fn pullable(&self, component: &ComponentVersion, resource: &Resource) -> Option<String> {
            Some(format!("mirror.test/{}/{}@sha256:00", component.name, resource.identity.name))
        }

        fn localize(&self, _: &mut Value) -> BTreeSet<String> {
            BTreeSet::new()
        }
    }

    #[test]
    fn every_form_of_an_image_has_a_reference() {
        let digest = "sha256:ab";
        let manifest = "application/vnd.oci.image.manifest.v1+json";
        let packed = "application/vnd.oci.image.manifest.v1+tar+gzip";
        let oci = json!({"type": "OCIRegistry", "baseUrl": "reg.test/base", "subPath": "sub"});
        let ctf = json!({"type": "CommonTransportFormat", "filePath": "/x.tgz"});
        let component = ComponentVersion::new("acme.test/c", "1.0.0");
        let cases = [
            (
                json!({"type": "ociArtifact", "imageReference": "ghcr.test/a/b:1@sha256:1"}),
                &ctf,
                Some("ghcr.test/a/b:1@sha256:1"),
            ),
            (json!({"type": "OCIImage/v1", "imageReference": "http://localhost:5000/a:1"}), &oci, Some("localhost:5000/a:1")),
            (
                json!({"type": "localBlob", "mediaType": manifest, "localReference": digest}),
                &oci,
                Some("reg.test/base/sub/component-descriptors/acme.test/c@sha256:ab"),
            ),
            (json!({"type": "relativeOciReference", "reference": "v1/a:1@sha256:2"}), &oci, Some("reg.test/v1/a:1@sha256:2")),
            (json!({"type": "localBlob", "mediaType": manifest, "localReference": digest}), &ctf, None),
            (json!({"type": "localBlob", "mediaType": packed, "localReference": digest}), &oci, None),
        ];
        for (access, repository, expected) in cases {
            let located = locate(&component, &resource("ociImage", access.clone()), repository, &NotMirrored);
            assert_eq!(located.access.get("imageReference").and_then(Value::as_str), expected, "{access}");
            assert_eq!(located.unreachable, expected.is_none(), "{access}");
        }
    }

    #[test]
    fn a_mirror_comes_first() {
        let component = ComponentVersion::new("acme.test/c", "1.0.0");
        let access = json!({"type": "ociArtifact", "imageReference": "ghcr.test/a/b:1"});
        let located = locate(&component, &resource("ociImage", access), &Value::Null, &Mirror);
        assert_eq!(located.access["imageReference"], "mirror.test/acme.test/c/image@sha256:00");
    }

    #[test]
    fn other_resources_keep_their_access() {
        let access = json!({"type": "localBlob", "mediaType": "application/x-yaml", "localReference": "sha256:1"});
        let located =
            locate(&ComponentVersion::new("a.test/c", "1"), &resource("blob", access.clone()), &Value::Null, &NotMirrored);
        assert_eq!(located, Located { access, unreachable: false });
    }
}
