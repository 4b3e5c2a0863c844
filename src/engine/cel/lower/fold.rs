//! The comprehensions that macros become.

use cel::{
    IdedExpr,
    common::ast::{CallExpr, ComprehensionExpr, Expr, ListExpr, operators},
};

use super::{
    ENTRY,
    node::{boolean, call, ident, integer, node},
};
use crate::cel::macros::Macro;

/// The accumulator of every comprehension; `@` keeps it apart from variables of authors.
const RESULT: &str = "@result";
/// The target of `optMap`.
const OPTIONAL: &str = "@optional";

/// The comprehension that a macro over a range stands for; `arguments` are those after the variables.
pub(super) fn comprehension(found: Macro, id: u64, range: IdedExpr, names: &[&str], mut arguments: Vec<IdedExpr>) -> IdedExpr {
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
pub(super) fn bind(id: u64, name: &str, value: IdedExpr, body: IdedExpr) -> IdedExpr {
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

pub(super) fn optional_map(id: u64, target: IdedExpr, name: &str, body: IdedExpr, wrap: bool) -> IdedExpr {
    let member = |function: &str| {
        let target = Some(Box::new(ident(id, OPTIONAL)));
        node(id, Expr::Call(CallExpr { func_name: function.to_owned(), target, args: Vec::new() }))
    };
    let none = call(id, "optional.none", Vec::new());
    let mapped = bind(id, name, member("value"), body);
    let mapped = if wrap { call(id, "optional.of", vec![mapped]) } else { mapped };
    bind(id, OPTIONAL, target, call(id, operators::CONDITIONAL, vec![member("hasValue"), mapped, none]))
}
