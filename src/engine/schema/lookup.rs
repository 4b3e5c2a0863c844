//! Following a field path through a schema.

use std::sync::Arc;

use super::{Additional, Schema};

/// One step of a field path.
#[derive(Clone, Debug, PartialEq, Eq, PartialOrd, Ord, Hash)]
pub enum Segment {
    /// A field's name.
    Field(String),
    /// An element of an array.
    Index(usize),
}

impl Segment {
    /// The field's name; `None` for an element.
    pub fn name(&self) -> Option<&str> {
        match self {
            Self::Field(name) => Some(name),
            Self::Index(_) => None,
        }
    }
}

/// What a path leads to.
#[derive(Clone, Debug, PartialEq)]
pub enum Found {
    /// A schema.
    Schema(Arc<Schema>),
    /// A place below `x-kubernetes-preserve-unknown-fields` or `additionalProperties: true`: anything may be there.
    Open,
    /// No such field; the path that exists, and the names below it.
    Missing {
        /// Number of segments that exist.
        depth: usize,
        /// Names that would have been right there, in order.
        names: Vec<String>,
    },
}

impl Schema {
    /// The schema of a field: a named property, else the map's values.
    pub fn field(&self, name: &str) -> Option<&Arc<Schema>> {
        match (self.properties.get(name), &self.additional_properties) {
            (Some(schema), _) | (None, Some(Additional::Schema(schema))) => Some(schema),
            _ => None,
        }
    }

    /// Whether fields that are not named are kept and not described.
    pub fn is_open(&self) -> bool {
        self.preserve_unknown_fields || self.additional_properties == Some(Additional::Allowed(true))
    }

    /// Follows a path.
    pub fn at(self: &Arc<Self>, path: &[Segment]) -> Found {
        let mut here = self;
        for (depth, segment) in path.iter().enumerate() {
            let next = match segment {
                Segment::Field(name) => here.field(name),
                Segment::Index(_) => here.items.as_ref(),
            };
            here = match next {
                Some(next) => next,
                None if here.is_open() => return Found::Open,
                None => return Found::Missing { depth, names: here.properties.keys().cloned().collect() },
            };
        }
        Found::Schema(Arc::clone(here))
    }
}

/// Reads a dotted path, `spec.a[0].labels["app.kubernetes.io/name"]`; `None` where brackets or quotes do not close.
pub fn segments(path: &str) -> Option<Vec<Segment>> {
    let mut found = Vec::new();
    let mut rest = path;
    while !rest.is_empty() {
        rest = rest.strip_prefix('.').unwrap_or(rest);
        if let Some(quoted) = rest.strip_prefix("[\"") {
            let (name, after) = quoted.split_once("\"]")?;
            found.push(Segment::Field(name.to_owned()));
            rest = after;
        } else if let Some(index) = rest.strip_prefix('[') {
            let (index, after) = index.split_once(']')?;
            found.push(Segment::Index(index.parse().ok()?));
            rest = after;
        } else {
            let end = rest.find(['.', '[']).unwrap_or(rest.len());
            if end == 0 {
                return None;
            }
            found.push(Segment::Field(rest[..end].to_owned()));
            rest = &rest[end..];
        }
    }
    Some(found)
}
