//! Lists as sets, for the delivery controllers' environment.

use cel::{ExecutionError, common::value::Val};

use super::{
    Entry,
    arguments::{Arguments, Outcome, give_bool, list},
    ours,
};
use crate::cel::budget::spend;

pub(super) fn entries() -> Vec<Entry> {
    vec![
        ours("sets.contains", &["sets.contains(list(<T>), list(<T>)) -> bool"], |arguments| give_bool(covers(&arguments, 0, 1)?)),
        ours("sets.equivalent", &["sets.equivalent(list(<T>), list(<T>)) -> bool"], |arguments| {
            give_bool(covers(&arguments, 0, 1)? && covers(&arguments, 1, 0)?)
        }),
        ours("sets.intersects", &["sets.intersects(list(<T>), list(<T>)) -> bool"], intersects),
    ]
}

/// Whether every element of one list is in the other.
fn covers(arguments: &Arguments<'_, '_>, whole: usize, part: usize) -> Result<bool, ExecutionError> {
    let (whole, part) = (list(arguments, whole)?, list(arguments, part)?);
    spend((whole.len() * part.len()) as u64)?;
    Ok(part.iter().all(|element| has(whole, element.as_ref())))
}

fn intersects<'b, 'v>(arguments: Arguments<'b, 'v>) -> Outcome<'b, 'v> {
    let (left, right) = (list(&arguments, 0)?, list(&arguments, 1)?);
    spend((left.len() * right.len()) as u64)?;
    give_bool(left.iter().any(|element| has(right, element.as_ref())))
}

fn has(list: &[Box<dyn Val + '_>], element: &dyn Val) -> bool {
    list.iter().any(|other| other.equals(element))
}
