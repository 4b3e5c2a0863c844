//! Rules of custom resources (`x-kubernetes-validations`), computed with the engine's CEL.
//!
//! Rules are compiled once, when their CRD is served. A rule with a function that kro's environment lacks and Kubernetes may
//! have is accepted and never computed (docs/differences.md).

use std::{collections::BTreeMap, sync::Arc};

use plinth_api::Object;
use plinth_engine::{
    cel::{self, Activation, Evaluated, Expression, Limits, Scope, Type},
    schema::{Additional, Schema, ValidationRule},
};
use serde_json::{Value, json};

use super::problem::FieldFault;

/// Findings after which nobody reads more.
const MAX_FAULTS: usize = 100;
/// Longest message that a `messageExpression` may give.
const MAX_MESSAGE: usize = 5120;

/// Reasons that a rule may give.
const REASONS: [&str; 4] = ["FieldValueRequired", "FieldValueForbidden", "FieldValueInvalid", "FieldValueDuplicate"];
/// Libraries of Kubernetes' environment that the engine's lacks; they look like variables.
const LIBRARIES: [&str; 2] = ["sets", "format"];

/// The rules of a schema and of everything below it.
#[derive(Clone, Debug, PartialEq, Default)]
pub struct Rules {
    schema: Arc<Schema>,
    own: Vec<Rule>,
    fields: BTreeMap<String, Rules>,
    items: Option<Box<Rules>>,
    values: Option<Box<Rules>>,
}

#[derive(Clone, Debug, PartialEq)]
struct Rule {
    written: ValidationRule,
    expression: Expression,
    message: Option<Expression>,
    /// It reads `oldSelf`, so that it is about a change.
    transition: bool,
}

/// A mistake in a rule: which field of it, and what is wrong.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct BadRule {
    /// Path below the schema, such as `.properties[spec].x-kubernetes-validations[0].rule`.
    pub path: String,
    /// Such as `FieldValueInvalid`.
    pub reason: &'static str,
    /// What is wrong.
    pub message: String,
}

impl BadRule {
    fn of(path: &str, message: &str) -> Self {
        Self { path: path.to_owned(), reason: "FieldValueInvalid", message: format!("Invalid value: {message}") }
    }
}

impl Rules {
    /// Compiles all rules; `None` where there are none. Rules that are wrong are left out and told.
    pub fn of(schema: &Arc<Schema>) -> (Option<Self>, Vec<BadRule>) {
        let mut bad = Vec::new();
        (Self::at(&Arc::new(whole(schema)), "", &mut bad), bad)
    }

    /// The rules of a part of an object.
    pub(super) fn below(schema: &Arc<Schema>) -> (Option<Self>, Vec<BadRule>) {
        let mut bad = Vec::new();
        (Self::at(schema, "", &mut bad), bad)
    }

    fn at(schema: &Arc<Schema>, path: &str, bad: &mut Vec<BadRule>) -> Option<Self> {
        let mut rules = Self { schema: Arc::clone(schema), ..Self::default() };
        for (index, written) in schema.validations.iter().enumerate() {
            let at = format!("{path}.x-kubernetes-validations[{index}]");
            match Rule::compile(written, schema) {
                Ok(rule) => rules.own.extend(rule),
                Err(wrong) => bad.push(BadRule { path: format!("{at}{}", wrong.path), ..wrong }),
            }
        }
        for (name, property) in &schema.properties {
            if let Some(below) = Self::at(property, &format!("{path}.properties[{name}]"), bad) {
                rules.fields.insert(name.clone(), below);
            }
        }
        if let Some(items) = &schema.items {
            rules.items = Self::at(items, &format!("{path}.items"), bad).map(Box::new);
        }
        if let Some(Additional::Schema(values)) = &schema.additional_properties {
            rules.values = Self::at(values, &format!("{path}.additionalProperties"), bad).map(Box::new);
        }
        let empty = rules.own.is_empty() && rules.fields.is_empty() && rules.items.is_none() && rules.values.is_none();
        (!empty).then_some(rules)
    }

    /// What an object breaks; `old` is the one that it replaces.
    pub fn check(&self, object: &Object, old: Option<&Object>) -> Vec<FieldFault> {
        if old == Some(object) {
            return Vec::new();
        }
        let mut faults = Vec::new();
        self.value(object.as_value(), old.map(Object::as_value), "", &mut faults);
        faults.truncate(MAX_FAULTS);
        faults
    }

    /// What a value by itself breaks.
    pub(super) fn check_value(&self, value: &Value) -> Vec<FieldFault> {
        let mut faults = Vec::new();
        self.value(value, None, "", &mut faults);
        faults
    }

    fn value(&self, value: &Value, old: Option<&Value>, path: &str, faults: &mut Vec<FieldFault>) {
        // What is as it was is not held against a change of something else (ratcheting).
        if value.is_null() || faults.len() >= MAX_FAULTS || old == Some(value) {
            return;
        }
        faults.extend(self.own.iter().filter_map(|rule| rule.broken(value, old, &self.schema, path)));
        match value {
            Value::Object(fields) => {
                for (name, inner) in fields {
                    let Some(below) = self.fields.get(name).or(self.values.as_deref()) else { continue };
                    let at =
                        if self.fields.contains_key(name) { super::check::join(path, name) } else { format!("{path}[{name}]") };
                    below.value(inner, old.and_then(|old| old.get(name)), &at, faults);
                }
            }
            Value::Array(elements) => {
                let Some(below) = &self.items else { return };
                for (index, element) in elements.iter().enumerate() {
                    below.value(element, self.counterpart(element, old), &format!("{path}[{index}]"), faults);
                }
            }
            _ => {}
        }
    }

    /// The element of the old list with the same keys; only lists of type `map` have such.
    fn counterpart<'a>(&self, element: &Value, old: Option<&'a Value>) -> Option<&'a Value> {
        same_element(&self.schema, element, old?.as_array()?)
    }
}

/// The element of a list that has the same keys; only lists of type `map` have such.
pub(super) fn same_element<'a>(list: &Schema, element: &Value, others: &'a [Value]) -> Option<&'a Value> {
    if list.list_type.as_deref() != Some("map") {
        return None;
    }
    others.iter().find(|other| list.list_map_keys.iter().all(|key| other.get(key) == element.get(key)))
}

/// A whole object has a type and metadata, whether its schema says so or not. Of metadata rules see names alone.
fn whole(schema: &Schema) -> Schema {
    let text = || Arc::new(Schema { kind: Some("string".to_owned()), ..Schema::default() });
    let mut whole = Schema { embedded_resource: true, ..schema.clone() };
    let metadata = Arc::make_mut(whole.properties.entry("metadata".to_owned()).or_default());
    metadata.kind = Some("object".to_owned());
    for name in ["name", "generateName"] {
        metadata.properties.entry(name.to_owned()).or_insert_with(text);
    }
    whole
}

impl Rule {
    /// `Ok(None)` for a rule that cannot be computed here; an error names the field of the rule.
    fn compile(written: &ValidationRule, schema: &Arc<Schema>) -> Result<Option<Self>, BadRule> {
        if written.reason.as_ref().is_some_and(|reason| !REASONS.contains(&reason.as_str())) {
            let supported = REASONS.map(|reason| format!("{reason:?}")).join(", ");
            let message =
                format!("Unsupported value: {:?}: supported values: {supported}", written.reason.as_deref().unwrap_or_default());
            return Err(BadRule { path: ".reason".to_owned(), reason: "FieldValueNotSupported", message });
        }
        let type_of = Type::of_schema("self", schema);
        let optional = written.optional_old_self == Some(true);
        let old = if optional { Type::optional(type_of.clone()) } else { type_of.clone() };
        let scope = Scope::new().with_mixed_numbers().with("self", type_of).with("oldSelf", old);
        let Some(expression) = compiled(&written.rule, &scope, &Type::Bool).map_err(|message| BadRule::of(".rule", &message))?
        else {
            return Ok(None);
        };
        let message = match written.message_expression.as_str() {
            "" => None,
            text => compiled(text, &scope, &Type::String).map_err(|message| BadRule::of(".messageExpression", &message))?,
        };
        let transition = expression.references().identifiers.contains_key("oldSelf");
        Ok(Some(Self { written: written.clone(), expression, message, transition }))
    }

    fn broken(&self, value: &Value, old: Option<&Value>, schema: &Arc<Schema>, path: &str) -> Option<FieldFault> {
        let optional = self.written.optional_old_self == Some(true);
        if self.transition && old.is_none() && !optional {
            return None;
        }
        let activation = self.activation(value, old, schema)?;
        let at = format!("{path}{}", self.written.field_path);
        match cel::evaluate(&self.expression, &activation, &Limits::default()) {
            Ok(Evaluated::Value(Value::Bool(true))) => None,
            Ok(_) => Some(self.fault(&at, schema, &self.words(&activation))),
            Err(error) => {
                let kind = schema.kind.clone().unwrap_or_default();
                let message = format!("Invalid value: {kind:?}: {error} evaluating rule: {}", self.name());
                Some(FieldFault { reason: "FieldValueInvalid", field: shown(path), message })
            }
        }
    }

    /// `None` where what was before cannot be said as the rule wants it.
    fn activation(&self, value: &Value, old: Option<&Value>, schema: &Arc<Schema>) -> Option<Activation> {
        let mut activation = Activation::new().with("self", value.clone(), Some(Arc::clone(schema)));
        if self.transition {
            // The engine's variables have no optional values yet.
            let before = old.filter(|_| self.written.optional_old_self != Some(true))?;
            activation.set("oldSelf", before.clone(), Some(Arc::clone(schema)));
        }
        Some(activation)
    }

    /// The message expression's words where it gives some, else the message.
    fn words(&self, activation: &Activation) -> String {
        let computed = self.message.as_ref().and_then(|message| cel::evaluate(message, activation, &Limits::default()).ok());
        if let Some(Evaluated::Value(Value::String(text))) = computed {
            let text = text.trim();
            if !text.is_empty() && !text.contains('\n') && text.len() <= MAX_MESSAGE {
                return text.to_owned();
            }
        }
        match self.written.message.trim() {
            "" => format!("failed rule: {}", self.name()),
            message => message.to_owned(),
        }
    }

    /// How messages call the rule.
    fn name(&self) -> String {
        match self.written.message.trim() {
            "" => self.written.rule.trim().to_owned(),
            message => message.to_owned(),
        }
    }

    fn fault(&self, path: &str, schema: &Schema, words: &str) -> FieldFault {
        let kind = json!(schema.kind.clone().unwrap_or_default());
        let (reason, message) = match self.written.reason.as_deref() {
            Some("FieldValueForbidden") => ("FieldValueForbidden", format!("Forbidden: {words}")),
            Some("FieldValueRequired") => ("FieldValueRequired", format!("Required value: {words}")),
            Some("FieldValueDuplicate") => ("FieldValueDuplicate", format!("Duplicate value: {kind}")),
            _ => ("FieldValueInvalid", format!("Invalid value: {kind}: {words}")),
        };
        FieldFault { reason, field: shown(path), message }
    }
}

/// The root has no path; Kubernetes shows it so.
fn shown(path: &str) -> String {
    match path.trim_start_matches('.') {
        "" => "<nil>".to_owned(),
        path => path.to_owned(),
    }
}

/// `Ok(None)` for an expression that calls what only Kubernetes may have.
fn compiled(text: &str, scope: &Scope, wanted: &Type) -> Result<Option<Expression>, String> {
    let wrong = |message: String| format!("compilation failed: {message}");
    let expression = Expression::parse(text).map_err(|error| wrong(error.to_string()))?;
    let references = expression.references();
    if !references.unknown_functions.is_empty() || LIBRARIES.iter().any(|name| references.identifiers.contains_key(*name)) {
        return Ok(None);
    }
    match cel::check(&expression, scope) {
        Ok(found) if found == *wanted || found == Type::Dyn => Ok(Some(expression)),
        Ok(found) => Err(format!("cel expression must evaluate to a {wanted}, and is a {found}")),
        Err(errors) => Err(wrong(errors.iter().map(ToString::to_string).collect::<Vec<_>>().join("; "))),
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    fn rules(schema: Value) -> (Option<Rules>, Vec<BadRule>) {
        Rules::of(&Arc::new(serde_json::from_value(schema).unwrap()))
    }

    fn object(value: Value) -> Object {
        Object::from_value(value).unwrap()
    }

    #[test]
    fn a_schema_without_rules_costs_nothing() {
        assert_eq!(rules(json!({"type": "object", "properties": {"a": {"type": "string"}}})).0, None);
    }

    #[test]
    fn rules_are_found_at_every_depth() {
        let rule = json!([{"rule": "self > 1"}]);
        let schema = json!({"type": "object", "properties": {
            "list": {"type": "array", "items": {"type": "object", "properties": {"n": {"type": "integer", "x-kubernetes-validations": rule}}}},
            "map": {"type": "object", "additionalProperties": {"type": "integer", "x-kubernetes-validations": rule}}}});
        let faults =
            rules(schema).0.unwrap().check(&object(json!({"list": [{"n": 2}, {"n": 1}], "map": {"a": 1, "b": 5}})), None);
        let fields: Vec<&str> = faults.iter().map(|fault| fault.field.as_str()).collect();
        assert_eq!(fields, ["list[1].n", "map[a]"]);
        assert_eq!(faults[0].message, "Invalid value: \"integer\": failed rule: self > 1");
    }

    #[test]
    fn order_says_nothing_in_sets_and_map_lists() {
        let items = json!({"type": "object", "properties": {"name": {"type": "string"}}});
        let schema = json!({"type": "object", "properties": {
            "set": {"type": "array", "x-kubernetes-list-type": "set", "items": {"type": "string"},
                "x-kubernetes-validations": [{"rule": "self == oldSelf"}]},
            "map": {"type": "array", "x-kubernetes-list-type": "map", "x-kubernetes-list-map-keys": ["name"], "items": items,
                "x-kubernetes-validations": [{"rule": "self == oldSelf"}]},
            "list": {"type": "array", "items": {"type": "string"}, "x-kubernetes-validations": [{"rule": "self == oldSelf"}]}}});
        let rules = rules(schema).0.unwrap();
        let old = object(json!({"set": ["a", "b"], "map": [{"name": "a"}, {"name": "b"}], "list": ["a", "b"]}));
        let new = object(json!({"set": ["b", "a"], "map": [{"name": "b"}, {"name": "a"}], "list": ["b", "a"]}));
        let faults = rules.check(&new, Some(&old));
        assert_eq!(faults.iter().map(|fault| fault.field.as_str()).collect::<Vec<_>>(), ["list"]);
    }

    #[test]
    fn what_was_wrong_before_is_not_held_against_other_changes() {
        let schema = json!({"type": "object", "properties": {
            "a": {"type": "integer", "x-kubernetes-validations": [{"rule": "self > 1"}]}, "b": {"type": "integer"}}});
        let rules = rules(schema).0.unwrap();
        let old = object(json!({"a": 1, "b": 1}));
        assert_eq!(rules.check(&object(json!({"a": 1, "b": 2})), Some(&old)), []);
        assert_eq!(rules.check(&object(json!({"a": 0, "b": 2})), Some(&old)).len(), 1);
    }

    #[test]
    fn rules_that_are_wrong_are_told_and_unknown_functions_are_not() {
        let check = |rule: &str| {
            let spec =
                json!({"type": "object", "x-kubernetes-validations": [{"rule": rule}], "properties": {"a": {"type": "integer"}}});
            rules(json!({"type": "object", "properties": {"spec": spec}}))
        };
        for rule in ["self.a >", "self.b > 1", "self.a + 1", "other > 1"] {
            let (_, bad) = check(rule);
            let paths: Vec<&str> = bad.iter().map(|bad| bad.path.as_str()).collect();
            assert_eq!(paths, [".properties[spec].x-kubernetes-validations[0].rule"], "{rule}: {bad:?}");
        }
        assert_eq!(check("sets.contains([1], [self.a])"), (None, Vec::new()));
    }
}
