//! `toOCI()`: the parts of an image's reference, for `additionalStatusFields` of a Resource.

use std::collections::HashMap;

use cel::common::{
    types::{CelMap, CelMapKey, CelString},
    value::Val,
};

use super::{
    Entry,
    arguments::{Arguments, Outcome, boxed_text, fail, give, no_overload},
    ours,
};

pub(super) fn entries() -> Vec<Entry> {
    vec![ours("toOCI", &["dyn.toOCI() -> map(string, string)"], to_oci)]
}

/// Takes a text or an access with `imageReference` (a localBlob's access carries one where the image can be pulled, see
/// contracts 17), also one level down in `globalAccess`.
fn to_oci<'b, 'v>(arguments: Arguments<'b, 'v>) -> Outcome<'b, 'v> {
    let value = arguments[0].as_ref();
    let written = match value.downcast_ref::<CelString>() {
        Some(text) => Some(text.inner()),
        None => image_reference(value.downcast_ref::<CelMap>().ok_or_else(no_overload)?),
    };
    let Some(written) = written else {
        return fail("toOCI: the access has no imageReference, so there is no image to pull");
    };
    let Some(image) = Image::parse(written) else { return fail(format!("toOCI: {written:?} is no image reference")) };
    let entry =
        |name: &str, value: &str| -> (CelMapKey<'v>, Box<dyn Val + 'v>) { (CelMapKey::from(name.to_owned()), boxed_text(value)) };
    let host = if image.registry == "docker.io" { "registry-1.docker.io" } else { image.registry };
    give(CelMap::from(HashMap::from([
        entry("host", host),
        entry("registry", image.registry),
        entry("repository", image.repository),
        entry("tag", image.tag),
        entry("digest", image.digest),
        entry("reference", if image.digest.is_empty() { image.tag } else { image.digest }),
    ])))
}

fn image_reference<'a>(access: &'a CelMap<'_>) -> Option<&'a str> {
    let get = |name| access.inner().get(&CelMapKey::from(name));
    match get("imageReference") {
        Some(reference) => Some(reference.downcast_ref::<CelString>()?.inner()),
        None => image_reference(get("globalAccess")?.downcast_ref::<CelMap>()?),
    }
}

/// The parts of `scheme://registry/repository:tag@digest`; tag and digest are empty where absent.
#[derive(Debug, PartialEq, Eq)]
struct Image<'a> {
    registry: &'a str,
    repository: &'a str,
    tag: &'a str,
    digest: &'a str,
}

impl<'a> Image<'a> {
    fn parse(text: &'a str) -> Option<Self> {
        let text = text.split_once("://").map_or(text, |(_, rest)| rest);
        let (name, digest) = text.split_once('@').unwrap_or((text, ""));
        let (registry, path) = name.split_once('/')?;
        let (repository, tag) = path.rsplit_once(':').unwrap_or((path, ""));
        (!registry.is_empty() && !repository.is_empty()).then_some(Self { registry, repository, tag, digest })
    }
}

#[cfg(test)]
mod tests {
    use super::Image;

    #[test]
    fn takes_references_apart() {
        let whole = Image { registry: "ghcr.io:443", repository: "a/b", tag: "v1", digest: "sha256:00" };
        assert_eq!(Image::parse("http://ghcr.io:443/a/b:v1@sha256:00"), Some(whole));
        let tagged = Image { registry: "ghcr.io", repository: "a", tag: "1", digest: "" };
        assert_eq!(Image::parse("ghcr.io/a:1"), Some(tagged));
        assert_eq!(Image::parse("a:1"), None);
        assert_eq!(Image::parse(""), None);
    }
}
