//! Calls and operators.

use cel::{
    IdedExpr,
    common::ast::{CallExpr, Expr, operators},
};

use super::{Checker, alike::alike, unify::most_general};
use crate::cel::{
    library::re2,
    macros::{Macro, literal_text},
    references::{qualified, root, unknown_of_library},
    types::Type,
};

impl Checker<'_> {
    pub(super) fn call(&mut self, id: u64, call: &CallExpr) -> Type {
        if let Some(found) = Macro::of(call) {
            return self.expansion(found, id, call);
        }
        match (call.func_name.as_str(), call.args.as_slice()) {
            (operators::OPT_SELECT, [operand, name]) => return self.optional_field(id, operand, name),
            (operators::CONDITIONAL, [condition, left, right]) => return self.conditional(id, condition, left, right),
            (operators::LOGICAL_AND | operators::LOGICAL_OR, operands) => return self.logical(operands),
            _ => {}
        }
        let full = call.target.as_deref().and_then(|target| qualified(target, &call.func_name));
        if let Some(full) = full.filter(|full| self.environment.has_function(full)) {
            let arguments = self.all(&call.args);
            return self.resolve(id, &full, false, &arguments);
        }
        let full = call.target.as_deref().and_then(|target| unknown_of_library(self.environment, target, &call.func_name));
        if let Some(full) = full.filter(|full| self.variable(root(full)).is_none()) {
            self.all(&call.args);
            return self.unknown_function(id, &full);
        }
        let mut arguments = Vec::with_capacity(call.args.len() + 1);
        arguments.extend(call.target.as_deref().map(|target| self.expr(target)));
        if !self.environment.has_function(&call.func_name) {
            let variable: Vec<String> = Macro::misspelt(call, self.environment).map(str::to_owned).into_iter().collect();
            let types = vec![Type::Dyn; variable.len()];
            self.under(variable, types, |checker| checker.all(&call.args));
            return self.unknown_function(id, &call.func_name);
        }
        match call.args.first().map(|argument| &argument.expr) {
            Some(Expr::List(list)) if call.func_name == "format" => arguments.push(self.format(id, call, list)),
            _ => arguments.extend(self.all(&call.args)),
        }
        self.pattern(call);
        self.resolve(id, &call.func_name, call.target.is_some(), &arguments)
    }

    /// A pattern that is a literal is compiled with the expression, as Kubernetes' library does for these two.
    fn pattern(&mut self, call: &CallExpr) {
        if let ("find" | "findAll", Some(pattern)) = (call.func_name.as_str(), call.args.first())
            && let Some(Err(error)) = literal_text(pattern).map(re2)
        {
            self.error(pattern.id, error.to_string(), None);
        }
    }

    fn logical(&mut self, operands: &[IdedExpr]) -> Type {
        for operand in operands {
            let of = self.expr(operand);
            self.expected_bool(operand.id, &of, None);
        }
        Type::Bool
    }

    /// As CEL words what must be a bool.
    pub(super) fn expected_bool(&mut self, id: u64, of: &Type, hint: Option<String>) {
        if !self.unifier.assignable(of, &Type::Bool) {
            let found = shown(&self.unifier.resolved(of));
            self.error(id, format!("expected type 'bool' but found '{found}'"), hint);
        }
    }

    fn unknown_function(&mut self, id: u64, name: &str) -> Type {
        if self.is_told(name) {
            return Type::Dyn;
        }
        let hint = self.environment.meant(name).map(|meant| format!("did you mean '{meant}'?"));
        self.error(id, format!("undeclared reference to '{name}' (in container '')"), hint)
    }

    fn all(&mut self, arguments: &[IdedExpr]) -> Vec<Type> {
        arguments.iter().map(|argument| self.expr(argument)).collect()
    }

    /// The result of the overloads that fit; `dyn` where several do and they differ.
    pub(super) fn resolve(&mut self, id: u64, name: &str, member: bool, arguments: &[Type]) -> Type {
        let mut result: Option<Type> = None;
        let environment = self.environment;
        for signature in environment.overloads(name) {
            if signature.member != member || signature.parameters.len() != arguments.len() {
                continue;
            }
            if signature.orders_mixed_numbers() && !self.mixed {
                continue;
            }
            let (parameters, gives) = self.unifier.instance(signature);
            if !self.unifier.all_assignable(arguments, &parameters) {
                continue;
            }
            let gives = self.unifier.partly_resolved(&gives);
            result = Some(match result {
                Some(before) if before != gives => Type::Dyn,
                _ => gives,
            });
        }
        result.unwrap_or_else(|| self.no_overload(id, name, member, arguments))
    }

    pub(super) fn no_overload(&mut self, id: u64, name: &str, member: bool, arguments: &[Type]) -> Type {
        let shown: Vec<String> = arguments.iter().map(|argument| shown(&self.unifier.resolved(argument))).collect();
        let applied =
            if member { format!("{}.({})", shown[0], shown[1..].join(", ")) } else { format!("({})", shown.join(", ")) };
        let hint = self.conversion_hint(name, arguments).or_else(|| self.other_form(name, member));
        self.error(id, format!("found no matching overload for '{name}' applied to '{applied}'"), hint)
    }

    /// A function that is only called the other way: of a value, or with it.
    fn other_form(&self, name: &str, member: bool) -> Option<String> {
        let overloads = self.environment.overloads(name);
        let is_other = !overloads.is_empty() && overloads.iter().all(|overload| overload.member != member);
        (is_other && name.starts_with(char::is_alphabetic))
            .then(|| if member { format!("it is written {name}(…)") } else { format!("it is written value.{name}(…)") })
    }

    /// The mistakes that are made most.
    fn conversion_hint(&self, name: &str, arguments: &[Type]) -> Option<String> {
        let shown: Vec<Type> = arguments.iter().map(|argument| self.unifier.resolved(argument)).collect();
        if let Some(Type::Optional(_)) = shown.first() {
            return Some("the value is optional: take it out with orValue(…), or test it with hasValue()".to_owned());
        }
        let number = |of: &Type| matches!(of, Type::Int | Type::Uint | Type::Double);
        match (name, shown.as_slice()) {
            (operators::ADD, [Type::String, other]) if number(other) || *other == Type::Bool => {
                Some("convert with string(…)".to_owned())
            }
            (operators::ADD, [other, Type::String]) if number(other) || *other == Type::Bool => {
                Some("convert with string(…)".to_owned())
            }
            (_, [left, right]) if number(left) && number(right) && left != right => {
                Some("numbers of different types do not mix: convert with int(…) or double(…)".to_owned())
            }
            ("base64.encode", [Type::String]) => Some("convert with bytes(…)".to_owned()),
            _ => None,
        }
    }

    fn optional_field(&mut self, id: u64, operand: &IdedExpr, name: &IdedExpr) -> Type {
        let operand = self.expr(operand);
        let Some(name) = literal_text(name) else {
            return self.error(id, "unsupported optional field selection", None);
        };
        match self.field(id, &operand, name) {
            Type::Optional(value) => Type::Optional(value),
            value => Type::optional(value),
        }
    }

    /// Both branches have one type. Objects that have the same fields may differ in the name of their type: kro refuses that
    /// (kro#895), which is a limit and no rule that anything rests on.
    fn conditional(&mut self, id: u64, condition: &IdedExpr, left: &IdedExpr, right: &IdedExpr) -> Type {
        let types = [self.expr(condition), self.expr(left), self.expr(right)];
        let plain = self.unifier.resolved(&types[0]);
        if plain == Type::Bool || plain == Type::Dyn {
            let (left, right) = (self.unifier.resolved(&types[1]), self.unifier.resolved(&types[2]));
            if alike(&left, &right) {
                return most_general(left, right);
            }
        }
        self.resolve(id, operators::CONDITIONAL, false, &types)
    }
}

/// A type as CEL's checker words it: times have other names there than where kro speaks of them.
fn shown(of: &Type) -> String {
    of.to_string().replace("google.protobuf.Timestamp", "timestamp").replace("google.protobuf.Duration", "duration")
}
