//! The map applied to documents: full references in texts, and references that are taken apart into fields.

use std::collections::BTreeSet;

use serde_json::{Map, Value};

use super::words::{is_reference, literals, words};
use super::{Localization, Localized};
use crate::image::ImageReference;
use crate::repository::ComponentVersion;

/// What a graph's schema says of a field for an image. They look like names of images, and nobody calls one so.
const TYPES: [&str; 6] = ["string", "object", "boolean", "integer", "number", "float"];

/// What was found in documents and done to them.
#[derive(Clone, Debug, Default, PartialEq, Eq)]
pub struct Applied {
    /// Original references that were replaced.
    pub replaced: BTreeSet<String>,
    /// Component version and resource of the images that are in use.
    pub used: BTreeSet<(ComponentVersion, String)>,
    /// Images that no resource describes.
    pub leaks: BTreeSet<String>,
}

impl Localization {
    /// Replaces image references in a document, in place: in every text, outside of `${…}`, what stands alone; and the fields
    /// `registry`, `repository`, `tag`, `digest` of an object, as charts have them in their values. Expressions are never touched; an
    /// image inside one is a leak.
    pub fn apply(&self, document: &mut Value, applied: &mut Applied) {
        self.walk(document, "", applied);
    }

    fn walk(&self, value: &mut Value, key: &str, applied: &mut Applied) {
        match value {
            Value::String(text) => {
                if let Some(changed) = self.rewritten(text, key, applied) {
                    *text = changed;
                }
            }
            Value::Array(items) => items.iter_mut().for_each(|item| self.walk(item, key, applied)),
            Value::Object(object) => {
                self.fields(object, applied);
                self.chart(object, applied);
                object.iter_mut().for_each(|(key, value)| self.walk(value, key, applied));
            }
            _ => {}
        }
    }

    fn rewritten(&self, text: &str, key: &str, applied: &mut Applied) -> Option<String> {
        let mut out = String::with_capacity(text.len());
        let mut has_changed = false;
        for (word, stands_alone) in words(text) {
            if let Some(image) = self.find(word).filter(|_| stands_alone && is_reference(word)) {
                let scheme = if word.starts_with("oci://") { "oci://" } else { "" };
                let mirrored = format!("{scheme}{}", self.used(image, word, applied));
                has_changed |= word != mirrored;
                out.push_str(&mirrored);
                continue;
            }
            if is_image_key(key) {
                self.look_for_leaks(text, word, stands_alone, applied);
            }
            out.push_str(word);
        }
        has_changed.then_some(out)
    }

    /// Notes the use of an image, and what to write for it.
    fn used<'a>(&self, image: &'a Localized, word: &'a str, applied: &mut Applied) -> &'a str {
        applied.used.insert((image.component.clone(), image.resource.clone()));
        if self.base.is_none() || image.missing.is_some() {
            return word;
        }
        applied.replaced.insert(word.to_owned());
        &image.mirrored
    }

    /// In a field for an image: a word that names one, the beginning of one that ends in an expression, one inside of an expression.
    fn look_for_leaks(&self, text: &str, word: &str, stands_alone: bool, applied: &mut Applied) {
        if let Some(cel) = word.strip_prefix("${") {
            let found =
                literals(cel).into_iter().filter(|literal| names_host(literal) && is_reference(literal) && self.is_leak(literal));
            applied.leaks.extend(found.map(str::to_owned));
        } else if stands_alone && (word == text || names_host(word)) && self.is_leak(word) {
            applied.leaks.insert(word.to_owned());
        } else if !stands_alone
            && text.starts_with(word)
            && names_host(word)
            && self.is_leak(word.trim_end_matches([':', '@', '/']))
        {
            applied.leaks.insert(text.to_owned());
        }
    }

    /// `registry` (maybe), `repository`, `tag` or `digest`.
    fn fields(&self, object: &mut Map<String, Value>, applied: &mut Applied) {
        let text = |key: &str| literal(object, key).map(str::to_owned);
        let (registry, tag, digest) = (text("registry"), text("tag"), text("digest"));
        let Some(repository) = text("repository").filter(|path| !path.contains("://")) else { return };
        if tag.is_none() && digest.is_none() {
            return;
        }
        let part = |sign: &str, part: &Option<String>| part.as_ref().map(|part| format!("{sign}{part}")).unwrap_or_default();
        let host = registry.as_ref().map(|host| format!("{host}/")).unwrap_or_default();
        let reference = format!("{host}{repository}{}{}", part(":", &tag), part("@", &digest));
        if let Some(image) = self.find(&reference) {
            let mirrored = self.used(image, &reference, applied);
            if self.base.is_some() && !write_fields(object, mirrored) {
                applied.leaks.insert(format!("{reference} (the mirror has it by digest alone, and there is no field `digest`)"));
            }
        } else if (registry.is_some() || names_host(&repository)) && self.is_leak(&reference) {
            applied.leaks.insert(reference);
        }
    }

    /// `url: oci://…` with `ref: {tag, digest}`, as sources of charts are written.
    fn chart(&self, object: &mut Map<String, Value>, applied: &mut Applied) {
        let Some(url) = literal(object, "url").and_then(|url| url.strip_prefix("oci://")).map(str::to_owned) else { return };
        let Some(Value::Object(at)) = object.get("ref") else { return };
        let part = |sign: &str, key: &str| literal(at, key).map(|part| format!("{sign}{part}")).unwrap_or_default();
        let reference = format!("{url}{}{}", part(":", "tag"), part("@", "digest"));
        if reference == url {
            return;
        }
        let Some(image) = self.find(&reference) else {
            applied.leaks.extend(self.is_leak(&reference).then(|| format!("oci://{reference}")));
            return;
        };
        let mirrored = ImageReference::parse(self.used(image, &reference, applied)).filter(|_| self.base.is_some());
        if let (Some(new), Some(Value::Object(at))) = (mirrored, object.get_mut("ref")) {
            at.extend(new.digest.map(|digest| ("digest".to_owned(), Value::from(digest.as_str()))));
            object.insert("url".to_owned(), format!("oci://{}/{}", new.host, new.repository).into());
        }
    }

    /// Whether the text is an image that is not in the mirror.
    fn is_leak(&self, reference: &str) -> bool {
        !TYPES.contains(&reference) && ImageReference::parse(reference).is_some_and(|image| !self.is_at_mirror(&image))
    }
}

/// Puts a reference into its fields; `false` where they have no place for it.
fn write_fields(object: &mut Map<String, Value>, mirrored: &str) -> bool {
    let Some(image) = ImageReference::parse(mirrored) else { return false };
    let has_digest = object.contains_key("digest");
    if image.tag.is_none() && !has_digest {
        return false;
    }
    if object.contains_key("registry") {
        object.insert("registry".to_owned(), image.host.into());
        object.insert("repository".to_owned(), image.repository.into());
    } else {
        object.insert("repository".to_owned(), format!("{}/{}", image.host, image.repository).into());
    }
    if let Some(tag) = image.tag.filter(|_| object.contains_key("tag")) {
        object.insert("tag".to_owned(), tag.into());
    }
    if let Some(digest) = image.digest.filter(|_| has_digest) {
        object.insert("digest".to_owned(), digest.as_str().into());
    }
    true
}

/// A text without an expression in it.
fn literal<'a>(object: &'a Map<String, Value>, key: &str) -> Option<&'a str> {
    object.get(key).and_then(Value::as_str).filter(|text| !text.is_empty() && !text.contains("${"))
}

fn is_image_key(key: &str) -> bool {
    key == "image" || key.ends_with("Image")
}

/// Whether the first segment is a host, so that no other word can be meant.
fn names_host(word: &str) -> bool {
    let word = word.split_once("://").map_or(word, |(_, rest)| rest);
    word.split_once('/').is_some_and(|(host, _)| host.contains(['.', ':']) || host == "localhost")
}
