//! What an expression says of conditions with texts that are literals (kro.md 15.3): those can be judged before anything runs.

use cel::{
    IdedExpr,
    common::ast::{CallExpr, EntryExpr, Expr},
};

use super::macros::{literal_text, simple_name};

/// A call of the variable `runtime`. What is computed is not told.
#[derive(Clone, Debug, PartialEq, Eq)]
pub enum ConditionUse {
    /// `runtime.newCondition({type: 'A', status: 'True'})`.
    Made {
        /// The type.
        kind: Option<String>,
        /// The status.
        status: Option<String>,
    },
    /// `runtime.condition(schema, 'Ready')`: one of the instance's own.
    Read {
        /// The type.
        kind: String,
    },
}

impl ConditionUse {
    pub(super) fn of(call: &CallExpr) -> Option<Self> {
        let target = call.target.as_deref().and_then(simple_name);
        if target != Some("runtime") {
            return None;
        }
        match (call.func_name.as_str(), call.args.as_slice()) {
            ("newCondition", [given]) => Some(Self::Made { kind: entry(given, "type"), status: entry(given, "status") }),
            ("condition", [object, kind]) if simple_name(object) == Some("schema") => {
                Some(Self::Read { kind: literal_text(kind)?.to_owned() })
            }
            _ => None,
        }
    }
}

/// The text that a map has for a bare word.
fn entry(map: &IdedExpr, key: &str) -> Option<String> {
    let Expr::Map(map) = &map.expr else { return None };
    map.entries.iter().find_map(|entry| match &entry.expr {
        EntryExpr::MapEntry(entry) if simple_name(&entry.key) == Some(key) => literal_text(&entry.value).map(str::to_owned),
        _ => None,
    })
}
