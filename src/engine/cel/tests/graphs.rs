//! Every expression of the graphs that kro accepted: it parses, all its functions exist, and nothing in it contradicts itself.

use std::collections::BTreeMap;

use serde_json::Value;

use crate::{
    cel::{Expression, Scope, Type, check, is_type_name},
    template::Text,
    testing::text,
    yaml,
};

/// Expressions that kro accepts and ours does not, and why.
const EXCEPTIONS: &[(&str, &str)] = &[];

#[test]
fn show_03_cel_corpus() {
    let Some(verdicts) = text("kro/verdicts.jsonl") else { return };
    let mut count = 0;
    let mut wrong = BTreeMap::new();
    for line in verdicts.lines() {
        let verdict: Value = serde_json::from_str(line).unwrap();
        if verdict["verdict"] != "accepted" {
            continue;
        }
        let path = verdict["path"].as_str().unwrap();
        let Some(text) = text(&format!("kro/{path}")) else { continue };
        let Ok(documents) = yaml::documents(&text) else { continue };
        for document in documents.iter().filter(|document| document.value["metadata"]["name"] == verdict["name"]) {
            let spec = &document.value["spec"];
            let mut expressions = Vec::new();
            collect(&spec["resources"], &mut expressions);
            collect(&spec["schema"]["status"], &mut expressions);
            count += expressions.len();
            for source in expressions {
                if let Err(message) = accepts(&source) {
                    wrong.insert(source, format!("{path}: {message}"));
                }
            }
        }
    }
    println!("SHOW 03 cel_corpus {}/{count}", count - wrong.len());
    wrong.retain(|source, _| !EXCEPTIONS.iter().any(|(known, _)| known == source));
    assert!(count > 500, "the corpus was read");
    assert!(wrong.is_empty(), "{wrong:#?}");
}

fn collect(value: &Value, expressions: &mut Vec<String>) {
    match value {
        Value::String(text) => expressions.extend(Text::read(text).ok().flatten().map(|text| text.cel)),
        Value::Array(elements) => elements.iter().for_each(|element| collect(element, expressions)),
        Value::Object(fields) => fields.values().for_each(|field| collect(field, expressions)),
        _ => {}
    }
}

fn accepts(source: &str) -> Result<(), String> {
    let expression = Expression::parse(source).map_err(|error| error.to_string())?;
    let references = expression.references();
    if !references.unknown_functions.is_empty() {
        return Err(format!("unknown functions {:?}", references.unknown_functions));
    }
    let mut scope = Scope::new();
    for name in references.identifiers.keys().filter(|name| !is_type_name(name)) {
        let of = if name == "runtime" { Type::Opaque("kro.run.Runtime".into()) } else { Type::Dyn };
        scope.set(name, of);
    }
    check(&expression, &scope).map_err(|errors| format!("{errors:?}")).map(drop)
}
