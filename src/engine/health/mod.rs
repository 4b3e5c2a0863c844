//! Judges objects in the words of the field, and explains a verdict by its root cause.

mod advice;
mod conditions;
mod explain;
mod judge;
mod kcp;
mod kinds;
mod since;
mod verdict;

pub use advice::{Advice, CATALOGUE, advice, advice_on};
pub use explain::explain;
pub use judge::{judge, judge_at, judge_instance};
pub use since::since;
pub use verdict::{Cause, Explanation, Health, Verdict};
