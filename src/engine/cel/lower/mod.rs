//! From the tree as written to the tree that is evaluated.
//!
//! Macros become comprehensions, and functions of ours (their names start with `@`, which no author can write) are woven in:
//! * `@range(x)` around what a macro iterates pays for the iteration before it starts, and puts the keys of a map in order;
//! * `@copy(x)` around what becomes part of a new list or map pays for the copy, so that doubling cannot grow without bound;
//! * `@add`, `@equals`, `@differs`, `@contains` stand for `+ == != in`, which may take time in the size of their operands;
//! * `@weigh(x)` around arguments of functions pays for reading long texts and lists;
//! * `@utc(x)` is a time in UTC, `@index_of` and `@last_index_of` stand for those that begin at a place;
//! * `@field(x, name)` reads names that carry Kubernetes' escapes (`my__dash__field`).
//!
//! Generated nodes keep the number of the call they come from: that is their place in the source.

mod fold;
mod node;

use cel::{
    IdedExpr,
    common::ast::{CallExpr, EntryExpr, Expr, IdedEntryExpr, ListExpr, MapEntryExpr, MapExpr, SelectExpr, operators},
};

use fold::{bind, comprehension, optional_map};
use node::{call, ident, node, text};

use super::{
    environment::Environment,
    escape::has_escape,
    macros::{Macro, literal_text, simple_name},
    references::qualified,
};

/// A misused macro, and the number of the node at fault.
pub(super) struct LowerError {
    pub(super) id: u64,
    pub(super) message: String,
}

type Lowered = Result<IdedExpr, LowerError>;

/// Rewrites a tree.
pub(super) fn lower(tree: &IdedExpr, environment: &Environment) -> Lowered {
    Lower { environment }.expr(tree)
}

/// Parts of a time that are those of UTC where no zone is given, whatever zone the time was written in.
const IN_UTC: [&str; 10] = [
    "getDate",
    "getDayOfMonth",
    "getDayOfWeek",
    "getDayOfYear",
    "getFullYear",
    "getHours",
    "getMilliseconds",
    "getMinutes",
    "getMonth",
    "getSeconds",
];

/// The `[key, value]` pair of a two-variable macro.
pub(super) const ENTRY: &str = "@entry";

struct Lower<'a> {
    environment: &'a Environment,
}

impl Lower<'_> {
    fn expr(&self, expr: &IdedExpr) -> Lowered {
        let id = expr.id;
        Ok(match &expr.expr {
            Expr::Call(call) => match Macro::of(call) {
                Some(found) => self.expand(found, id, call)?,
                None => self.call(id, call)?,
            },
            Expr::Select(select) => self.select(id, select, select.test)?,
            Expr::List(list) => {
                let elements = list.elements.iter().map(|element| self.copied(element)).collect::<Result<_, _>>()?;
                node(id, Expr::List(ListExpr { elements, optional_indices: list.optional_indices.clone() }))
            }
            Expr::Map(map) => self.map(id, map)?,
            Expr::Struct(structure) => {
                let mut structure = structure.clone();
                for entry in &mut structure.entries {
                    if let EntryExpr::StructField(field) = &mut entry.expr {
                        field.value = self.expr(&field.value)?;
                    }
                }
                node(id, Expr::Struct(structure))
            }
            Expr::Unspecified => return fail(id, "expression is incomplete"),
            Expr::Ident(_) | Expr::Literal(_) | Expr::Comprehension(_) => expr.clone(),
        })
    }

    fn map(&self, id: u64, map: &MapExpr) -> Lowered {
        let mut entries = Vec::with_capacity(map.entries.len());
        for entry in &map.entries {
            let EntryExpr::MapEntry(MapEntryExpr { key, value, optional }) = &entry.expr else {
                return fail(entry.id, "map entry expected");
            };
            let lowered = MapEntryExpr { key: self.expr(key)?, value: self.copied(value)?, optional: *optional };
            entries.push(IdedEntryExpr { id: entry.id, expr: EntryExpr::MapEntry(lowered) });
        }
        Ok(node(id, Expr::Map(MapExpr { entries })))
    }

    fn select(&self, id: u64, select: &SelectExpr, test: bool) -> Lowered {
        let operand = self.expr(&select.operand)?;
        if !has_escape(&select.field) {
            let operand = Box::new(operand);
            return Ok(node(id, Expr::Select(SelectExpr { operand, field: select.field.clone(), test })));
        }
        let function = if test { "@has_field" } else { "@field" };
        Ok(call(id, function, vec![operand, text(id, &select.field)]))
    }

    fn call(&self, id: u64, written: &CallExpr) -> Lowered {
        let name = written.func_name.as_str();
        let mut args = written.args.iter().map(|argument| self.expr(argument)).collect::<Result<Vec<_>, _>>()?;
        let function = match name {
            operators::ADD => "@add",
            operators::EQUALS => "@equals",
            operators::NOT_EQUALS => "@differs",
            operators::IN => "@contains",
            operators::OPT_SELECT if literal_text(&args[1]).is_some_and(has_escape) => "@optional_field",
            _ => name,
        };
        let mut target = None;
        if let Some(receiver) = written.target.as_deref() {
            let full = qualified(receiver, name).filter(|full| self.environment.has_function(full));
            if let Some(full) = full {
                // By its full name, so that a variable called `json` does not hide `json.marshal`.
                args = args.into_iter().map(|argument| self.weighed(&full, argument)).collect();
                return match full.as_str() {
                    "math.greatest" => extreme(id, "math.@max", args),
                    "math.least" => extreme(id, "math.@min", args),
                    _ => Ok(call(id, self.environment.replacement(&full), args)),
                };
            }
            let weighed = self.weighed(name, self.expr(receiver)?);
            match (name, args.len()) {
                ("indexOf", 2) => return Ok(call(id, "@index_of", std::iter::once(weighed).chain(args).collect())),
                ("lastIndexOf", 2) => return Ok(call(id, "@last_index_of", std::iter::once(weighed).chain(args).collect())),
                (name, 0) if IN_UTC.contains(&name) => target = Some(call(id, "@utc", vec![weighed])),
                _ => target = Some(weighed),
            }
        }
        if name.starts_with(char::is_alphabetic) {
            args = args.into_iter().map(|argument| self.weighed(name, argument)).collect();
        }
        if name == "condition"
            && target.as_ref().is_some_and(|target| is_weighed(target, "runtime"))
            && let Some(object) = args.first_mut().filter(|object| is_weighed(object, "schema"))
        {
            *object = ident(id, "runtime");
        }
        let function = self.environment.replacement(function).to_owned();
        Ok(node(id, Expr::Call(CallExpr { func_name: function, target: target.map(Box::new), args })))
    }

    /// Pays for what a function reads; functions that copy their arguments into the result pay for all of it.
    fn weighed(&self, function: &str, argument: IdedExpr) -> IdedExpr {
        if matches!(argument.expr, Expr::Literal(_)) || function == "dyn" || function == "type" {
            return argument;
        }
        let weigh = if self.environment.copies(function) { "@copy" } else { "@weigh" };
        call(argument.id, weigh, vec![argument])
    }

    /// A part of a new list or map.
    fn copied(&self, part: &IdedExpr) -> Lowered {
        let lowered = self.expr(part)?;
        let fresh = matches!(lowered.expr, Expr::Literal(_) | Expr::List(_) | Expr::Map(_) | Expr::Comprehension(_));
        Ok(if fresh { lowered } else { call(part.id, "@copy", vec![lowered]) })
    }

    fn expand(&self, found: Macro, id: u64, written: &CallExpr) -> Lowered {
        let count = found.variable_count(written);
        let mut names = Vec::with_capacity(count);
        for argument in &written.args[..count] {
            let Some(name) = simple_name(argument) else { return fail(argument.id, "argument must be a simple name") };
            names.push(name);
        }
        let arguments = &written.args[count..];
        match found {
            Macro::Has => return self.has(&arguments[0]),
            Macro::NewCondition => return self.new_condition(id, written),
            Macro::Bind => {
                let value = self.copied(&arguments[0])?;
                return Ok(bind(id, names[0], value, self.expr(&arguments[1])?));
            }
            Macro::OptMap | Macro::OptFlatMap => {
                let target = self.target(id, written)?;
                let body = self.expr(&arguments[0])?;
                return Ok(optional_map(id, target, names[0], body, found == Macro::OptMap));
            }
            _ => {}
        }
        let range = self.target(id, written)?;
        let arguments = arguments.iter().map(|argument| self.expr(argument)).collect::<Result<Vec<_>, _>>()?;
        Ok(comprehension(found, id, range, &names, arguments))
    }

    fn target(&self, id: u64, written: &CallExpr) -> Lowered {
        match written.target.as_deref() {
            Some(target) => self.expr(target),
            None => fail(id, "macro needs a target"),
        }
    }

    fn has(&self, argument: &IdedExpr) -> Lowered {
        match &argument.expr {
            Expr::Select(select) => self.select(argument.id, select, true),
            _ => fail(argument.id, "invalid argument to has() macro"),
        }
    }

    /// `runtime.newCondition({type: 'A', …})`: bare words become the keys.
    fn new_condition(&self, id: u64, written: &CallExpr) -> Lowered {
        const KEYS: [&str; 4] = ["type", "status", "reason", "message"];
        let argument = &written.args[0];
        let Expr::Map(map) = &argument.expr else {
            return fail(argument.id, "runtime.newCondition: argument must be a map literal");
        };
        let mut entries: Vec<(&str, IdedEntryExpr)> = Vec::new();
        for entry in &map.entries {
            let EntryExpr::MapEntry(MapEntryExpr { key, value, optional }) = &entry.expr else { continue };
            let name = condition_key(key, &KEYS)?;
            if entries.iter().any(|(seen, _)| *seen == name) {
                return fail(key.id, &format!("runtime.newCondition: duplicate key {name:?}"));
            }
            let value = self.expr(value)?;
            let lowered = MapEntryExpr { key: text(key.id, name), value, optional: *optional };
            entries.push((name, IdedEntryExpr { id: entry.id, expr: EntryExpr::MapEntry(lowered) }));
        }
        for required in ["type", "status"] {
            if !entries.iter().any(|(name, _)| *name == required) {
                return fail(argument.id, &format!("runtime.newCondition: '{required}' is required"));
            }
        }
        let fields = node(argument.id, Expr::Map(MapExpr { entries: entries.into_iter().map(|(_, entry)| entry).collect() }));
        let target = Some(Box::new(self.target(id, written)?));
        Ok(node(id, Expr::Call(CallExpr { func_name: written.func_name.clone(), target, args: vec![fields] })))
    }
}

/// The greatest or least of several numbers: of two by themselves, of more as a list.
fn extreme(id: u64, function: &str, args: Vec<IdedExpr>) -> Lowered {
    match args.len() {
        0 => fail(id, "requires at least one argument"),
        1 | 2 => Ok(call(id, function, args)),
        _ => Ok(call(id, function, vec![node(id, Expr::List(ListExpr::new(args)))])),
    }
}

fn condition_key<'a>(key: &'a IdedExpr, allowed: &[&str]) -> Result<&'a str, LowerError> {
    let Some(name) = simple_name(key) else {
        let allowed = allowed.join(", ");
        let message =
            format!("runtime.newCondition: keys must be bare identifiers ({allowed}); quoted or computed keys are not allowed");
        return Err(LowerError { id: key.id, message });
    };
    if allowed.contains(&name) {
        return Ok(name);
    }
    let allowed = allowed.join(", ");
    Err(LowerError { id: key.id, message: format!("runtime.newCondition: unknown key {name:?} (allowed: {allowed})") })
}

/// Whether an argument is a variable of this name.
fn is_weighed(argument: &IdedExpr, name: &str) -> bool {
    match &argument.expr {
        Expr::Call(call) if matches!(call.func_name.as_str(), "@weigh" | "@copy") => {
            call.args.iter().any(|inner| is_weighed(inner, name))
        }
        _ => simple_name(argument) == Some(name),
    }
}

fn fail(id: u64, message: &str) -> Lowered {
    Err(LowerError { id, message: message.to_owned() })
}
