//! Optional values.

use cel::common::{
    traits::Zeroer,
    types::{CelOptional, CelTimestamp},
    value::Val,
};

use super::{
    Entry,
    arguments::{Arguments, Outcome, give, give_list, list, no_overload},
    instead, ours, theirs,
};

/// Seconds from the beginning of year 1 to that of 1970.
const YEAR_1: i64 = -62_135_596_800;

pub(super) fn entries() -> Vec<Entry> {
    vec![
        theirs("hasValue", &["optional_type(<V>).hasValue() -> bool"]),
        theirs("optional.none", &["optional.none() -> optional_type(<V>)"]),
        theirs("optional.of", &["optional.of(<V>) -> optional_type(<V>)"]),
        instead("optional.ofNonZeroValue", &["optional.ofNonZeroValue(<V>) -> optional_type(<V>)"], of_non_zero_value),
        ours("optional.unwrap", &["optional.unwrap(list(optional_type(<V>))) -> list(<V>)"], unwrap),
        theirs("or", &["optional_type(<V>).or(optional_type(<V>)) -> optional_type(<V>)"]),
        theirs("orValue", &["optional_type(<V>).orValue(<V>) -> <V>"]),
        ours("unwrapOpt", &["list(optional_type(<V>)).unwrapOpt() -> list(<V>)"], unwrap),
        theirs("value", &["optional_type(<V>).value() -> <V>"]),
    ]
}

/// `None` for the zero of a type. The zero of times is Go's, the beginning of year 1: `timestamp(0)` is a time as any other.
fn of_non_zero_value<'b, 'v>(arguments: Arguments<'b, 'v>) -> Outcome<'b, 'v> {
    let value = arguments.first().ok_or_else(no_overload)?;
    let is_zero = match value.downcast_ref::<CelTimestamp>() {
        Some(time) => time.inner().timestamp() == YEAR_1 && time.inner().timestamp_subsec_nanos() == 0,
        None => value.as_zeroer().is_some_and(Zeroer::is_zero_value),
    };
    give(if is_zero { CelOptional::none() } else { CelOptional::of(value.clone_as_boxed()) })
}

/// The values of those that have one.
fn unwrap<'b, 'v>(arguments: Arguments<'b, 'v>) -> Outcome<'b, 'v> {
    let mut values = Vec::new();
    for element in list(&arguments, 0)? {
        let optional = element.downcast_ref::<CelOptional>().ok_or_else(no_overload)?;
        values.extend(optional.option().map(Val::clone_as_boxed));
    }
    give_list(values)
}
