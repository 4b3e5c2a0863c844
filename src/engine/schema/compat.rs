//! Whether a new schema takes anything away that the old one allowed.

use plinth_api::Object;

use super::Schema;

/// One difference between two schemas.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Change {
    /// Where, as in `.properties.a.items.type`.
    pub path: String,
    /// What changed, in kro's words.
    pub summary: String,
}

/// The differences between two schemas.
#[derive(Clone, Debug, Default, PartialEq, Eq)]
pub struct Changes {
    /// Objects or writers that were right may now be wrong.
    pub breaking: Vec<Change>,
    /// Everything that was right stays right.
    pub compatible: Vec<Change>,
}

impl Changes {
    /// Whether there is no difference at all: no write is needed.
    pub fn is_empty(&self) -> bool {
        self.breaking.is_empty() && self.compatible.is_empty()
    }

    /// kro's one line: the first three breaking changes, and how many more there are.
    pub fn summary(&self) -> String {
        String::new()
    }
}

/// Compares two schemas.
pub fn compare(_old: &Schema, _new: &Schema) -> Changes {
    Changes::default()
}

/// Compares two CustomResourceDefinitions version by version; a removed version is breaking, an added one is not.
pub fn compare_crds(_old: &Object, _new: &Object) -> Changes {
    Changes::default()
}
