//! kro's own results: the same value, or the same kind of error, for each recorded expression.

use std::collections::BTreeMap;

use cel::common::{types::CelDouble, value::Val};
use serde_json::{Value, json};

use super::same;
use crate::{
    cel::{
        Activation, CheckError, ErrorKind, Evaluated, Expression, Limits, Scope, Type, check, evaluate, evaluate::evaluate_with,
    },
    testing::text,
};

/// The same kind of error in other words, and why.
const OTHER_WORDS: &[(u64, &str)] = &[
    (172, "which part of the pattern is at fault is the other library's wording"),
    (234, "where JSON is broken is the other library's wording"),
];

#[test]
fn show_03_cel_vectors() {
    let (Some(inputs), Some(outputs)) = (text("kro/vectors/cel.in.jsonl"), text("kro/vectors/cel.out.jsonl")) else { return };
    let mut wrong = BTreeMap::new();
    let mut count = 0;
    for (input, output) in inputs.lines().zip(outputs.lines()) {
        let (input, output): (Value, Value) = (serde_json::from_str(input).unwrap(), serde_json::from_str(output).unwrap());
        assert_eq!(input["id"], output["id"]);
        count += 1;
        if let Err(message) = agrees(&input, &output) {
            wrong.insert(input["id"].as_u64().unwrap(), format!("{}: {message}", input["expr"]));
        }
    }
    println!("SHOW 03 cel_vectors {}/{count}", count - wrong.len());
    for (id, reason) in OTHER_WORDS {
        println!("  other words {id}: {reason}");
    }
    assert!(wrong.is_empty(), "{wrong:#?}");
}

/// What the library of kro v0.9.4 itself answered to expressions that its recorded vectors do not have.
#[test]
fn what_kros_own_library_answered_is_answered_here() {
    let spec = json!({"name": "Web App", "n": 3, "f": 2.5, "t": true, "l": ["b", "a", "c"], "m": {"k": "v", "z": "y"},
        "o": {"x": {"y": 1}}, "objs": [{"name": "b", "p": 2}, {"name": "a", "p": 1}]});
    let wrong: Vec<String> = include_str!("asked.jsonl")
        .lines()
        .filter_map(|line| {
            let output: Value = serde_json::from_str(line).unwrap();
            let input = json!({"expr": output["expr"], "vars": {"schema": {"spec": spec}}});
            agrees(&input, &output).err().map(|message| format!("{}: {message}", output["expr"]))
        })
        .collect();
    assert!(wrong.is_empty(), "{wrong:#?}");
}

fn agrees(input: &Value, output: &Value) -> Result<(), String> {
    let expression = match Expression::parse(input["expr"].as_str().unwrap()) {
        Ok(expression) => expression,
        Err(error) if output["phase"] == "parse" => return parse_error_agrees(&error, output),
        Err(error) => return Err(format!("parse: {error}")),
    };
    let mut activation = Activation::new();
    let mut scope = Scope::new().with("runtime", Type::Opaque("kro.run.Runtime".into()));
    for (name, value) in input["vars"].as_object().unwrap() {
        activation.set(name, value.clone(), None);
        scope.set(name, Type::Dyn);
    }
    let checked = check(&expression, &scope);
    if output["phase"] == "check" {
        return check_errors_agree(checked, output);
    }
    match checked {
        // kro calls it `null_type` where it is printed alone, and `null` in messages.
        Ok(of) if output["type"].as_str().is_some_and(|kro| kro.replace("null_type", "null") == of.to_string()) => {}
        other => return Err(format!("type {other:?} is not {}", output["type"])),
    }
    if output["value"] == "NaN" && output["type"] == "double" {
        return is_no_number(&expression, &activation);
    }
    let result = evaluate(&expression, &activation, &Limits::default());
    match (output["phase"].as_str(), result) {
        (Some("parse"), _) => Err("parsed".to_owned()),
        (None, Ok(Evaluated::Omit)) if output["celType"] == "kro.omit" => Ok(()),
        (None, Ok(Evaluated::Value(value))) if same(&value, &output["value"]) => Ok(()),
        (Some("eval" | "convert"), Err(error)) => {
            let expected = output["error"].as_str().unwrap();
            let pending = ["no such key", "no such field", "no such attribute", "index out of bounds"]
                .iter()
                .any(|text| expected.contains(text));
            if pending != matches!(error.kind, ErrorKind::Pending { .. }) {
                return Err(format!("{error:?} is not {expected}"));
            }
            let reworded = OTHER_WORDS.iter().any(|(id, _)| input["id"] == *id);
            if reworded || error.message == expected { Ok(()) } else { Err(format!("{:?} is not {expected:?}", error.message)) }
        }
        (_, result) => Err(format!("{result:?} is not {output}")),
    }
}

/// NaN is no number in JSON: kro has the value and fails when it writes the object, here the expression fails and says why.
fn is_no_number(expression: &Expression, activation: &Activation) -> Result<(), String> {
    let is_nan = |found: &dyn Val| Ok(found.downcast_ref::<CelDouble>().is_some_and(|found| found.inner().is_nan()));
    match evaluate_with(expression, activation, Limits::default(), is_nan) {
        Ok(true) => {}
        other => return Err(format!("{other:?} is not NaN")),
    }
    match evaluate(expression, activation, &Limits::default()) {
        Err(error) if error.kind == ErrorKind::Failed => Ok(()),
        other => Err(format!("{other:?} cannot be written")),
    }
}

/// The same mistakes in the same places and in kro's words.
fn check_errors_agree(checked: Result<Type, Vec<CheckError>>, output: &Value) -> Result<(), String> {
    let expected: Vec<&str> = output["error"].as_str().unwrap().lines().filter(|line| line.starts_with("ERROR")).collect();
    let Err(errors) = checked else { return Err(format!("accepted: {expected:?}")) };
    let ours: Vec<String> =
        errors.iter().map(|error| format!("ERROR: <input>:1:{}: {}", error.offset + 1, error.message)).collect();
    if ours == expected { Ok(()) } else { Err(format!("{ours:?} is not {expected:?}")) }
}

fn parse_error_agrees(error: &crate::cel::SyntaxError, output: &Value) -> Result<(), String> {
    let expected = output["error"].as_str().unwrap();
    let ours = format!("ERROR: <input>:{}:{}: {}", error.line, error.column, error.message);
    if expected.starts_with(&ours) { Ok(()) } else { Err(format!("{ours:?} is not {expected:?}")) }
}
