//! Images at deploy time: original reference → verified digest → mirrored reference, applied by exact match (ocm.md section 15).

use std::collections::{BTreeMap, BTreeSet};

use plinth_api::lock::{LockedResource, ReleaseLock};
use serde_json::Value;

use crate::access::Access;
use crate::image::ImageReference;
use crate::repository::ComponentVersion;
use crate::source::{DESCRIPTORS, RepositoryRef};

/// Where each image of a lock is in a mirror.
#[derive(Clone, Debug, Default)]
pub struct Localization {
    images: BTreeMap<String, Localized>,
}

/// One image.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Localized {
    /// The component version that describes it.
    pub component: ComponentVersion,
    /// The resource.
    pub resource: String,
    /// The reference that a pod can pull: `mirror/path:tag@sha256:…`, never with a scheme.
    pub mirrored: String,
}

/// What was done to documents.
#[derive(Clone, Debug, Default, PartialEq, Eq)]
pub struct Applied {
    /// Original references that were replaced.
    pub replaced: BTreeSet<String>,
    /// Images in documents that no resource describes: an air gap has no place to pull them from.
    pub leaks: BTreeSet<String>,
}

impl Localization {
    /// Builds the map from the lock of the original channel. Images that the channel itself holds are found by digest beside their
    /// component; those it refers to, under their own path below the mirror.
    pub fn new(lock: &ReleaseLock, mirror: &RepositoryRef) -> Self {
        let mut images = BTreeMap::new();
        for component in &lock.components {
            for resource in &component.resources {
                let at = ComponentVersion::new(&component.name, &component.version);
                let Some((original, mirrored)) = localized(&at, resource, mirror) else { continue };
                let entry = Localized { component: at, resource: resource.name.clone(), mirrored };
                for spelling in spellings(&original) {
                    images.entry(spelling).or_insert_with(|| entry.clone());
                }
            }
        }
        Self { images }
    }

    /// The image that this text names, if the lock has it. Scheme, docker's defaults, and a tag beside a digest do not matter.
    pub fn find(&self, reference: &str) -> Option<&Localized> {
        let image = ImageReference::parse(reference)?;
        let found = spellings(&image).iter().find_map(|spelling| self.images.get(spelling))?;
        // The same tag with another digest is another image.
        let is_same = image.digest.is_none_or(|digest| found.mirrored.ends_with(digest.as_str()));
        is_same.then_some(found)
    }

    /// Replaces image references in every text of a document, in place. Inside a text with CEL only what is outside of `${…}` is looked
    /// at, and only what stands alone there.
    pub fn apply(&self, document: &mut Value, applied: &mut Applied) {
        self.walk(document, "", applied);
    }

    /// Images of the lock that none of the documents used: a remark, for an operator may pull them.
    pub fn unused(&self, applied: &Applied) -> Vec<&Localized> {
        let used: BTreeSet<&str> =
            applied.replaced.iter().filter_map(|reference| Some(self.find(reference)?.mirrored.as_str())).collect();
        let mut unused: Vec<&Localized> = self.images.values().filter(|image| !used.contains(image.mirrored.as_str())).collect();
        unused.sort_by(|a, b| (&a.component, &a.resource).cmp(&(&b.component, &b.resource)));
        unused.dedup();
        unused
    }

    fn walk(&self, value: &mut Value, key: &str, applied: &mut Applied) {
        match value {
            Value::String(text) => {
                if let Some(changed) = self.rewritten(text, key, applied) {
                    *text = changed;
                }
            }
            Value::Array(items) => items.iter_mut().for_each(|item| self.walk(item, key, applied)),
            Value::Object(object) => object.iter_mut().for_each(|(key, value)| self.walk(value, key, applied)),
            _ => {}
        }
    }

    fn rewritten(&self, text: &str, key: &str, applied: &mut Applied) -> Option<String> {
        let mut out = String::with_capacity(text.len());
        let mut has_changed = false;
        for (word, stands_alone) in words(text) {
            if let Some(image) = self.find(word).filter(|_| stands_alone && is_reference(word)) {
                applied.replaced.insert(word.to_owned());
                has_changed |= word != image.mirrored;
                out.push_str(&image.mirrored);
                continue;
            }
            if key == "image" && stands_alone && word == text && ImageReference::parse(word).is_some() {
                applied.leaks.insert(word.to_owned());
            }
            out.push_str(word);
        }
        has_changed.then_some(out)
    }
}

/// Original and mirrored reference of a resource; `None` where it is no image or the lock does not say which bytes it must have.
fn localized(at: &ComponentVersion, resource: &LockedResource, mirror: &RepositoryRef) -> Option<(ImageReference, String)> {
    let RepositoryRef::Oci { host, sub_path, .. } = mirror else { return None };
    let base = if sub_path.is_empty() { host.clone() } else { format!("{host}/{sub_path}") };
    match Access::read(&resource.access) {
        Access::OciArtifact { image } => {
            let original = ImageReference::parse(&image)?;
            let digest = original.digest.as_ref().map(ToString::to_string).or_else(|| resource.digest.clone())?;
            let tag = original.tag.as_ref().map(|tag| format!(":{tag}")).unwrap_or_default();
            let mirrored = format!("{base}/{}{tag}@{digest}", original.repository);
            Some((original, mirrored))
        }
        Access::LocalBlob { reference, media_type, reference_name }
            if crate::fetch::is_manifest_type(&media_type) && !reference_name.is_empty() =>
        {
            let original = ImageReference::parse(&reference_name)?;
            Some((original, format!("{base}/{DESCRIPTORS}/{}@{reference}", at.name)))
        }
        _ => None,
    }
}

/// How a reference may be written: with its tag, with its digest, with both.
fn spellings(image: &ImageReference) -> Vec<String> {
    let with = |tag: bool, digest: bool| {
        let part = ImageReference {
            plain_http: false,
            tag: image.tag.clone().filter(|_| tag),
            digest: image.digest.clone().filter(|_| digest),
            ..image.clone()
        };
        part.to_string()
    };
    let mut spellings = match (&image.tag, &image.digest) {
        (Some(_), Some(_)) => vec![with(true, true), with(false, true), with(true, false)],
        (None, None) => vec![ImageReference { tag: Some("latest".to_owned()), ..image.clone() }.to_string()],
        _ => vec![with(true, true)],
    };
    spellings.dedup();
    spellings
}

/// A bare word such as `nginx` is a word, not an image: it must have a path or a tag.
fn is_reference(word: &str) -> bool {
    word.contains('/') || word.contains(':')
}

/// Parts of a text: words and what is between them. A word stands alone where no CEL touches it; CEL itself is never a word.
fn words(text: &str) -> Vec<(&str, bool)> {
    let mut parts = Vec::new();
    let mut rest = text;
    let mut touches_cel = false;
    while !rest.is_empty() {
        if rest.starts_with("${") {
            let (cel, after) = rest.split_at(cel_length(rest));
            // What was written just before the expression belongs to it.
            if let Some(last) = parts.last_mut() {
                let (word, stands_alone): &mut (&str, bool) = last;
                *stands_alone &= word.ends_with(is_between);
            }
            parts.push((cel, false));
            (rest, touches_cel) = (after, true);
            continue;
        }
        let is_gap = rest.starts_with(is_between);
        let end = rest
            .char_indices()
            .find(|(at, c)| is_between(*c) != is_gap || rest[*at..].starts_with("${"))
            .map_or(rest.len(), |(at, _)| at);
        let (part, after) = rest.split_at(end);
        parts.push((part, !is_gap && !touches_cel));
        (rest, touches_cel) = (after, false);
    }
    parts
}

fn is_between(c: char) -> bool {
    c.is_whitespace() || matches!(c, '"' | '\'' | '=' | ',' | ';' | '(' | ')' | '[' | ']' | '{' | '}' | '<' | '>' | '|')
}

/// Length of the expression that a text begins with: to its closing brace, braces in quotes not counted.
fn cel_length(text: &str) -> usize {
    let (mut depth, mut quote) = (0_usize, None);
    let mut characters = text.char_indices().skip(1);
    while let Some((at, c)) = characters.next() {
        match (quote, c) {
            (Some(_), '\\') => {
                characters.next();
            }
            (Some(open), c) if c == open => quote = None,
            (None, '"' | '\'') => quote = Some(c),
            (None, '{') => depth += 1,
            (None, '}') if depth <= 1 => return at + 1,
            (None, '}') => depth -= 1,
            // Inside of quotes, and everything else.
            _ => {}
        }
    }
    text.len()
}

#[cfg(test)]
mod tests;
