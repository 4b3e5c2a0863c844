//! kro's merging of maps.

use cel::common::{
    types::CelMap,
    value::{CowVal, Val},
};

use super::{
    Entry,
    arguments::{Arguments, Outcome, give, map},
    ours,
};

pub(super) fn entries() -> Vec<Entry> {
    vec![
        ours("merge", &["map(<K>, <V>).merge(map(<K>, <V>)) -> map(<K>, <V>)"], merge),
        ours("deepMerge", &["dyn.deepMerge(dyn) -> dyn"], deep_merge),
    ]
}

/// The right one wins.
fn merge<'b, 'v>(arguments: Arguments<'b, 'v>) -> Outcome<'b, 'v> {
    let mut entries = map(&arguments, 0)?.clone().into_inner();
    entries.extend(map(&arguments, 1)?.clone().into_inner());
    give(CelMap::from(entries))
}

/// Maps are merged all the way down; anything else is replaced, lists too.
fn deep_merge<'b, 'v>(arguments: Arguments<'b, 'v>) -> Outcome<'b, 'v> {
    Ok(CowVal::Owned(Box::new(merged(map(&arguments, 0)?, map(&arguments, 1)?))))
}

fn merged<'v>(left: &CelMap<'v>, right: &CelMap<'v>) -> CelMap<'v> {
    let mut entries = left.clone().into_inner();
    for (key, value) in right.clone().into_inner() {
        let both = entries.get(&key).and_then(|old| Some((old.downcast_ref::<CelMap>()?, value.downcast_ref::<CelMap>()?)));
        let value: Box<dyn Val + 'v> = match both {
            Some((old, new)) => Box::new(merged(old, new)),
            None => value,
        };
        entries.insert(key, value);
    }
    CelMap::from(entries)
}
