//! Lists: cel-go's and Kubernetes' functions.

use std::cmp::Ordering;

use cel::{
    ExecutionError,
    common::{
        types::CelOptional,
        value::{CowVal, Val},
    },
};

use super::{
    Entry,
    arguments::{Arguments, Outcome, fail, give, give_bool, give_int, give_list, list, no_overload},
    instead, ours, theirs,
    woven::order,
};
use crate::cel::budget::spend;

pub(super) fn entries() -> Vec<Entry> {
    vec![
        instead("distinct", &["list(<T>).distinct() -> list(<T>)"], distinct),
        ours("first", &["list(<V>).first() -> optional_type(<V>)"], first),
        theirs("flatten", &["list(dyn).flatten(int) -> list(dyn)", "list(list(<T>)).flatten() -> list(<T>)"]),
        ours("last", &["list(<V>).last() -> optional_type(<V>)"], last),
        theirs("lists.range", &["lists.range(int) -> list(int)"]),
        theirs("reverse", &["list(<T>).reverse() -> list(<T>)"]),
        theirs("slice", &["list(<T>).slice(int, int) -> list(<T>)"]),
        theirs(
            "sort",
            &[
                // Where nothing is known of the elements, the first one counts, as with kro.
                "list(int).sort() -> list(int)",
                "list(bool).sort() -> list(bool)",
                "list(bytes).sort() -> list(bytes)",
                "list(double).sort() -> list(double)",
                "list(google.protobuf.Duration).sort() -> list(google.protobuf.Duration)",
                "list(google.protobuf.Timestamp).sort() -> list(google.protobuf.Timestamp)",
                "list(string).sort() -> list(string)",
                "list(uint).sort() -> list(uint)",
            ],
        ),
    ]
}

/// Of an empty list the first overload is taken, so `int` stands first, as with Kubernetes.
pub(super) fn kubernetes() -> Vec<Entry> {
    vec![
        ours("indexOf", &["list(<A>).indexOf(<A>) -> int"], index_of),
        ours(
            "isSorted",
            &[
                "list(int).isSorted() -> bool",
                "list(bool).isSorted() -> bool",
                "list(bytes).isSorted() -> bool",
                "list(double).isSorted() -> bool",
                "list(google.protobuf.Duration).isSorted() -> bool",
                "list(google.protobuf.Timestamp).isSorted() -> bool",
                "list(string).isSorted() -> bool",
                "list(uint).isSorted() -> bool",
            ],
            is_sorted,
        ),
        ours("lastIndexOf", &["list(<A>).lastIndexOf(<A>) -> int"], last_index_of),
        ours(
            "max",
            &[
                "list(int).max() -> int",
                "list(bool).max() -> bool",
                "list(bytes).max() -> bytes",
                "list(double).max() -> double",
                "list(google.protobuf.Duration).max() -> google.protobuf.Duration",
                "list(google.protobuf.Timestamp).max() -> google.protobuf.Timestamp",
                "list(string).max() -> string",
                "list(uint).max() -> uint",
            ],
            greatest,
        ),
        ours(
            "min",
            &[
                "list(int).min() -> int",
                "list(bool).min() -> bool",
                "list(bytes).min() -> bytes",
                "list(double).min() -> double",
                "list(google.protobuf.Duration).min() -> google.protobuf.Duration",
                "list(google.protobuf.Timestamp).min() -> google.protobuf.Timestamp",
                "list(string).min() -> string",
                "list(uint).min() -> uint",
            ],
            least,
        ),
        ours(
            "sum",
            &[
                "list(int).sum() -> int",
                "list(double).sum() -> double",
                "list(google.protobuf.Duration).sum() -> google.protobuf.Duration",
                "list(uint).sum() -> uint",
            ],
            sum,
        ),
    ]
}

/// Keeps the first of equal elements. Numbers of different types may be equal, so elements are compared pair by pair, and paid so.
fn distinct<'b, 'v>(arguments: Arguments<'b, 'v>) -> Outcome<'b, 'v> {
    let mut kept: Vec<Box<dyn Val + 'v>> = Vec::new();
    for element in list(&arguments, 0)? {
        spend(1 + kept.len() as u64 / 8)?;
        if !kept.iter().any(|seen| seen.equals(element.as_ref())) {
            kept.push(element.clone_as_boxed());
        }
    }
    give_list(kept)
}

fn first<'b, 'v>(arguments: Arguments<'b, 'v>) -> Outcome<'b, 'v> {
    optional(list(&arguments, 0)?.first().map(AsRef::as_ref))
}

fn last<'b, 'v>(arguments: Arguments<'b, 'v>) -> Outcome<'b, 'v> {
    optional(list(&arguments, 0)?.last().map(AsRef::as_ref))
}

fn optional<'b, 'v>(element: Option<&(dyn Val + 'v)>) -> Outcome<'b, 'v> {
    give(element.map_or_else(CelOptional::none, |element| CelOptional::of(element.clone_as_boxed())))
}

fn index_of<'b, 'v>(arguments: Arguments<'b, 'v>) -> Outcome<'b, 'v> {
    let found = list(&arguments, 0)?.iter().position(|element| element.equals(arguments[1].as_ref()));
    give_int(position(found))
}

fn last_index_of<'b, 'v>(arguments: Arguments<'b, 'v>) -> Outcome<'b, 'v> {
    let found = list(&arguments, 0)?.iter().rposition(|element| element.equals(arguments[1].as_ref()));
    give_int(position(found))
}

fn position(found: Option<usize>) -> i64 {
    found.and_then(|index| i64::try_from(index).ok()).unwrap_or(-1)
}

fn is_sorted<'b, 'v>(arguments: Arguments<'b, 'v>) -> Outcome<'b, 'v> {
    for pair in list(&arguments, 0)?.windows(2) {
        if order(pair[0].as_ref(), pair[1].as_ref())? == Ordering::Greater {
            return give_bool(false);
        }
    }
    give_bool(true)
}

fn least<'b, 'v>(arguments: Arguments<'b, 'v>) -> Outcome<'b, 'v> {
    extreme(&arguments, "min", Ordering::Less)
}

fn greatest<'b, 'v>(arguments: Arguments<'b, 'v>) -> Outcome<'b, 'v> {
    extreme(&arguments, "max", Ordering::Greater)
}

fn extreme<'b, 'v>(arguments: &Arguments<'b, 'v>, name: &str, wanted: Ordering) -> Outcome<'b, 'v> {
    let elements = list(arguments, 0)?;
    let Some(mut best) = elements.first() else { return fail(format!("{name} called on empty list")) };
    for element in &elements[1..] {
        if order(element.as_ref(), best.as_ref())? == wanted {
            best = element;
        }
    }
    Ok(CowVal::Owned(best.clone_as_boxed()))
}

fn sum<'b, 'v>(arguments: Arguments<'b, 'v>) -> Outcome<'b, 'v> {
    let elements = list(&arguments, 0)?;
    let Some(first) = elements.first() else { return give_int(0) };
    let mut total = first.clone_as_boxed();
    for element in &elements[1..] {
        total = plus(total.as_ref(), element.as_ref())?;
    }
    Ok(CowVal::Owned(total))
}

fn plus<'v>(left: &(dyn Val + 'v), right: &(dyn Val + 'v)) -> Result<Box<dyn Val + 'v>, ExecutionError> {
    Ok(left.as_adder().ok_or_else(no_overload)?.add(right)?.into_owned())
}
