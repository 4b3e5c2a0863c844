//! YAML as Kubernetes reads it, bounded, with the place of every field.
//!
//! Scalars follow YAML 1.1 as Kubernetes does (`yes` is true, `0755` is 493); see [`documents`].

mod locations;
mod parse;
mod path;
mod scalar;
#[cfg(test)]
mod tests;

pub use locations::Locations;
pub(crate) use parse::whole;
pub use parse::{documents, documents_with_duplicates};
pub(crate) use path::is_inside;
pub use path::{element, field};
pub(crate) use scalar::place_of;

use std::ops::Range;

use serde_json::Value;

use crate::{Diagnostic, Location};

/// One YAML document.
#[derive(Clone, Debug, Default, PartialEq)]
pub struct Document {
    /// Its content.
    pub value: Value,
    /// Where its fields are in the text.
    pub locations: Locations,
    /// Keys that are there twice; always empty from [`documents`].
    pub duplicates: Vec<Diagnostic>,
    /// Warnings about keys that `kubectl` reads as something else: `on` without quotes is `"true"` there.
    pub ambiguous: Vec<Diagnostic>,
    /// Bytes of the text that it is written in, from the line on in which it begins.
    pub(crate) part: Range<usize>,
}

impl Document {
    /// The objects of a list, as `kubectl get -o yaml` prints one, each with its place in `text`; `None` where it is no list.
    pub fn items(&self, text: &str) -> Option<Vec<Self>> {
        let items = self.value.get("items").and_then(Value::as_array)?;
        let is_list = self.value.get("kind").and_then(Value::as_str).is_some_and(|kind| kind.ends_with("List"));
        is_list.then(|| items.iter().enumerate().map(|(index, item)| self.item(index, item, text)).collect())
    }

    fn item(&self, index: usize, item: &Value, text: &str) -> Self {
        let path = element("items", index);
        let locations = self.locations.below(&path).cloned().unwrap_or_default();
        let inside = |findings: &[Diagnostic]| {
            let found = findings.iter().filter_map(|finding| {
                let rest = finding.path.strip_prefix(&path)?;
                Some(Diagnostic { path: rest.strip_prefix('.').unwrap_or(rest).to_owned(), ..finding.clone() })
            });
            found.collect()
        };
        Self {
            value: item.clone(),
            duplicates: inside(&self.duplicates),
            ambiguous: inside(&self.ambiguous),
            part: self.part_from(locations.nearest(""), text),
            locations,
        }
    }

    /// The part from the line on that a place is in.
    fn part_from(&self, place: Option<Location>, text: &str) -> Range<usize> {
        let first = self.locations.nearest("").map_or(1, |begin| begin.line);
        let lines = place.map_or(0, |place| place.line.saturating_sub(first));
        let part = text.get(self.part.clone()).unwrap_or_default();
        let skipped = if lines == 0 { 0 } else { part.match_indices('\n').nth(lines - 1).map_or(0, |(at, _)| at + 1) };
        self.part.start + skipped..self.part.end
    }
}
