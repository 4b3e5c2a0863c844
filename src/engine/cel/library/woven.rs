//! Functions that lowering weaves in; see [`lower`](super::super::lower).

use std::{cmp::Ordering, collections::HashMap};

use cel::{
    DeclarationError, Env, ExecutionError,
    common::{
        types::{
            CelBool, CelBytes, CelDuration, CelInt, CelList, CelMap, CelMapKey, CelOptional, CelString, CelTimestamp, DYN_TYPE,
            STRING_TYPE,
        },
        value::{CowVal, Val},
    },
};

use super::arguments::{Arguments, Outcome, fail, give, give_bool, give_list, int, list, no_overload, text};
use crate::cel::{budget::spend, escape::unescape, evaluate::is_omit};

/// Adds them to an interpreter.
pub(crate) fn register(env: &mut Env) -> Result<(), DeclarationError> {
    env.add_overload("@range", "@range", vec![DYN_TYPE], range)?;
    env.add_overload("@entries", "@entries", vec![DYN_TYPE], entries)?;
    env.add_overload("@copy", "@copy", vec![DYN_TYPE], copy)?;
    env.add_overload("@weigh", "@weigh", vec![DYN_TYPE], weigh)?;
    env.add_overload("@add", "@add", vec![DYN_TYPE, DYN_TYPE], add)?;
    env.add_overload("@equals", "@equals", vec![DYN_TYPE, DYN_TYPE], equals)?;
    env.add_overload("@differs", "@differs", vec![DYN_TYPE, DYN_TYPE], differs)?;
    env.add_overload("@contains", "@contains", vec![DYN_TYPE, DYN_TYPE], contains)?;
    env.add_overload("@utc", "@utc", vec![DYN_TYPE], utc)?;
    env.add_overload("@index_of", "@index_of", vec![DYN_TYPE, DYN_TYPE, DYN_TYPE], index_of)?;
    env.add_overload("@last_index_of", "@last_index_of", vec![DYN_TYPE, DYN_TYPE, DYN_TYPE], last_index_of)?;
    env.add_overload("@field", "@field", vec![DYN_TYPE, STRING_TYPE], field)?;
    env.add_overload("@has_field", "@has_field", vec![DYN_TYPE, STRING_TYPE], has_field)?;
    env.add_overload("@optional_field", "@optional_field", vec![DYN_TYPE, STRING_TYPE], optional_field)?;
    env.add_overload("@sorted", "@sorted", vec![DYN_TYPE], sorted)?;
    env.add_overload("@map_of_pairs", "@map_of_pairs", vec![DYN_TYPE], map_of_pairs)?;
    env.add_overload("@map_of_maps", "@map_of_maps", vec![DYN_TYPE], map_of_maps)
}

/// What copying or comparing a value costs.
pub(crate) fn size(value: &dyn Val) -> u64 {
    if let Some(list) = value.downcast_ref::<CelList>() {
        1 + list.inner().iter().map(|element| size(element.as_ref())).sum::<u64>()
    } else if let Some(map) = value.downcast_ref::<CelMap>() {
        1 + map.inner().values().map(|value| 1 + size(value.as_ref())).sum::<u64>()
    } else if let Some(optional) = value.downcast_ref::<CelOptional>() {
        optional.option().map_or(1, size)
    } else {
        1 + weight(value)
    }
}

/// What reading a value without its elements costs.
fn weight(value: &dyn Val) -> u64 {
    if let Some(text) = value.downcast_ref::<CelString>() {
        text.inner().len() as u64 / 64
    } else if let Some(bytes) = value.downcast_ref::<CelBytes>() {
        bytes.inner().len() as u64 / 64
    } else if let Some(list) = value.downcast_ref::<CelList>() {
        list.inner().len() as u64 / 16
    } else {
        0
    }
}

/// The keys of a map in order.
pub(crate) fn keys<'a, 'v>(map: &'a CelMap<'v>) -> Vec<&'a CelMapKey<'v>> {
    let mut keys: Vec<_> = map.inner().keys().collect();
    keys.sort();
    keys
}

fn range<'b, 'v>(mut arguments: Arguments<'b, 'v>) -> Outcome<'b, 'v> {
    let over = arguments.remove(0);
    if let Some(list) = over.downcast_ref::<CelList>() {
        spend(list.inner().len() as u64 + size(list))?;
        return Ok(over);
    }
    let map = over.downcast_ref::<CelMap>().ok_or_else(no_overload)?;
    spend(2 * map.inner().len() as u64)?;
    give_list(keys(map).into_iter().map(|key| key.inner().clone_as_boxed()).collect())
}

fn entries<'b, 'v>(arguments: Arguments<'b, 'v>) -> Outcome<'b, 'v> {
    let over = arguments[0].as_ref();
    let pair = |key: Box<dyn Val + 'v>, value: &(dyn Val + 'v)| -> Box<dyn Val + 'v> {
        Box::new(CelList::from(vec![key, value.clone_as_boxed()]))
    };
    spend(2 * size(over))?;
    if let Some(list) = over.downcast_ref::<CelList>() {
        let numbered = (0_i64..).zip(list.inner());
        return give_list(numbered.map(|(index, element)| pair(Box::new(CelInt::from(index)), element.as_ref())).collect());
    }
    let map = over.downcast_ref::<CelMap>().ok_or_else(no_overload)?;
    let sorted = keys(map).into_iter();
    give_list(sorted.map(|key| pair(key.inner().clone_as_boxed(), map.inner()[key].as_ref())).collect())
}

fn copy<'b, 'v>(mut arguments: Arguments<'b, 'v>) -> Outcome<'b, 'v> {
    spend(size(arguments[0].as_ref()))?;
    Ok(arguments.remove(0))
}

fn weigh<'b, 'v>(mut arguments: Arguments<'b, 'v>) -> Outcome<'b, 'v> {
    spend(weight(arguments[0].as_ref()))?;
    Ok(arguments.remove(0))
}

fn add<'b, 'v>(arguments: Arguments<'b, 'v>) -> Outcome<'b, 'v> {
    let (left, right) = (arguments[0].as_ref(), arguments[1].as_ref());
    spend(size(left) + size(right))?;
    // A time keeps the zone that it was written in.
    let (left, right) = match (left.downcast_ref::<CelDuration>(), right.downcast_ref::<CelTimestamp>()) {
        (Some(_), Some(_)) => (right, left),
        _ => (left, right),
    };
    let sum = left.as_adder().ok_or_else(no_overload)?.add(right)?;
    match (left.downcast_ref::<CelTimestamp>(), sum.downcast_ref::<CelTimestamp>()) {
        (Some(zoned), Some(time)) => give(CelTimestamp::from(time.inner().with_timezone(zoned.inner().offset()))),
        _ => Ok(CowVal::Owned(sum.into_owned())),
    }
}

fn equal(arguments: &Arguments<'_, '_>) -> Result<bool, ExecutionError> {
    let (left, right) = (arguments[0].as_ref(), arguments[1].as_ref());
    if is_omit(left) || is_omit(right) {
        return fail("omit() is a field-removal sentinel and cannot be compared");
    }
    spend(if is_nested(left) { size(left) + size(right) } else { size(left).min(size(right)) })?;
    Ok(left.equals(right))
}

/// A list without order looks at all of both sides.
fn is_nested(value: &dyn Val) -> bool {
    value.downcast_ref::<CelList>().is_some() || value.downcast_ref::<CelMap>().is_some()
}

fn equals<'b, 'v>(arguments: Arguments<'b, 'v>) -> Outcome<'b, 'v> {
    give_bool(equal(&arguments)?)
}

fn differs<'b, 'v>(arguments: Arguments<'b, 'v>) -> Outcome<'b, 'v> {
    give_bool(!equal(&arguments)?)
}

fn contains<'b, 'v>(arguments: Arguments<'b, 'v>) -> Outcome<'b, 'v> {
    let (value, container) = (arguments[0].as_ref(), arguments[1].as_ref());
    if let Some(list) = container.downcast_ref::<CelList>() {
        let each = if is_nested(value) { size(value) } else { 1 };
        let all = if is_nested(value) { size(list) } else { 0 };
        spend((list.inner().len() as u64).saturating_mul(each).saturating_add(all))?;
    }
    let found = container.as_container().ok_or_else(no_overload)?.contains(value);
    // What cannot be a key is none.
    let found = if container.downcast_ref::<CelMap>().is_some() { found.or(Ok(false)) } else { found };
    give_bool(found?)
}

fn utc<'b, 'v>(mut arguments: Arguments<'b, 'v>) -> Outcome<'b, 'v> {
    match arguments[0].downcast_ref::<CelTimestamp>() {
        Some(time) => give(CelTimestamp::from(time.inner().to_utc().fixed_offset())),
        None => Ok(arguments.remove(0)),
    }
}

/// The letters of a text, and the place that the search begins at; past the end is the end.
fn searched(arguments: &Arguments<'_, '_>) -> Result<(Vec<char>, Vec<char>, usize), ExecutionError> {
    let (within, wanted, from) = (text(arguments, 0)?, text(arguments, 1)?, int(arguments, 2)?);
    spend((within.len() + wanted.len()) as u64 / 16)?;
    let Ok(from) = usize::try_from(from) else { return fail(format!("index out of range: {from}")) };
    Ok((within.chars().collect(), wanted.chars().collect(), from))
}

fn index_of<'b, 'v>(arguments: Arguments<'b, 'v>) -> Outcome<'b, 'v> {
    let (within, wanted, from) = searched(&arguments)?;
    let from = from.min(within.len());
    if wanted.is_empty() {
        return give(place(Some(from)));
    }
    let found = within[from..].windows(wanted.len()).position(|window| window == wanted);
    give(place(found.map(|found| from + found)))
}

fn last_index_of<'b, 'v>(arguments: Arguments<'b, 'v>) -> Outcome<'b, 'v> {
    let (within, wanted, from) = searched(&arguments)?;
    if wanted.is_empty() {
        return give(place(Some(from.min(within.len()))));
    }
    // From the end on nothing begins.
    if from >= within.len() {
        return give(place(None));
    }
    let end = within.len().min(from + wanted.len());
    give(place(within[..end].windows(wanted.len()).rposition(|window| window == wanted)))
}

fn place(found: Option<usize>) -> CelInt {
    CelInt::from(found.and_then(|at| i64::try_from(at).ok()).unwrap_or(-1))
}

/// A field by its name as written, or by what the escapes in it mean.
fn lookup<'b, 'v>(operand: CowVal<'b, 'v>, name: &str) -> Outcome<'b, 'v> {
    let map = operand.downcast_ref::<CelMap>().ok_or_else(no_overload)?;
    let found = [name.to_owned(), unescape(name)].into_iter().find_map(|name| map.inner().get(&CelMapKey::from(name)));
    match found {
        Some(value) => Ok(CowVal::Owned(value.clone_as_boxed())),
        None => Err(ExecutionError::no_such_key(&unescape(name))),
    }
}

fn field<'b, 'v>(mut arguments: Arguments<'b, 'v>) -> Outcome<'b, 'v> {
    let name = text(&arguments, 1)?.to_owned();
    let operand = arguments.remove(0);
    match operand.downcast_ref::<CelOptional>() {
        None => lookup(operand, &name),
        Some(_) => optional(operand, &name),
    }
}

fn optional<'b, 'v>(operand: CowVal<'b, 'v>, name: &str) -> Outcome<'b, 'v> {
    let target = match operand.downcast_ref::<CelOptional>() {
        None => operand,
        Some(optional) => match optional.option() {
            None => return give(CelOptional::none()),
            Some(value) => CowVal::Owned(value.clone_as_boxed()),
        },
    };
    give(lookup(target, name).map_or_else(|_| CelOptional::none(), |value| CelOptional::of(value.into_owned())))
}

fn has_field<'b, 'v>(mut arguments: Arguments<'b, 'v>) -> Outcome<'b, 'v> {
    let name = text(&arguments, 1)?.to_owned();
    match lookup(arguments.remove(0), &name) {
        Ok(_) => give_bool(true),
        Err(ExecutionError::NoSuchKey(_)) => give_bool(false),
        Err(error) => Err(error),
    }
}

fn optional_field<'b, 'v>(mut arguments: Arguments<'b, 'v>) -> Outcome<'b, 'v> {
    let name = text(&arguments, 1)?.to_owned();
    optional(arguments.remove(0), &name)
}

/// Orders values of one type; an error where they cannot be ordered.
pub(crate) fn order(left: &dyn Val, right: &dyn Val) -> Result<Ordering, ExecutionError> {
    if left.get_type() != right.get_type() {
        return fail("list elements must have the same type");
    }
    left.as_comparer().ok_or_else(no_overload)?.compare(right)
}

/// Sorts `[key, value]` pairs by key, stably, and gives the values.
fn sorted<'b, 'v>(arguments: Arguments<'b, 'v>) -> Outcome<'b, 'v> {
    let mut pairs = list(&arguments, 0)?.iter().map(|pair| pair_of(pair.as_ref())).collect::<Result<Vec<_>, _>>()?;
    let mut problem = None;
    pairs.sort_by(|(left, _), (right, _)| {
        order(*left, *right).unwrap_or_else(|error| {
            problem.get_or_insert(error);
            Ordering::Equal
        })
    });
    match problem {
        Some(error) => Err(error),
        None => give_list(pairs.into_iter().map(|(_, value)| value.clone_as_boxed()).collect()),
    }
}

fn pair_of<'a, 'v>(pair: &'a (dyn Val + 'v)) -> Result<(&'a (dyn Val + 'v), &'a (dyn Val + 'v)), ExecutionError> {
    match pair.downcast_ref::<CelList>().map(CelList::inner) {
        Some([key, value]) => Ok((key.as_ref(), value.as_ref())),
        _ => Err(no_overload()),
    }
}

fn map_of_pairs<'b, 'v>(arguments: Arguments<'b, 'v>) -> Outcome<'b, 'v> {
    let mut entries = HashMap::new();
    for pair in list(&arguments, 0)? {
        let (key, value) = pair_of(pair.as_ref())?;
        entries.insert(CelMapKey::try_from(key.clone_as_boxed())?, value.clone_as_boxed());
    }
    give(CelMap::from(entries))
}

fn map_of_maps<'b, 'v>(arguments: Arguments<'b, 'v>) -> Outcome<'b, 'v> {
    let mut entries: HashMap<CelMapKey<'v>, Box<dyn Val + 'v>> = HashMap::new();
    for part in list(&arguments, 0)? {
        let part = part.downcast_ref::<CelMap>().ok_or_else(no_overload)?;
        for (key, value) in part.inner() {
            let key = CelMapKey::try_from(key.inner().clone_as_boxed())?;
            if entries.contains_key(&key) {
                return fail(format!("insert failed: key {} already exists", shown(&key)));
            }
            entries.insert(key, value.clone_as_boxed());
        }
    }
    give(CelMap::from(entries))
}

fn shown(key: &CelMapKey<'_>) -> String {
    let key = key.inner();
    if let Some(text) = key.downcast_ref::<CelString>() {
        text.inner().to_owned()
    } else if let Some(whole) = key.downcast_ref::<CelInt>() {
        whole.inner().to_string()
    } else {
        key.downcast_ref::<CelBool>().map_or_else(|| format!("{key:?}"), |value| value.inner().to_string())
    }
}
