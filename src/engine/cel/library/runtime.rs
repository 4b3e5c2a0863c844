//! kro's conditions of authors: `runtime.newCondition({…})`, `runtime.condition(object, type)` (kro.md 15.3).
//!
//! `runtime` is a variable of the caller's: an object whose `status.conditions` are the built-in conditions of the instance.
//! Lowering makes `runtime.condition(schema, 'Ready')` read those, since `schema` is the instance without status.

use std::{collections::HashMap, sync::Arc};

use cel::common::{
    types::{CelList, CelMap, CelMapKey, CelString},
    value::Val,
};

use super::{
    Entry,
    arguments::{Arguments, Outcome, boxed_text, fail, give, map, no_overload, text},
    ours,
};
use crate::cel::types::{Structure, Type};

pub(super) fn entries() -> Vec<Entry> {
    vec![
        ours("newCondition", &["kro.run.Runtime.newCondition(map(string, string)) -> kro.run.Condition"], new_condition),
        ours("condition", &["kro.run.Runtime.condition(dyn, string) -> kro.run.Condition"], condition),
    ]
}

const FIELDS: [&str; 4] = ["type", "status", "reason", "message"];

/// What `newCondition` gives.
pub(crate) fn condition_type() -> Type {
    let fields = FIELDS.iter().map(|name| ((*name).to_owned(), Type::String)).collect();
    Type::Struct(Arc::new(Structure::new("kro.run.Condition", fields, false)))
}

fn new_condition<'b, 'v>(arguments: Arguments<'b, 'v>) -> Outcome<'b, 'v> {
    let given = map(&arguments, 1)?;
    for name in FIELDS {
        let value = given.inner().get(&CelMapKey::from(name.to_owned()));
        if let Some(other) = value.filter(|value| value.downcast_ref::<CelString>().is_none()) {
            return fail(format!("runtime.newCondition: {name} must be a string, got {}", other.get_type().name()));
        }
    }
    let status = field(given, "status");
    if !matches!(status, "True" | "False" | "Unknown") {
        return fail(format!("runtime.newCondition: status must be one of True, False, Unknown (got {status:?})"));
    }
    if field(given, "type").is_empty() {
        return fail("runtime.newCondition: type must not be empty");
    }
    give(condition_of(Some(given)))
}

fn condition<'b, 'v>(arguments: Arguments<'b, 'v>) -> Outcome<'b, 'v> {
    let wanted = text(&arguments, 2)?;
    let object = arguments[1].downcast_ref::<CelMap>().ok_or_else(no_overload)?;
    let maps = conditions(object).into_iter().flatten().filter_map(|condition| condition.downcast_ref::<CelMap>());
    let found = maps.into_iter().find(|condition| field(condition, "type") == wanted);
    give(condition_of(found))
}

fn conditions<'a, 'v>(object: &'a CelMap<'v>) -> Option<&'a [Box<dyn Val + 'v>]> {
    let status = object.inner().get(&CelMapKey::from("status"))?.downcast_ref::<CelMap>()?;
    Some(status.inner().get(&CelMapKey::from("conditions"))?.downcast_ref::<CelList>()?.inner())
}

fn field<'a>(map: &'a CelMap<'_>, name: &str) -> &'a str {
    map.inner()
        .get(&CelMapKey::from(name.to_owned()))
        .and_then(|value| value.downcast_ref::<CelString>())
        .map_or("", CelString::inner)
}

fn condition_of<'v>(from: Option<&CelMap<'_>>) -> CelMap<'v> {
    let value = |name| boxed_text(from.map_or("", |from| field(from, name)));
    CelMap::from(FIELDS.into_iter().map(|name| (CelMapKey::from(name.to_owned()), value(name))).collect::<HashMap<_, _>>())
}
