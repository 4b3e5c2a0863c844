//! From the tree as written to the tree that is evaluated.
//!
//! Macros become comprehensions, and functions of ours (their names start with `@`, which no author can write) are woven in:
//! * `@range(x)` around what a macro iterates pays for the iteration before it starts, and puts the keys of a map in order;
//! * `@copy(x)` around what becomes part of a new list or map pays for the copy, so that doubling cannot grow without bound;
//! * `@add`, `@equals`, `@differs`, `@contains` stand for `+ == != in`, which may take time in the size of their operands;
//! * `@weigh(x)` around arguments of functions pays for reading long texts and lists;
//! * `@field(x, name)` reads names that carry Kubernetes' escapes (`my__dash__field`).
//!
//! Generated nodes keep the number of the call they come from: that is their place in the source.

use cel::{
    IdedExpr,
    common::ast::{
        CallExpr, ComprehensionExpr, EntryExpr, Expr, IdedEntryExpr, ListExpr, LiteralValue, MapEntryExpr, MapExpr, SelectExpr,
        operators,
    },
};

use super::{
    environment::Environment,
    macros::{Macro, simple_name},
    references::qualified,
    value::has_escape,
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

/// The accumulator of every comprehension; `@` keeps it apart from variables of authors.
const RESULT: &str = "@result";
/// The `[key, value]` pair of a two-variable macro.
pub(super) const ENTRY: &str = "@entry";
/// The target of `optMap`.
const OPTIONAL: &str = "@optional";

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
            target = Some(self.weighed(name, self.expr(receiver)?));
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

/// The comprehension that a macro over a range stands for; `arguments` are those after the variables.
fn comprehension(found: Macro, id: u64, range: IdedExpr, names: &[&str], mut arguments: Vec<IdedExpr>) -> IdedExpr {
    let body = arguments.pop().unwrap_or_default();
    let condition = arguments.pop();
    let over = Over { id, range, names };
    match found {
        Macro::All => over.all(body),
        Macro::Exists => over.exists(body),
        Macro::ExistsOne => over.exists_one(body),
        Macro::Filter => {
            let element = ident(id, over.names[0]);
            over.list(Some(body), element)
        }
        Macro::SortBy => {
            let pair = node(id, Expr::List(ListExpr::new(vec![body, ident(id, over.names[0])])));
            call(id, "@sorted", vec![over.list(None, pair)])
        }
        Macro::TransformMap => {
            let key = ident(id, over.names[0]);
            let pair = node(id, Expr::List(ListExpr::new(vec![key, copy(id, body)])));
            call(id, "@map_of_pairs", vec![over.list(condition, pair)])
        }
        Macro::TransformMapEntry => call(id, "@map_of_maps", vec![over.list(condition, body)]),
        _ => over.list(condition, copy(id, body)),
    }
}

fn copy(id: u64, part: IdedExpr) -> IdedExpr {
    call(id, "@copy", vec![part])
}

/// What is iterated, and the names of the variables.
struct Over<'a> {
    id: u64,
    range: IdedExpr,
    names: &'a [&'a str],
}

impl Over<'_> {
    fn all(self, condition: IdedExpr) -> IdedExpr {
        let id = self.id;
        let go_on = call(id, operators::NOT_STRICTLY_FALSE, vec![ident(id, RESULT)]);
        let step = call(id, operators::LOGICAL_AND, vec![ident(id, RESULT), self.bound(condition)]);
        self.fold(boolean(id, true), go_on, step, ident(id, RESULT))
    }

    fn exists(self, condition: IdedExpr) -> IdedExpr {
        let id = self.id;
        let negated = call(id, operators::LOGICAL_NOT, vec![ident(id, RESULT)]);
        let go_on = call(id, operators::NOT_STRICTLY_FALSE, vec![negated]);
        let step = call(id, operators::LOGICAL_OR, vec![ident(id, RESULT), self.bound(condition)]);
        self.fold(boolean(id, false), go_on, step, ident(id, RESULT))
    }

    fn exists_one(self, condition: IdedExpr) -> IdedExpr {
        let id = self.id;
        let plus_one = call(id, operators::ADD, vec![ident(id, RESULT), integer(id, 1)]);
        let step = call(id, operators::CONDITIONAL, vec![self.bound(condition), plus_one, ident(id, RESULT)]);
        let is_one = call(id, operators::EQUALS, vec![ident(id, RESULT), integer(id, 1)]);
        self.fold(integer(id, 0), boolean(id, true), step, is_one)
    }

    /// A list of `element` where `condition` holds. The interpreter recognises this shape and appends in place.
    fn list(self, condition: Option<IdedExpr>, element: IdedExpr) -> IdedExpr {
        let id = self.id;
        let one = node(id, Expr::List(ListExpr::new(vec![self.bound(element)])));
        let append = call(id, operators::ADD, vec![ident(id, RESULT), one]);
        let step = match condition {
            None => append,
            Some(condition) => call(id, operators::CONDITIONAL, vec![self.bound(condition), append, ident(id, RESULT)]),
        };
        self.fold(node(id, Expr::List(ListExpr::default())), boolean(id, true), step, ident(id, RESULT))
    }

    /// Binds the two variables of a two-variable macro around a part of its body.
    fn bound(&self, part: IdedExpr) -> IdedExpr {
        let [key, value] = self.names else { return part };
        let nth = |index| call(self.id, operators::INDEX, vec![ident(self.id, ENTRY), integer(self.id, index)]);
        // `@entry` of an inner macro must not be seen between the two, so the value is bound first, outside.
        bind(self.id, value, nth(1), bind(self.id, key, nth(0), part))
    }

    fn fold(self, init: IdedExpr, go_on: IdedExpr, step: IdedExpr, result: IdedExpr) -> IdedExpr {
        let (function, variable) = match self.names {
            [name] => ("@range", *name),
            _ => ("@entries", ENTRY),
        };
        let comprehension = ComprehensionExpr {
            iter_range: call(self.range.id, function, vec![self.range]),
            iter_var: variable.to_owned(),
            iter_var2: None,
            accu_var: RESULT.to_owned(),
            accu_init: init,
            loop_cond: go_on,
            loop_step: step,
            result,
        };
        node(self.id, Expr::Comprehension(Box::new(comprehension)))
    }
}

/// `value` under a name in `body`: a comprehension over nothing.
fn bind(id: u64, name: &str, value: IdedExpr, body: IdedExpr) -> IdedExpr {
    let comprehension = ComprehensionExpr {
        iter_range: node(id, Expr::List(ListExpr::default())),
        iter_var: "@none".to_owned(),
        iter_var2: None,
        accu_var: name.to_owned(),
        accu_init: value,
        loop_cond: boolean(id, false),
        loop_step: ident(id, name),
        result: body,
    };
    node(id, Expr::Comprehension(Box::new(comprehension)))
}

fn optional_map(id: u64, target: IdedExpr, name: &str, body: IdedExpr, wrap: bool) -> IdedExpr {
    let member = |function: &str| {
        let target = Some(Box::new(ident(id, OPTIONAL)));
        node(id, Expr::Call(CallExpr { func_name: function.to_owned(), target, args: Vec::new() }))
    };
    let none = call(id, "optional.none", Vec::new());
    let mapped = bind(id, name, member("value"), body);
    let mapped = if wrap { call(id, "optional.of", vec![mapped]) } else { mapped };
    bind(id, OPTIONAL, target, call(id, operators::CONDITIONAL, vec![member("hasValue"), mapped, none]))
}

fn node(id: u64, expr: Expr) -> IdedExpr {
    IdedExpr { id, expr }
}

fn call(id: u64, function: &str, args: Vec<IdedExpr>) -> IdedExpr {
    node(id, Expr::Call(CallExpr { func_name: function.to_owned(), target: None, args }))
}

fn ident(id: u64, name: &str) -> IdedExpr {
    node(id, Expr::Ident(name.to_owned()))
}

fn boolean(id: u64, value: bool) -> IdedExpr {
    node(id, Expr::Literal(LiteralValue::Boolean(value.into())))
}

fn integer(id: u64, value: i64) -> IdedExpr {
    node(id, Expr::Literal(LiteralValue::Int(value.into())))
}

fn text(id: u64, value: &str) -> IdedExpr {
    node(id, Expr::Literal(LiteralValue::String(value.to_owned().into())))
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

fn literal_text(expr: &IdedExpr) -> Option<&str> {
    match &expr.expr {
        Expr::Literal(LiteralValue::String(value)) => Some(value.inner()),
        _ => None,
    }
}

fn fail(id: u64, message: &str) -> Lowered {
    Err(LowerError { id, message: message.to_owned() })
}
