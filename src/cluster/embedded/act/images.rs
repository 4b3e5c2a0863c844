//! Which images there are to pull.

use std::collections::BTreeSet;

/// Knows which images can be pulled.
pub trait ImageCatalog: Send + Sync {
    /// Whether a reference, as a container names it, can be pulled.
    fn has(&self, reference: &str) -> bool;
}

/// Every image is there.
#[derive(Clone, Copy, Debug, Default)]
pub struct AnyImage;

impl ImageCatalog for AnyImage {
    fn has(&self, _reference: &str) -> bool {
        true
    }
}

/// The images of a list: a release lock's, or what a mirror has.
#[derive(Clone, Debug, Default, PartialEq, Eq)]
pub struct ImageList(BTreeSet<String>);

impl ImageList {
    /// A list of references: `HOST/REPOSITORY:TAG`, `…@DIGEST`, or both.
    pub fn new<T: AsRef<str>>(references: impl IntoIterator<Item = T>) -> Self {
        Self(references.into_iter().flat_map(|reference| forms(reference.as_ref())).collect())
    }
}

impl ImageCatalog for ImageList {
    /// A digest decides where there is one, as it does for the container runtime.
    fn has(&self, reference: &str) -> bool {
        forms(reference).first().is_some_and(|form| self.0.contains(form))
    }
}

/// A reference in full, by digest and by tag as far as it has them, the deciding one first.
fn forms(reference: &str) -> Vec<String> {
    let (named, digest) = match reference.split_once('@') {
        Some((named, digest)) => (named, Some(digest)),
        None => (reference, None),
    };
    let (path, tag) = match named.rsplit_once(':').filter(|(_, tag)| !tag.contains('/')) {
        Some((path, tag)) => (path, Some(tag)),
        None => (named, None),
    };
    let path = in_full(path);
    let mut forms: Vec<String> = digest.iter().map(|digest| format!("{path}@{digest}")).collect();
    if let Some(tag) = tag.or(if digest.is_none() { Some("latest") } else { None }) {
        forms.push(format!("{path}:{tag}"));
    }
    forms
}

/// What the container runtime adds to short names.
fn in_full(path: &str) -> String {
    match path.split_once('/') {
        Some((host, _)) if host.contains(['.', ':']) || host == "localhost" => path.to_owned(),
        Some(_) => format!("docker.io/{path}"),
        None => format!("docker.io/library/{path}"),
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn names_are_compared_in_full() {
        let list = ImageList::new(["nginx", "r.example:5000/a/b:v1@sha256:0", "acme/tool:2"]);
        for there in [
            "nginx:latest",
            "docker.io/library/nginx",
            "r.example:5000/a/b:v1",
            "r.example:5000/a/b@sha256:0",
            "r.example:5000/a/b:v2@sha256:0",
            "docker.io/acme/tool:2",
        ] {
            assert!(list.has(there), "{there}");
        }
        for absent in ["nginx:1", "r.example:5000/a/b", "r.example:5000/a/b:v1@sha256:1", "r.example/a/b:v1", "acme/tool"] {
            assert!(!list.has(absent), "{absent}");
        }
    }
}
