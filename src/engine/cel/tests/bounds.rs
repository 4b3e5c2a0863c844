//! Expressions that would take all time, memory or stack.

use serde_json::json;

use crate::cel::{Activation, ErrorKind, Expression, Limits, MAX_CHAIN, Scope, check, evaluate};

fn exceeds(source: &str) {
    let value = json!({"text": "x".repeat(1000), "list": (0..1000).collect::<Vec<_>>()});
    let expression = Expression::parse(source).unwrap_or_else(|error| panic!("{source}: {error}"));
    let result = evaluate(&expression, &Activation::new().with("a", value, None), &Limits { cost: 100_000 });
    match result {
        Err(error) if error.kind == ErrorKind::LimitExceeded => {}
        other => panic!("{source}: {other:?}"),
    }
}

#[test]
fn loops_are_bounded() {
    exceeds("a.list.map(x, a.list.map(y, a.list.map(z, x + y + z)))");
    exceeds("a.list.all(x, a.list.all(y, a.list.exists(z, z < 0) || true))");
    exceeds("a.list.transformList(i, x, a.list.transformMap(j, y, y)).size() > 0");
    exceeds("a.list.all(x, a.list.all(y, x in a.list))");
    exceeds("a.list.map(x, a.list).map(x, x.sortBy(y, -y)).map(x, x == a.list)");
    exceeds("lists.range(1000000).map(x, x).size()");
    exceeds("lists.range(30000).distinct().size()");
}

#[test]
fn growth_is_bounded() {
    let doubled = |first: &str, step: &str| {
        let bind = |n: usize| format!("cel.bind(x{n}, {}, ", step.replace('@', &format!("x{}", n - 1)));
        let binds: Vec<String> = (1..40).map(bind).collect();
        let binds = binds.concat();
        format!("cel.bind(x0, {first}, {binds}x39.size(){})", ")".repeat(39))
    };
    exceeds(&doubled("a.text", "@ + @"));
    exceeds(&doubled("a.list", "@ + @"));
    exceeds(&doubled("'xx'", "@.replace('x', @)"));
    exceeds(&doubled("a.list", "[@, @]"));
    exceeds(&doubled("{'k': a.list}", "{'a': @, 'b': @}"));
    exceeds(&doubled("a.text", "[@, @].join(@)"));
    exceeds(&doubled("a.text", "'%s%s'.format([@, @])"));
    exceeds(&doubled("a.list", "optional.of(@).optMap(v, [v, v]).value()"));
}

/// The longest chains that are let through fit the stack of a thread, in all that walks them.
#[test]
fn chains_fit_the_stack() {
    let most = MAX_CHAIN - 2;
    let sources = [
        vec!["1"; most].join(" + "),
        format!("a{}", ".b".repeat(most)),
        format!("a{}", "['b']".repeat(most)),
        vec!["a"; most].join(" == "),
        format!("a{}", ".size()".repeat(most / 2 - 1)),
        format!("'a'{}", " + ('b')".repeat(most / 2 - 1)),
    ];
    let work = move || {
        for source in sources {
            let expression = Expression::parse(&source).unwrap_or_else(|error| panic!("{error}"));
            drop(check(&expression, &Scope::new()));
            drop(evaluate(&expression, &Activation::new().with("a", json!({"b": 1}), None), &Limits::default()));
            drop(expression);
        }
    };
    std::thread::Builder::new().stack_size(2 << 20).spawn(work).unwrap().join().unwrap();
}

#[test]
fn nesting_is_refused() {
    for open in ["(", "[", "{'a':", "!", "-", "f("] {
        assert!(Expression::parse(&open.repeat(5000)).is_err(), "{open}");
    }
    assert!(Expression::parse(&"a ? b : ".repeat(5000)).is_err());
}

/// Texts that a parser may take long to refuse, or to read.
#[test]
fn parsing_is_bounded() {
    let start = std::time::Instant::now();
    for source in ["#", "1 ", "'", "a", "(", "é", "1,", "{", "[1],", "\"\\\\"] {
        drop(Expression::parse(&source.repeat(63_000 / source.len())));
        drop(Expression::parse(&source.repeat(1_400_000 / source.len())));
    }
    drop(Expression::parse(&format!("[{}]", "a.b(1) ? 2 : c[0], ".repeat(3_000))));
    let long = Expression::parse(&format!("'{}' + a", "é".repeat(500_000))).unwrap();
    assert_eq!(long.references().identifiers["a"], 500_005, "offsets count characters");
    assert!(start.elapsed() < std::time::Duration::from_mins(1), "{:?}", start.elapsed());
}
