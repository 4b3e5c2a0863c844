//! Image references: `[scheme://][host/]repository[:tag][@digest]`, with docker's defaults.

use std::fmt;

use crate::digest::Digest;

/// An image reference in its parts. The digest wins over the tag.
#[derive(Clone, Debug, PartialEq, Eq, PartialOrd, Ord, Hash)]
pub struct ImageReference {
    /// Whether the reference itself says `http://`. Never part of the printed form: a pod cannot pull that.
    pub plain_http: bool,
    /// `host` or `host:port`.
    pub host: String,
    /// Path below the host.
    pub repository: String,
    /// Tag.
    pub tag: Option<String>,
    /// Digest.
    pub digest: Option<Digest>,
}

impl ImageReference {
    /// Reads a reference; `None` where the text is none.
    pub fn parse(text: &str) -> Option<Self> {
        let (plain_http, rest) = match text.split_once("://") {
            None => (false, text),
            Some(("http", rest)) => (true, rest),
            Some(("https" | "oci" | "docker", rest)) => (false, rest),
            Some(_) => return None,
        };
        let (rest, digest) = match rest.split_once('@') {
            Some((rest, digest)) => (rest, Some(digest.parse().ok()?)),
            None => (rest, None),
        };
        let (path, tag) = match rest.rsplit_once(':') {
            Some((path, tag)) if !tag.contains('/') => (path, Some(tag)),
            _ => (rest, None),
        };
        let (host, repository) = split_host(path);
        let tag_is_good = tag.is_none_or(is_tag);
        let is_good = tag_is_good && is_repository(&repository);
        is_good.then(|| Self { plain_http, host, repository, tag: tag.map(str::to_owned), digest })
    }

    /// The digest where there is one, else the tag, else `latest`.
    pub(crate) fn pointer(&self) -> crate::repository::Pointer {
        match &self.digest {
            Some(digest) => crate::repository::Pointer::Digest(digest.clone()),
            None => crate::repository::Pointer::Tag(self.tag.clone().unwrap_or_else(|| "latest".to_owned())),
        }
    }
}

impl fmt::Display for ImageReference {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        write!(f, "{}/{}", self.host, self.repository)?;
        self.tag.as_ref().map_or(Ok(()), |tag| write!(f, ":{tag}"))?;
        self.digest.as_ref().map_or(Ok(()), |digest| write!(f, "@{digest}"))
    }
}

/// The first segment is a host where it looks like one; else docker.io and, for a bare name there, its `library`.
fn split_host(path: &str) -> (String, String) {
    const HUB: &str = "docker.io";
    let (host, rest) = match path.split_once('/') {
        Some(("index.docker.io", rest)) => (HUB, rest),
        Some((host, rest)) if host.contains(['.', ':']) || host == "localhost" => (host, rest),
        _ => (HUB, path),
    };
    let is_bare = host == HUB && !rest.contains('/');
    (host.to_owned(), if is_bare { format!("library/{rest}") } else { rest.to_owned() })
}

/// Whether the text can be a repository's path, as the distribution specification has it: nothing in it leads out of where it is put.
pub(crate) fn is_repository(path: &str) -> bool {
    path.len() <= 255 && path.split('/').all(is_segment)
}

/// Whether the text can be one part of a repository's path.
pub(crate) fn is_segment(segment: &str) -> bool {
    let inside = |byte: u8| byte.is_ascii_lowercase() || byte.is_ascii_digit() || matches!(byte, b'.' | b'_' | b'-');
    let is_end = |byte: Option<&u8>| byte.is_some_and(|byte| byte.is_ascii_lowercase() || byte.is_ascii_digit());
    let bytes = segment.as_bytes();
    bytes.iter().all(|byte| inside(*byte)) && is_end(bytes.first()) && is_end(bytes.last())
}

/// Whether the text can be a tag.
pub(crate) fn is_tag(tag: &str) -> bool {
    let inside = |byte: u8| byte.is_ascii_alphanumeric() || matches!(byte, b'.' | b'_' | b'-');
    !tag.is_empty() && tag.len() <= 128 && tag.bytes().all(inside) && !tag.starts_with(['.', '-'])
}

#[cfg(test)]
mod tests {
    use proptest::prelude::*;

    use super::*;

    #[test]
    fn reads_references_with_dockers_defaults() {
        let digest = Digest::of(b"x");
        let cases = [
            ("nginx", "docker.io/library/nginx".to_owned()),
            ("a/b:1", "docker.io/a/b:1".to_owned()),
            ("docker.io/nginx:1", "docker.io/library/nginx:1".to_owned()),
            ("index.docker.io/nginx", "docker.io/library/nginx".to_owned()),
            ("docker.io/a/b", "docker.io/a/b".to_owned()),
            ("ghcr.io/nginx", "ghcr.io/nginx".to_owned()),
            ("http://127.0.0.1:25000/up/gateway:1.3.0", "127.0.0.1:25000/up/gateway:1.3.0".to_owned()),
            ("localhost/x", "localhost/x".to_owned()),
            (&format!("oci://ghcr.io/a/b:v1@{digest}"), format!("ghcr.io/a/b:v1@{digest}")),
        ];
        for (text, expected) in cases {
            assert_eq!(ImageReference::parse(text).unwrap().to_string(), expected, "{text}");
        }
    }

    #[test]
    fn no_repository_leads_out_of_where_it_is_put() {
        assert!(is_repository("component-descriptors/acme.example/a_b/c-d"));
        for path in [
            "",
            "/a",
            "a/",
            "a//b",
            "..",
            "a/../b",
            "../../tenant-b/app",
            "%2e%2e/x",
            "..%2fx",
            "a/./b",
            "A",
            "a b",
            "a?x",
            "a#x",
        ] {
            assert!(!is_repository(path), "{path:?} was accepted");
        }
    }

    #[test]
    fn refuses_what_is_none() {
        for text in ["", "http://", "ftp://h.x/a", "h.x/", "h.x/A", "h.x/a:b c", "h.x/a@sha256:00", "h.x/../a", "h.x/a:${tag}"] {
            assert!(ImageReference::parse(text).is_none(), "{text:?} was accepted");
        }
    }

    proptest! {
        #[test]
        fn what_is_printed_is_read_again(text in "([a-z]{1,3}\\.[a-z]{1,3}(:[1-9]{1,3})?/)?[a-z]{1,4}(/[a-z]{1,4}){0,2}(:[a-z0-9.]{1,5})?", any in "\\PC{0,30}") {
            let _ = ImageReference::parse(&any);
            if let Some(read) = ImageReference::parse(&text) {
                prop_assert_eq!(ImageReference::parse(&read.to_string()), Some(read));
            }
        }
    }
}
