//! What must parse and what must not, and that nothing panics.

use proptest::prelude::*;

use crate::cel::{Activation, Expression, Limits, Scope, check, evaluate};

const MUST_PARSE: &[&str] = &[
    "1",
    "-1",
    "0x1F",
    "1u",
    "1e3",
    "'a'",
    "\"a\"",
    "r'\\d'",
    "b'a'",
    "'''a\nb'''",
    "true",
    "null",
    "[]",
    "{}",
    "[1, 2,]",
    "{'a': 1,}",
    "a.b.c",
    "a['b'][0]",
    "a.?b[?0]",
    "[?a, b]",
    "{?'a': b}",
    "a.namespace.loop",
    "a.`b-c`",
    "f(1)",
    "a.f(1, 2)",
    "!a && b || c",
    "a ? b : c ? d : e",
    "has(a.b)",
    "a.all(x, x > 0)",
    "a.map(x, x > 0, x)",
    "a.exists(i, v, v > i)",
    "cel.bind(x, 1, x)",
    "// comment\n1",
    "  1  ",
    "\n1 +\n2\n",
    "'${HOME}'",
    "\"é\" + '日本'",
];

const MUST_NOT_PARSE: &[(&str, &str)] = &[
    ("", "1:1: Syntax error: mismatched input '<EOF>'"),
    ("1 +", "1:4: Syntax error: mismatched input '<EOF>'"),
    ("a..b", "1:3: Syntax error"),
    ("(1", "1:3: Syntax error"),
    ("1)", "1:2: Syntax error"),
    ("a b", "1:3: Syntax error"),
    ("a = b", "1:3: Syntax error"),
    ("'a", "1:1: Syntax error: token recognition error"),
    ("a.f(", "1:5: Syntax error"),
    ("{a}", "1:3: Syntax error"),
    ("for", "1:1: reserved identifier: for"),
    ("99999999999999999999", "1:1: invalid int literal"),
    ("has(a)", "1:5: invalid argument to has() macro"),
    ("a.map(x.y, 1)", "1:8: argument must be a simple name"),
    ("1 +\n+ 2", "2:1: Syntax error"),
    ("'éé' + ", "1:8: Syntax error"),
    ("'éé' + has(1)", "1:12: invalid argument to has() macro"),
];

#[test]
fn parses_what_it_must() {
    for source in MUST_PARSE {
        if let Err(error) = Expression::parse(source) {
            panic!("{source}: {error}");
        }
    }
}

#[test]
fn refuses_what_it_must() {
    for (source, message) in MUST_NOT_PARSE {
        match Expression::parse(source) {
            Ok(_) => panic!("{source} parsed"),
            Err(error) => assert!(error.to_string().starts_with(message), "{source}: {error}"),
        }
    }
}

/// Parses, checks and evaluates; whatever comes out is fine.
fn all_of_it(source: &str) {
    let Ok(expression) = Expression::parse(source) else { return };
    let value = serde_json::json!({"spec": {"name": "n", "replicas": 3, "list": [1, "a", null, {"x": 1.5}]}});
    drop(check(&expression, &Scope::new()));
    drop(evaluate(&expression, &Activation::new().with("a", value, None), &Limits { cost: 10_000 }));
}

/// Fragments that expressions are made of.
fn fragment() -> impl Strategy<Value = String> {
    let words = [
        "a",
        "a.spec",
        ".name",
        ".list",
        "[0]",
        "[?1]",
        ".?x",
        "1",
        "-1",
        "1.5",
        "2u",
        "'s'",
        "b'b'",
        "null",
        "true",
        "(",
        ")",
        "[",
        "]",
        "{",
        "}",
        ",",
        ":",
        "?",
        "+",
        "-",
        "*",
        "/",
        "%",
        "==",
        "<",
        "&&",
        "||",
        "!",
        " in ",
        ".map(x, ",
        ".filter(x, x",
        ".all(i, v, ",
        ".exists(",
        ".sortBy(x, ",
        "has(a.",
        "size(",
        "string(",
        ".format([",
        "'%s %d'",
        ".replace(",
        "cel.bind(x, ",
        "optional.of(",
        ".orValue(",
        ".optMap(x, ",
        "quantity('1Gi')",
        ".add(",
        "json.marshal(",
        "json.unmarshal(",
        "lists.range(",
        ".transformMap(k, v, ",
        ".matches('",
        "duration('1s')",
        "timestamp(0)",
        ".merge(",
        "omit()",
        "é",
        "\\",
        "'",
        "\"",
        "`",
        "$",
        "\n",
        "x",
        "k",
        "v",
    ];
    prop::sample::select(words.to_vec()).prop_map(str::to_owned)
}

proptest! {
    #![proptest_config(ProptestConfig { cases: 400, failure_persistence: None, ..ProptestConfig::default() })]

    #[test]
    fn no_text_panics(source in "\\PC{0,60}") {
        all_of_it(&source);
    }

    #[test]
    fn no_mixture_of_fragments_panics(parts in prop::collection::vec(fragment(), 1..24)) {
        all_of_it(&parts.concat());
    }

    #[test]
    fn no_change_of_an_expression_panics(at in 0_usize..200, which in 0_usize..MUST_PARSE.len(), letter in any::<char>()) {
        let mut source: Vec<char> = MUST_PARSE[which].chars().collect();
        let at = at % (source.len() + 1);
        if at < source.len() { source[at] = letter } else { source.push(letter) }
        all_of_it(&source.into_iter().collect::<String>());
    }

    #[test]
    fn evaluation_is_deterministic(keys in prop::collection::btree_set("[a-z]{1,4}", 1..12)) {
        let value: serde_json::Map<String, serde_json::Value> = keys.iter().map(|key| (key.clone(), 1.into())).collect();
        let expression = Expression::parse("a.map(k, k)").unwrap();
        let found = evaluate(&expression, &Activation::new().with("a", serde_json::Value::Object(value), None), &Limits::default()).unwrap();
        let sorted: Vec<String> = keys.into_iter().collect();
        prop_assert_eq!(found, crate::cel::Evaluated::Value(sorted.into()));
    }
}
