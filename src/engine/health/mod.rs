//! Judges objects in the words of the field, and explains a verdict by its root cause.

mod verdict;

pub use verdict::{Cause, Explanation, Health, Verdict};
