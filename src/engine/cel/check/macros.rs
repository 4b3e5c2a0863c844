//! Macros, checked as written.

use cel::common::ast::{CallExpr, EntryExpr, Expr, MapExpr, operators};

use super::Checker;
use crate::cel::{library::runtime::condition_type, macros::Macro, types::Type};

impl Checker<'_> {
    pub(super) fn expansion(&mut self, found: Macro, id: u64, call: &CallExpr) -> Type {
        match found {
            Macro::Has => return self.has(&call.args[0]),
            Macro::NewCondition => return self.new_condition(id, call),
            Macro::Bind => {
                let value = self.expr(&call.args[1]);
                let names = found.variables(call);
                return self.under(names, vec![value], |checker| checker.expr(&call.args[2]));
            }
            _ => {}
        }
        let Some(target) = call.target.as_deref() else { return Type::Dyn };
        let range = self.expr(target);
        let names = found.variables(call);
        let variables = match found {
            Macro::OptMap | Macro::OptFlatMap => vec![self.optional_target(target.id, &range)],
            _ => self.elements(target.id, &range, names.len()),
        };
        self.under(names, variables.clone(), |checker| checker.body(found, call, &range, &variables))
    }

    pub(super) fn under<T>(&mut self, names: Vec<String>, types: Vec<Type>, work: impl FnOnce(&mut Self) -> T) -> T {
        let outside = self.bound.len();
        self.mixed = true;
        self.bound.extend(names.into_iter().zip(types));
        let result = work(self);
        self.bound.truncate(outside);
        result
    }

    /// The types of a macro's variables: elements of a list, or keys of a map; index or key and value where there are two.
    fn elements(&mut self, id: u64, range: &Type, count: usize) -> Vec<Type> {
        match (self.unifier.settled(range), count) {
            (Type::List(element), 1) => vec![*element],
            (Type::List(element), _) => vec![Type::Int, *element],
            (Type::Map(key, _), 1) => vec![*key],
            (Type::Map(key, value), _) => vec![*key, *value],
            (Type::Dyn, _) => vec![Type::Dyn; count],
            (other, _) => {
                let message =
                    format!("expression of type '{other}' cannot be range of a comprehension (must be list, map, or dynamic)");
                let hint =
                    matches!(other, Type::Optional(_)).then(|| "the value is optional: take it out with orValue([])".to_owned());
                self.error(id, message, hint);
                vec![Type::Dyn; count]
            }
        }
    }

    fn optional_target(&mut self, id: u64, target: &Type) -> Type {
        match self.unifier.settled(target) {
            Type::Optional(value) => *value,
            Type::Dyn => Type::Dyn,
            other => self.no_overload(id, "hasValue", true, &[other]),
        }
    }

    fn body(&mut self, found: Macro, call: &CallExpr, range: &Type, variables: &[Type]) -> Type {
        let arguments = &call.args[variables.len()..];
        let Some((last, conditions)) = arguments.split_last() else { return Type::Dyn };
        let element = variables.last().cloned().unwrap_or(Type::Dyn);
        for condition in conditions {
            let condition_type = self.expr(condition);
            self.must_be_bool(condition.id, operators::CONDITIONAL, &condition_type);
        }
        let of = self.expr(last);
        match found {
            Macro::All => self.must_be_bool(last.id, operators::LOGICAL_AND, &of),
            Macro::Exists => self.must_be_bool(last.id, operators::LOGICAL_OR, &of),
            Macro::ExistsOne => self.must_be_bool(last.id, operators::CONDITIONAL, &of),
            Macro::Filter => {
                self.must_be_bool(last.id, operators::CONDITIONAL, &of);
                Type::list(element)
            }
            Macro::Map | Macro::TransformList => Type::list(of),
            Macro::TransformMap => Type::Map(Box::new(variables[0].clone()), Box::new(of)),
            Macro::TransformMapEntry => match self.unifier.settled(&of) {
                entry @ (Type::Map(..) | Type::Dyn) => entry,
                other => self.no_overload(last.id, "cel.@mapInsert", false, &[Type::map(Type::Dyn), other]),
            },
            Macro::SortBy => self.sorted(last.id, range, &of, element),
            Macro::OptMap => Type::optional(of),
            Macro::OptFlatMap => match self.unifier.settled(&of) {
                optional @ (Type::Optional(_) | Type::Dyn) => optional,
                other => {
                    self.no_overload(last.id, operators::CONDITIONAL, false, &[Type::Bool, other, Type::optional(Type::Dyn)])
                }
            },
            Macro::Has | Macro::Bind | Macro::NewCondition => of,
        }
    }

    /// The condition of a macro; `operator` is what the macro becomes, which is how kro words it.
    fn must_be_bool(&mut self, id: u64, operator: &str, of: &Type) -> Type {
        if self.unifier.assignable(of, &Type::Bool) {
            return Type::Bool;
        }
        let shown = self.unifier.resolved(of);
        let hint = Some(format!("the condition of the macro must be bool, and is {shown}"));
        if operator == operators::CONDITIONAL {
            self.error(id, format!("found no matching overload for '{operator}' applied to '({shown}, dyn, dyn)'"), hint);
        } else {
            self.expected_bool(id, of, hint);
        }
        Type::Bool
    }

    fn sorted(&mut self, id: u64, range: &Type, key: &Type, element: Type) -> Type {
        const ORDERED: [Type; 8] =
            [Type::Bool, Type::Bytes, Type::Double, Type::Duration, Type::Timestamp, Type::Int, Type::String, Type::Uint];
        // Of a key that may be anything, as that of an empty list, the first overload decides.
        if matches!(self.unifier.shallow(key), Type::Var(_)) {
            self.unifier.assignable(key, &Type::Int);
        }
        let key = self.unifier.settled(key);
        if key != Type::Dyn && !ORDERED.contains(&key) {
            self.no_overload(id, "@sortByAssociatedKeys", true, &[range.clone(), Type::list(key)]);
        }
        Type::list(element)
    }

    fn new_condition(&mut self, id: u64, call: &CallExpr) -> Type {
        let target = call.target.as_deref().map_or(Type::Dyn, |target| self.expr(target));
        let given = match &call.args[0].expr {
            Expr::Map(map) => self.values_of(map),
            _ => Type::Dyn,
        };
        let runtime = Type::Opaque("kro.run.Runtime".into());
        let is_runtime = target == Type::Dyn || target == runtime;
        // Values of several types are `dyn` together, and so what they are is seen when the condition is made.
        if !is_runtime || !self.unifier.assignable(&given, &Type::String) {
            let given = self.unifier.resolved(&given);
            return self.no_overload(id, "newCondition", true, &[target, Type::map(given)]);
        }
        condition_type()
    }

    /// The type of a map's values; its keys are bare words.
    fn values_of(&mut self, map: &MapExpr) -> Type {
        let mut values = None;
        for entry in &map.entries {
            let EntryExpr::MapEntry(entry) = &entry.expr else { continue };
            let value = self.expr(&entry.value);
            values = Some(self.joined(values, value));
        }
        values.unwrap_or(Type::Dyn)
    }
}
