//! Judges objects in the words of the field, and explains a verdict by its root cause.

mod conditions;
mod explain;
mod judge;
mod kinds;
mod verdict;

pub use explain::explain;
pub use judge::judge;
pub use verdict::{Cause, Explanation, Health, Verdict};
