//! Optional values.

use cel::common::{types::CelOptional, value::Val};

use super::{
    Entry,
    arguments::{Arguments, Outcome, give_list, list, no_overload},
    ours, theirs,
};

pub(super) fn entries() -> Vec<Entry> {
    vec![
        theirs("hasValue", &["optional_type(<V>).hasValue() -> bool"]),
        theirs("optional.none", &["optional.none() -> optional_type(<V>)"]),
        theirs("optional.of", &["optional.of(<V>) -> optional_type(<V>)"]),
        theirs("optional.ofNonZeroValue", &["optional.ofNonZeroValue(<V>) -> optional_type(<V>)"]),
        ours("optional.unwrap", &["optional.unwrap(list(optional_type(<V>))) -> list(<V>)"], unwrap),
        theirs("or", &["optional_type(<V>).or(optional_type(<V>)) -> optional_type(<V>)"]),
        theirs("orValue", &["optional_type(<V>).orValue(<V>) -> <V>"]),
        ours("unwrapOpt", &["list(optional_type(<V>)).unwrapOpt() -> list(<V>)"], unwrap),
        theirs("value", &["optional_type(<V>).value() -> <V>"]),
    ]
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
