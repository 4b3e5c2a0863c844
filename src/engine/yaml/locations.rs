//! Where fields are in a text.

use std::collections::BTreeMap;

use crate::{
    Diagnostic, Location,
    schema::{Segment, segments},
};

/// Places of fields by path (`spec.resources[2].id`, names with dots as `["a.b"]`; the document itself is the empty path).
///
/// A scalar's place is its first character, so that an offset inside an expression can be added; an object's or array's place
/// is its name, which is where people look for it. Kept as a tree: paths as text would cost depth times size.
#[derive(Clone, Debug, Default, PartialEq)]
pub struct Locations {
    pub(super) here: Option<Location>,
    pub(super) below: Below,
}

/// What is inside.
#[derive(Clone, Debug, Default, PartialEq)]
pub(super) enum Below {
    #[default]
    Nothing,
    Fields(BTreeMap<String, Locations>),
    Elements(Vec<Locations>),
}

impl Locations {
    /// The place of exactly this field.
    pub fn get(&self, path: &str) -> Option<Location> {
        let path = segments(path)?;
        let (found, depth) = self.follow(&path);
        if depth == path.len() { found.here } else { None }
    }

    /// The place of this field, or of the nearest thing around it that is in the text.
    pub fn nearest(&self, path: &str) -> Option<Location> {
        segments(path).map_or(self.here, |path| self.follow(&path).0.here)
    }

    /// The same, with how many segments of the path lead there.
    pub fn reach(&self, path: &str) -> Option<(usize, Location)> {
        let (found, depth) = self.follow(&segments(path)?);
        Some((depth, found.here?))
    }

    /// The places inside exactly this field.
    pub(super) fn below(&self, path: &str) -> Option<&Self> {
        let path = segments(path)?;
        let (found, depth) = self.follow(&path);
        (depth == path.len()).then_some(found)
    }

    /// Gives every finding without a place the place of its path.
    pub fn locate(&self, findings: &mut [Diagnostic]) {
        for finding in findings.iter_mut().filter(|finding| finding.location.is_none()) {
            finding.location = self.nearest(&finding.path);
        }
    }

    /// Goes down as far as the text goes; also answers with how many segments that was.
    fn follow(&self, path: &[Segment]) -> (&Self, usize) {
        let mut here = self;
        for (depth, segment) in path.iter().enumerate() {
            let next = match (&here.below, segment) {
                (Below::Fields(fields), Segment::Field(name)) => fields.get(name),
                (Below::Elements(elements), Segment::Index(index)) => elements.get(*index),
                _ => None,
            };
            match next {
                Some(next) => here = next,
                None => return (here, depth),
            }
        }
        (here, path.len())
    }
}
