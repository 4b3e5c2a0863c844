//! Which part of an expression failed, and what it was reading.
//!
//! The interpreter says what went wrong, not where. A failed expression is therefore evaluated again from the outside in: the
//! innermost part that fails while its own parts do not is the culprit. That costs time only where something failed.

use std::collections::BTreeMap;

use cel::{
    Context, IdedExpr, Value,
    common::{
        ast::{CallExpr, ComprehensionExpr, EntryExpr, Expr, LiteralValue, operators},
        types::{CelBool, CelInt, CelList, CelString},
        value::Val,
    },
};

use super::lower::ENTRY;

/// Where an evaluation failed.
#[derive(Default)]
pub(super) struct Place {
    /// Number of the node.
    pub(super) id: Option<u64>,
    /// What it was reading, as a path from a variable.
    pub(super) path: Option<String>,
}

/// Finds the part that fails.
pub(super) fn culprit(tree: &IdedExpr, context: &Context<'_, '_>) -> Place {
    find(tree, context, &BTreeMap::new())
}

/// What variables of macros stand for: `i` in `items.map(i, …)` is `items[2]`.
type Names = BTreeMap<String, String>;

fn find(expr: &IdedExpr, context: &Context<'_, '_>, names: &Names) -> Place {
    if let Expr::Comprehension(comprehension) = &expr.expr {
        if let Some(place) = inside(comprehension, context, names) {
            return place;
        }
    } else if let Some(part) = parts(expr, context).into_iter().find(|part| fails(part, context)) {
        return find(part, context, names);
    }
    Place { id: Some(expr.id), path: path(expr, context, names) }
}

fn fails(expr: &IdedExpr, context: &Context<'_, '_>) -> bool {
    Value::resolve_val(expr, context).is_err()
}

/// The parts that the interpreter evaluates before the whole, in its order.
fn parts<'e>(expr: &'e IdedExpr, context: &Context<'_, '_>) -> Vec<&'e IdedExpr> {
    match &expr.expr {
        Expr::Call(call) if call.func_name == operators::CONDITIONAL => branch(call, context),
        Expr::Call(call) => {
            // A target that does not resolve by itself may be a namespace (`json` in `json.marshal(x)`).
            let target = call.target.as_deref().filter(|target| !matches!(&target.expr, Expr::Ident(_)));
            target.into_iter().chain(&call.args).collect()
        }
        Expr::Select(select) => vec![&select.operand],
        Expr::List(list) => list.elements.iter().collect(),
        Expr::Map(map) => map.entries.iter().flat_map(|entry| entry_parts(&entry.expr)).collect(),
        _ => Vec::new(),
    }
}

fn branch<'e>(call: &'e CallExpr, context: &Context<'_, '_>) -> Vec<&'e IdedExpr> {
    let taken = match Value::resolve_val(&call.args[0], context) {
        Ok(condition) if condition.downcast_ref::<CelBool>().is_some_and(|condition| *condition.inner()) => 1,
        Ok(_) => 2,
        Err(_) => 0,
    };
    vec![&call.args[taken]]
}

fn entry_parts(entry: &EntryExpr) -> Vec<&IdedExpr> {
    match entry {
        EntryExpr::MapEntry(entry) => vec![&entry.key, &entry.value],
        EntryExpr::StructField(field) => vec![&field.value],
    }
}

fn inside(comprehension: &ComprehensionExpr, context: &Context<'_, '_>, names: &Names) -> Option<Place> {
    if let Some(part) = [&comprehension.accu_init, &comprehension.iter_range].into_iter().find(|part| fails(part, context)) {
        return Some(find(part, context, names));
    }
    let init = Value::resolve_val(&comprehension.accu_init, context).ok()?;
    let range = Value::resolve_val(&comprehension.iter_range, context).ok()?;
    let mut names = names.clone();
    if let Some(meaning) = path(&comprehension.accu_init, context, &names) {
        names.insert(comprehension.accu_var.clone(), meaning);
    }
    let range_path = path(&comprehension.iter_range, context, &names);
    let mut inner = context.new_inner_scope();
    inner.add_variable_as_val(&comprehension.accu_var, init.into_owned());
    for (index, item) in range.downcast_ref::<CelList>()?.inner().iter().enumerate() {
        inner.add_variable_as_val(&comprehension.iter_var, item.clone_as_boxed());
        if fails(&comprehension.loop_step, &inner) {
            if let Some(range) = range_path {
                names.insert(comprehension.iter_var.clone(), format!("{range}[{index}]"));
            }
            return Some(find(&comprehension.loop_step, &inner, &names));
        }
    }
    fails(&comprehension.result, &inner).then(|| find(&comprehension.result, &inner, &names))
}

/// The path that an expression reads, where it is one.
fn path(expr: &IdedExpr, context: &Context<'_, '_>, names: &Names) -> Option<String> {
    match &expr.expr {
        Expr::Ident(name) => Some(names.get(name).cloned().unwrap_or_else(|| name.clone())).filter(|name| !name.starts_with('@')),
        Expr::Select(select) => Some(field(&path(&select.operand, context, names)?, &select.field)),
        Expr::Call(call) => match (call.func_name.as_str(), call.args.as_slice()) {
            (operators::INDEX, [operand, index]) if is_entry(operand) => {
                let is_value = matches!(&index.expr, Expr::Literal(LiteralValue::Int(index)) if *index.inner() == 1);
                names.get(ENTRY).filter(|_| is_value).cloned()
            }
            (operators::INDEX | operators::OPT_INDEX, [operand, index]) => {
                let operand = path(operand, context, names)?;
                let index = Value::resolve_val(index, context).ok()?;
                Some(element(&operand, index.as_ref()))
            }
            (operators::OPT_SELECT | "@field" | "@optional_field", [operand, name]) => {
                let operand = path(operand, context, names)?;
                let name = Value::resolve_val(name, context).ok()?;
                Some(field(&operand, name.downcast_ref::<CelString>()?.inner()))
            }
            ("@range" | "@entries" | "@copy" | "@weigh", [whole]) => path(whole, context, names),
            _ => None,
        },
        _ => None,
    }
}

fn is_entry(expr: &IdedExpr) -> bool {
    matches!(&expr.expr, Expr::Ident(name) if name == ENTRY)
}

fn field(operand: &str, name: &str) -> String {
    if name.contains('.') || name.is_empty() { format!("{operand}[{name:?}]") } else { format!("{operand}.{name}") }
}

fn element(operand: &str, index: &dyn Val) -> String {
    if let Some(name) = index.downcast_ref::<CelString>() {
        field(operand, name.inner())
    } else if let Some(index) = index.downcast_ref::<CelInt>() {
        format!("{operand}[{}]", index.inner())
    } else {
        format!("{operand}[?]")
    }
}
