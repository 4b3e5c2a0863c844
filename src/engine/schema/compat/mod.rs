//! Whether a new schema takes anything away that the old one allowed (reference/kro.md section 16).
//!
//! kro's rules and words, and the changes that kro does not see: every difference of two schemas is a change here, so that it
//! either reaches the CRD or is refused. [`Changes::is_empty`] means that there is nothing to write.

mod change;
mod crds;
mod diff;
#[cfg(test)]
mod tests;

pub use change::{Change, ChangeKind, Changes};
pub use crds::compare_crds;

use super::Schema;

/// Compares two schemas.
pub fn compare(old: &Schema, new: &Schema) -> Changes {
    let mut diff = diff::Diff::default();
    diff.schemas(old, new, "");
    diff.changes
}

/// Compares two schemas of what only a controller writes: there, describing what was open, or a format, takes nothing away
/// from anybody (contracts entry 12).
pub fn compare_status(old: &Schema, new: &Schema) -> Changes {
    let mut diff = diff::Diff { status: true, ..diff::Diff::default() };
    diff.schemas(old, new, "");
    diff.changes
}
