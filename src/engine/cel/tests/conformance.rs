//! The language's own conformance cases, without those that need protobuf messages.

use std::collections::{BTreeMap, HashMap};

use cel::{
    IdedExpr,
    common::{
        ast::{CallExpr, EntryExpr, Expr, LiteralValue},
        types::{CelBool, CelBytes, CelDouble, CelInt, CelList, CelMap, CelMapKey, CelNull, CelString, CelType, CelUInt},
        value::Val,
    },
};
use serde_json::Value;

use crate::{
    cel::{
        Activation, Expression, Limits, Scope, Type, check,
        environment::Environment,
        evaluate::evaluate_with,
        expression::read,
        library,
        value::{Boxed, converted, decode_base64},
    },
    testing::text,
};

/// Files that are about protobuf messages, or empty.
const ABOUT_MESSAGES: [&str; 7] = ["dynamic", "enums", "proto2", "proto2_ext", "proto3", "unknowns", "wrappers"];

/// Cases where ours is not the specification's, and why.
const EXCEPTIONS: &[(&str, &str)] = &[
    ("fields/qualified_identifier_resolution/map_value_repeat_key", "the last one wins, as with cel-go and so with kro"),
    ("fields/qualified_identifier_resolution/map_value_repeat_key_heterogeneous", "the last one wins, as with cel-go"),
    ("network_ext/ipv4/ipv4_equals_ipv6", "Kubernetes, and so kro, refuses IPv4 in IPv6 form (kro's vector 193)"),
    ("network_ext/ipv4/ipv4_not_equals_ipv6", "Kubernetes, and so kro, refuses IPv4 in IPv6 form (kro's vector 193)"),
    ("parse/bytes_literals/triple_double_quoted_unescaped_punctuation", "wants a backslash that its source does not have"),
    ("parse/bytes_literals/triple_single_quoted_unescaped_punctuation", "wants a backslash that its source does not have"),
    ("string_ext/value_errors/indexof_out_of_range", "-1 past the end, as with cel-go 0.31 and so with kro"),
    ("string_ext/value_errors/lastindexof_out_of_range", "-1 past the end, as with cel-go 0.31 and so with kro"),
    ("timestamps/duration_converters/get_milliseconds", "cel-go, and so kro, gives the whole length (kro's vector 65)"),
    ("type_deduction/functions/function_result_type", "declares a function of its own for the case"),
    ("type_deduction/type_parameters/multiple_parameters_generality", "declares a type of its own for the case"),
    ("type_deduction/type_parameters/multiple_parameters_generality_2", "declares a type of its own for the case"),
    ("type_deduction/type_parameters/multiple_parameters_parameterized_ovl", "declares a type of its own for the case"),
    ("type_deduction/type_parameters/multiple_parameters_parameterized_ovl_2", "declares a type of its own for the case"),
];

/// Cases that the checker refuses although the specification gives a value, and why.
const REFUSED: &[(&str, &str)] = &[
    ("fields/qualified_identifier_resolution/ident_with_longest_prefix_check", "kro has no variable with dots in its name"),
    ("fields/qualified_identifier_resolution/map_field_select", "kro has no variable with dots in its name"),
    ("fields/qualified_identifier_resolution/qualified_ident", "kro has no variable with dots in its name"),
    ("namespace/qualified/self_eval_qualified_lookup", "kro has no variable with dots in its name"),
];

#[test]
fn show_03_cel_spec() {
    let Some(text) = text("cel-spec/spec.json") else { return };
    let files: BTreeMap<String, Value> = serde_json::from_str(&text).unwrap();
    let mut suite = Suite::default();
    for (file, content) in files.iter().filter(|(file, _)| !ABOUT_MESSAGES.contains(&file.as_str())) {
        for section in content["section"].as_array().unwrap() {
            for case in section["test"].as_array().unwrap() {
                let name = format!("{file}/{}/{}", section["name"].as_str().unwrap(), case["name"].as_str().unwrap());
                suite.run(&name, case);
            }
        }
    }
    suite.report();
}

#[derive(Default)]
struct Suite {
    environments: HashMap<String, &'static Environment>,
    messages: usize,
    count: usize,
    wrong: BTreeMap<String, String>,
    checked: usize,
    refused: BTreeMap<String, String>,
}

impl Suite {
    fn run(&mut self, name: &str, case: &Value) {
        if needs_messages(case) {
            self.messages += 1;
            return;
        }
        self.count += 1;
        let container = case["container"].as_str().unwrap_or_default().to_owned();
        let environment = *self.environments.entry(container.clone()).or_insert_with(|| {
            let mut entries = library::kro();
            entries.extend(
                library::delivery().into_iter().filter(|entry| !library::kro().iter().any(|known| known.name == entry.name)),
            );
            Box::leak(Box::new(Environment::new(&entries, true, &container)))
        });
        if let Err(message) = outcome(case, environment) {
            self.wrong.insert(name.to_owned(), format!("{}: {message}", case["expr"]));
        }
        // The checker does not know names in containers and macros of the optimiser: authors have neither.
        let foreign = !container.is_empty() || name.starts_with("block_ext");
        if foreign || case.get("value").is_none() || case["disable_check"] == true {
            return;
        }
        self.checked += 1;
        let expression = Expression::parse_in(case["expr"].as_str().unwrap(), environment);
        if let Err(message) = expression
            .map_err(|error| error.to_string())
            .and_then(|expression| check(&expression, &scope(case)).map_err(|errors| format!("{errors:?}")))
        {
            self.refused.insert(name.to_owned(), format!("{}: {message}", case["expr"]));
        }
    }

    fn report(self) {
        println!("SHOW 03 cel_spec {}/{} ({} need protobuf messages)", self.count - self.wrong.len(), self.count, self.messages);
        println!("SHOW 03 cel_spec_checked {}/{}", self.checked - self.refused.len(), self.checked);
        table("differs", &self.wrong, EXCEPTIONS);
        table("refused by the checker", &self.refused, REFUSED);
        assert!((self.count - self.wrong.len()) * 100 >= self.count * 99, "at least 99 of 100");
    }
}

/// Prints the exceptions, and fails where the list of them is not exact.
fn table(what: &str, wrong: &BTreeMap<String, String>, exceptions: &[(&str, &str)]) {
    for (name, reason) in exceptions {
        println!("  {what}: {name}: {reason}");
    }
    let unexpected: Vec<_> = wrong.iter().filter(|(name, _)| !exceptions.iter().any(|(known, _)| known == name)).collect();
    assert!(unexpected.is_empty(), "{} {what}: {unexpected:#?}", unexpected.len());
    let stale: Vec<_> = exceptions.iter().filter(|(name, _)| !wrong.contains_key(*name)).collect();
    assert!(stale.is_empty(), "these agree now: {stale:?}");
}

fn needs_messages(case: &Value) -> bool {
    let text = case.to_string();
    let expr = case["expr"].as_str().unwrap();
    let names =
        ["TestAllTypes", "google.protobuf.Any", "google.protobuf.Struct", "google.protobuf.Value", "google.protobuf.ListValue"];
    names.iter().any(|name| text.contains(name))
        || (expr.contains("google.protobuf.") && expr.contains('{'))
        || text.contains("\"wrapper\"")
        || text.contains("enum_value")
}

/// The same value or, where an error is wanted, any error; the deduced type where one is given.
fn outcome(case: &Value, environment: &'static Environment) -> Result<(), String> {
    let source = case["expr"].as_str().unwrap();
    let wants_error = case.get("eval_error").is_some();
    let parsed =
        read(source).and_then(|(tree, places)| Expression::of_tree(source, 0, without_blocks(&tree), places, environment));
    let expression = match parsed {
        Ok(expression) => expression,
        Err(_) if wants_error => return Ok(()),
        Err(error) => return Err(error.to_string()),
    };
    if let Some(deduced) = case["typed_result"].get("deduced_type") {
        let found = check(&expression, &scope(case)).map_err(|errors| format!("{errors:?}"))?;
        let wanted = type_of(deduced);
        if found != wanted {
            return Err(format!("type {found} is not {wanted}"));
        }
    }
    if case["check_only"] == true {
        return Ok(());
    }
    let mut activation = Activation::new();
    for (name, binding) in case["bindings"].as_object().into_iter().flatten() {
        activation.set_boxed(name, value_of(&binding["value"]));
    }
    let implied = serde_json::json!({"bool_value": true});
    let wanted = case["typed_result"].get("result").or(case.get("value")).unwrap_or(&implied);
    let result = evaluate_with(&expression, &activation, Limits::default(), |found| {
        let wanted = value_of(wanted);
        Ok((same(found, wanted.as_ref()), format!("{found:?} is not {wanted:?}")))
    });
    match result {
        Err(_) if wants_error => Ok(()),
        Ok(_) if wants_error => Err("no error".to_owned()),
        Ok((true, _)) => Ok(()),
        Ok((false, message)) => Err(message),
        Err(error) => Err(error.message),
    }
}

/// Like `==`, but numbers of different types differ and NaN is NaN.
fn same(found: &dyn Val, wanted: &dyn Val) -> bool {
    if let (Some(found), Some(wanted)) = (found.downcast_ref::<CelDouble>(), wanted.downcast_ref::<CelDouble>()) {
        // The reader of JSON may be off by the last bit.
        return found.equals(wanted)
            || (found.inner() - wanted.inner()).abs() <= wanted.inner().abs() * 1e-15
            || (found.inner().is_nan() && wanted.inner().is_nan());
    }
    found.get_type() == wanted.get_type() && found.equals(wanted)
}

fn value_of(json: &Value) -> Boxed {
    let (kind, value) = json.as_object().unwrap().iter().next().unwrap();
    let text = || value.as_str().unwrap().to_owned();
    match kind.as_str() {
        "null_value" => Box::new(CelNull),
        "bool_value" => Box::new(CelBool::from(value.as_bool().unwrap())),
        "int64_value" => Box::new(CelInt::from(text().parse::<i64>().unwrap())),
        "uint64_value" => Box::new(CelUInt::from(text().parse::<u64>().unwrap())),
        "double_value" => Box::new(CelDouble::from(value.as_f64().unwrap_or_else(|| text().parse().unwrap()))),
        "string_value" => Box::new(CelString::from(text())),
        "bytes_value" => Box::new(CelBytes::from(decode_base64(&text()).unwrap())),
        "type_value" => Box::new(CelType::new(text())),
        "list_value" => {
            Box::new(CelList::from(value["values"].as_array().into_iter().flatten().map(value_of).collect::<Vec<_>>()))
        }
        "map_value" => {
            let entries = value["entries"].as_array().into_iter().flatten();
            let entries = entries.map(|entry| (CelMapKey::try_from(value_of(&entry["key"])).unwrap(), value_of(&entry["value"])));
            Box::new(CelMap::from(entries.collect::<HashMap<_, _>>()))
        }
        "object_value" => {
            let function = if value["@type"].as_str().unwrap().ends_with("Duration") { "duration" } else { "timestamp" };
            converted(function, value["value"].as_str().unwrap().to_owned()).unwrap()
        }
        other => panic!("value of kind {other}"),
    }
}

fn scope(case: &Value) -> Scope {
    let mut scope = Scope::new();
    for name in case["bindings"].as_object().into_iter().flatten().map(|(name, _)| name) {
        scope.set(name, Type::Dyn);
    }
    for declared in case["type_env"].as_array().into_iter().flatten().filter(|declared| declared.get("ident").is_some()) {
        scope.set(declared["name"].as_str().unwrap(), type_of(&declared["ident"]["type"]));
    }
    scope
}

fn type_of(json: &Value) -> Type {
    let Some((kind, of)) = json.as_object().and_then(|object| object.iter().next()) else { return Type::Dyn };
    match (kind.as_str(), of.as_str()) {
        ("primitive", Some("BOOL")) => Type::Bool,
        ("primitive", Some("INT64")) => Type::Int,
        ("primitive", Some("UINT64")) => Type::Uint,
        ("primitive", Some("DOUBLE")) => Type::Double,
        ("primitive", Some("STRING")) => Type::String,
        ("primitive", Some("BYTES")) => Type::Bytes,
        ("well_known", Some("TIMESTAMP")) => Type::Timestamp,
        ("well_known", Some("DURATION")) => Type::Duration,
        ("null", _) => Type::Null,
        ("list_type", _) => Type::list(type_of(&of["elem_type"])),
        ("map_type", _) => Type::Map(Box::new(type_of(&of["key_type"])), Box::new(type_of(&of["value_type"]))),
        ("type", _) => Type::Type(Box::new(type_of(of))),
        ("abstract_type", _) if of["name"] == "optional_type" => Type::optional(type_of(&of["parameter_types"][0])),
        _ => Type::Dyn,
    }
}

/// Writes out the optimiser's `cel.block([a, b], c)`, with `cel.index(0)` for `a`, as nested `cel.bind`: no author writes it, so
/// the language here does not have it, but what is inside is worth running.
fn without_blocks(expr: &IdedExpr) -> IdedExpr {
    let mut plain = expr.clone();
    match &mut plain.expr {
        Expr::Call(call) => {
            if let Some(name) = indexed(call) {
                plain.expr = Expr::Ident(name);
                return plain;
            }
            if let Some(block) = bound(expr.id, call) {
                return without_blocks(&block);
            }
            call.target.iter_mut().for_each(|target| **target = without_blocks(target));
            call.args.iter_mut().for_each(|argument| *argument = without_blocks(argument));
        }
        Expr::Select(select) => *select.operand = without_blocks(&select.operand),
        Expr::List(list) => list.elements.iter_mut().for_each(|element| *element = without_blocks(element)),
        Expr::Map(map) => {
            for entry in &mut map.entries {
                if let EntryExpr::MapEntry(entry) = &mut entry.expr {
                    entry.key = without_blocks(&entry.key);
                    entry.value = without_blocks(&entry.value);
                }
            }
        }
        _ => {}
    }
    plain
}

fn on_cel(call: &CallExpr) -> bool {
    matches!(call.target.as_deref().map(|target| &target.expr), Some(Expr::Ident(root)) if root == "cel")
}

fn indexed(call: &CallExpr) -> Option<String> {
    let is_name = on_cel(call) && ["index", "iterVar", "accuVar"].contains(&call.func_name.as_str());
    let numbers = call.args.iter().map(|argument| match &argument.expr {
        Expr::Literal(LiteralValue::Int(number)) => number.inner().to_string(),
        _ => "x".to_owned(),
    });
    is_name.then(|| format!("@{}{}", call.func_name, numbers.collect::<Vec<_>>().join("_")))
}

fn bound(id: u64, call: &CallExpr) -> Option<IdedExpr> {
    let [Expr::List(list), _] = [&call.args.first()?.expr, &call.args.get(1)?.expr] else { return None };
    if !on_cel(call) || call.func_name != "block" {
        return None;
    }
    let node = |expr| IdedExpr { id, expr };
    let cel = || Some(Box::new(node(Expr::Ident("cel".to_owned()))));
    let mut body = call.args[1].clone();
    for (index, value) in list.elements.iter().enumerate().rev() {
        let args = vec![node(Expr::Ident(format!("@index{index}"))), value.clone(), body];
        body = node(Expr::Call(CallExpr { func_name: "bind".to_owned(), target: cel(), args }));
    }
    Some(body)
}
