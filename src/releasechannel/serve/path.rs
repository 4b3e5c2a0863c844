//! What a request path asks for. Names of repositories have slashes in them, so a path is read from its end.

use crate::image::is_tag;
use crate::repository::Pointer;

/// What is asked for.
#[derive(Clone, Debug, PartialEq, Eq)]
pub(super) enum Wanted<'a> {
    /// `/v2/`: is this a registry?
    Base,
    /// `/v2/_catalog`.
    Catalog,
    /// `/v2/NAME/tags/list`.
    Tags(&'a str),
    /// `/v2/NAME/manifests/REFERENCE`.
    Manifest(&'a str, Pointer),
    /// `/v2/NAME/blobs/DIGEST`.
    Blob(&'a str, &'a str),
    /// `/v2/NAME/referrers/DIGEST`.
    Referrers(&'a str, &'a str),
    /// Anything that writes, such as `/v2/NAME/blobs/uploads/`.
    Upload,
    /// A reference that can be neither a tag nor a digest.
    BadReference(&'a str),
    /// Nothing of ours.
    Nothing,
}

/// Reads a path.
pub(super) fn read(path: &str) -> Wanted<'_> {
    let Some(rest) = path.strip_prefix("/v2").filter(|rest| rest.is_empty() || rest.starts_with('/')) else {
        return Wanted::Nothing;
    };
    let rest = rest.trim_start_matches('/');
    if rest.is_empty() {
        return Wanted::Base;
    }
    if rest == "_catalog" {
        return Wanted::Catalog;
    }
    if let Some(name) = rest.strip_suffix("/tags/list").filter(|name| is_name(name)) {
        return Wanted::Tags(name);
    }
    if rest.contains("/blobs/uploads") {
        return Wanted::Upload;
    }
    let Some((before, last)) = rest.rsplit_once('/') else { return Wanted::Nothing };
    let Some((name, kind)) = before.rsplit_once('/').filter(|(name, _)| is_name(name)) else { return Wanted::Nothing };
    match kind {
        "manifests" => match last.parse() {
            Ok(digest) => Wanted::Manifest(name, Pointer::Digest(digest)),
            Err(_) if is_tag(last) => Wanted::Manifest(name, Pointer::Tag(last.to_owned())),
            Err(_) => Wanted::BadReference(last),
        },
        "blobs" => Wanted::Blob(name, last),
        "referrers" => Wanted::Referrers(name, last),
        _ => Wanted::Nothing,
    }
}

/// Names as the specification has them; what is none cannot be in the archive's index either.
fn is_name(name: &str) -> bool {
    let is_inside = |byte: u8| byte.is_ascii_lowercase() || byte.is_ascii_digit() || b"._-".contains(&byte);
    name.len() <= 255 && name.split('/').all(|part| !part.is_empty() && part.bytes().all(is_inside))
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::digest::Digest;

    #[test]
    fn paths_are_read_from_their_end() {
        let digest = Digest::of(b"x");
        let manifest = format!("/v2/a/b/manifests/{digest}");
        let blob = format!("/v2/blobs/manifests/blobs/{digest}");
        let cases = [
            ("/v2", Wanted::Base),
            ("/v2/", Wanted::Base),
            ("/v2/_catalog", Wanted::Catalog),
            ("/v2/a/tags/list", Wanted::Tags("a")),
            ("/v2/a/b/manifests/v1", Wanted::Manifest("a/b", Pointer::Tag("v1".into()))),
            (&manifest, Wanted::Manifest("a/b", Pointer::Digest(digest.clone()))),
            ("/v2/a/manifests/.v1", Wanted::BadReference(".v1")),
            (&blob, Wanted::Blob("blobs/manifests", digest.as_str())),
            ("/v2/a/blobs/uploads/", Wanted::Upload),
            ("/v2/A/tags/list", Wanted::Nothing),
            ("/v2x/a/tags/list", Wanted::Nothing),
            ("/v1/a", Wanted::Nothing),
            ("/v2/../manifests/x", Wanted::Manifest("..", Pointer::Tag("x".into()))),
        ];
        for (path, expected) in cases {
            assert_eq!(read(path), expected, "{path}");
        }
    }
}
