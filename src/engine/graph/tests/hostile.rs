//! Whatever a definition looks like, compiling ends with an answer.

use plinth_api::Object;
use proptest::prelude::*;
use serde_json::{Map, Value, json};

use crate::{
    graph::{Compiled, Definition, Options, compile, render},
    testing::{compiled, core, rgd},
    yaml,
};

/// JSON whose keys and strings are those that a definition has, in all the wrong places.
fn json_like() -> impl Strategy<Value = Value> {
    let words = prop::sample::select(vec![
        "spec",
        "schema",
        "resources",
        "id",
        "template",
        "externalRef",
        "metadata",
        "name",
        "namespace",
        "selector",
        "kind",
        "apiVersion",
        "forEach",
        "readyWhen",
        "includeWhen",
        "status",
        "conditions",
        "types",
        "data",
        "a",
        "b",
        "matchLabels",
        "labels",
        "kro.run/owned",
    ]);
    let texts = prop::sample::select(vec![
        "",
        "v1",
        "ConfigMap",
        "a",
        "b",
        "kro.run/v1alpha1",
        "ResourceGraphDefinition",
        "string",
        "[]string",
        "${",
        "${}",
        "${a}",
        "${a.b}",
        "${schema.spec.a}",
        "x-${a}-${b",
        "${'x}",
        "${\"${a}\"}",
        "${a.map(x, x)}",
        "${runtime.newCondition({type: 'A', status: 'True'})}",
        "integer | default=x",
        "${omit()}",
    ]);
    let leaf = prop_oneof![
        Just(Value::Null),
        any::<bool>().prop_map(Value::from),
        any::<i64>().prop_map(Value::from),
        texts.prop_map(Value::from),
        ".{0,8}".prop_map(Value::from),
    ];
    leaf.prop_recursive(6, 48, 5, move |inner| {
        let list = prop::collection::vec(inner.clone(), 0..4).prop_map(Value::from);
        let map = prop::collection::vec((words.clone(), inner), 0..6).prop_map(|fields| {
            Value::Object(fields.into_iter().map(|(name, value)| (name.to_owned(), value)).collect::<Map<_, _>>())
        });
        prop_oneof![list, map]
    })
}

/// A sound definition in which one value is replaced by anything.
fn damaged() -> impl Strategy<Value = Value> {
    let resources = "- id: a\n  includeWhen: ['${schema.spec.on}']\n  template:\n    apiVersion: v1\n    kind: ConfigMap\n    metadata:\n      name: ${schema.metadata.name}\n    data: {x: 'y-${schema.spec.name}'}\n- id: b\n  readyWhen: ['${size(each.data) > 0}']\n  forEach: [{n: '${schema.spec.names}'}]\n  template:\n    apiVersion: v1\n    kind: ConfigMap\n    metadata:\n      name: ${n}\n    data: {x: '${a.data.x}'}\n- id: c\n  externalRef:\n    apiVersion: v1\n    kind: ConfigMap\n    metadata:\n      selector: {matchLabels: {app: '${schema.spec.name}'}}\n";
    let text =
        rgd("name: string\nnames: '[]string'\non: boolean", "x: ${a.data.x}\nall: ${b.map(m, m.metadata.name)}", resources);
    let sound = yaml::documents(&text).unwrap().remove(0).value;
    let paths = paths(&sound, String::new());
    (prop::sample::select(paths), json_like()).prop_map(move |(path, value)| {
        let mut document = sound.clone();
        if let Some(place) = document.pointer_mut(&path) {
            *place = value;
        }
        document
    })
}

fn paths(value: &Value, at: String) -> Vec<String> {
    let below: Vec<String> = match value {
        Value::Object(map) => map
            .iter()
            .flat_map(|(name, value)| paths(value, format!("{at}/{}", name.replace('~', "~0").replace('/', "~1"))))
            .collect(),
        Value::Array(list) => list.iter().enumerate().flat_map(|(index, value)| paths(value, format!("{at}/{index}"))).collect(),
        _ => Vec::new(),
    };
    std::iter::once(at).chain(below).collect()
}

fn check(document: Value) {
    let Some(object) = Object::from_value(document) else { return };
    let Ok(definition) = Definition::from_object(&object) else { return };
    if let Some(graph) = compile(&definition, &core(), &Options::default()).graph() {
        let instance =
            json!({"metadata": {"name": "i", "namespace": "n"}, "spec": {"name": "x", "names": ["p", "q"], "on": true}});
        render(graph, &Object::from_value(instance).unwrap());
    }
}

proptest! {
    #![proptest_config(ProptestConfig::with_cases(96))]

    #[test]
    fn anything_is_answered(document in json_like()) {
        check(document);
    }

    #[test]
    fn a_damaged_definition_is_answered(document in damaged()) {
        check(document);
    }

    #[test]
    fn any_text_is_answered(text in "(spec|schema|resources|id|kind|template|[-:{}\\[\\]$ \\n\"'|&*a-z]){0,60}") {
        if let Ok(documents) = yaml::documents_with_duplicates(&text) {
            documents.into_iter().for_each(|document| drop(Definition::from_document(&document, &text)));
        }
    }
}

#[test]
fn a_deep_template_is_refused_not_fatal() {
    let deep = (0..200).fold(json!("${schema.spec.name}"), |inner, _| json!({"a": inner}));
    let text = rgd(
        "name: string",
        "",
        "- id: a\n  template:\n    apiVersion: example.org/v1\n    kind: Deep\n    metadata:\n      name: a\n    x: PLACE\n",
    );
    let mut document = yaml::documents(&text).unwrap().remove(0).value;
    document["spec"]["resources"][0]["template"]["x"] = deep;
    let definition = Definition::from_object(&Object::from_value(document).unwrap()).unwrap();
    let Compiled::Invalid(findings) = compile(&definition, &core(), &Options::default()) else { panic!() };
    assert!(findings[0].message.contains("nested deeper than"), "{findings:?}");
}

/// A chain of this many nodes, each of which reads the one before.
fn chain(count: usize) -> String {
    let resource = |index: usize| {
        let reads = if index == 0 { "x".to_owned() } else { format!("${{n{}.data.x}}", index - 1) };
        format!(
            "- id: n{index}\n  template:\n    apiVersion: v1\n    kind: ConfigMap\n    metadata:\n      name: n{index}\n    data:\n      x: {reads}\n"
        )
    };
    rgd("", "", &(0..count).map(resource).collect::<String>())
}

/// Three times as many nodes take about three times as long, also where each of them is wrong.
#[test]
fn show_03_scaling() {
    let seconds = |text: &str, count: usize| {
        let started = std::time::Instant::now();
        let compiled = compiled(text, &core());
        match compiled.graph() {
            Some(graph) => assert_eq!(graph.nodes.len(), count),
            None => assert_eq!(compiled.diagnostics().len(), count),
        }
        started.elapsed().as_secs_f64()
    };
    for (word, damage) in [("right", " data:"), ("wrong", " dato:")] {
        let [small, large] = [1_000, 3_000].map(|count| seconds(&chain(count).replace(" data:", damage), count));
        println!("SHOW 03 scaling-{word} 1000 nodes {:.0} ms, 3000 nodes {:.0} ms", small * 1e3, large * 1e3);
        assert!(large < small * 30.0, "{small} s and {large} s");
    }
}

/// Input that is meant to take all time or memory: each ends with words, soon.
#[test]
fn show_03_bad_input() {
    let deep = |open: &str, close: &str| format!("a: {}1{}\n", open.repeat(3_000), close.repeat(3_000));
    let bomb = || {
        let levels = (1..10).map(|level| format!("a{level}: &a{level} [{}]\n", vec![format!("*a{}", level - 1); 9].join(", ")));
        format!("a0: &a0 [x]\n{}", levels.collect::<String>())
    };
    let fills = |length: usize| map_with(&format!("'{}'", "x".repeat(length)));
    let resources = |count: usize| (0..count).map(|index| format!("- id: n{index}\n")).collect::<String>();
    let names = |count: usize| (0..count).map(|index| format!("f{index}: string\n")).collect::<String>();
    let status = (0..2_500).map(|index| format!("f{index}: ${{dep.spec}}\n")).collect::<String>();
    let deployment = "- id: dep\n  template:\n    apiVersion: apps/v1\n    kind: Deployment\n    metadata:\n      name: d\n";
    let unknown = |count: usize| {
        (0..count).map(|index| format!("- id: c{index}\n  readyWhen: ['${{x{index}.y}}']\n  includeWhen: ['${{x{index}.y}}']\n  template:\n    apiVersion: v1\n    kind: ConfigMap\n    metadata:\n      name: c{index}\n")).collect::<String>()
    };
    let cases = [
        ("fat status", rgd("", &status, deployment), "the status describes more than 100000 fields"),
        ("many unknown names", rgd("", "", &unknown(10_000)), "unknown identifiers"),
        ("expressions without end", map_with(&format!("'{}'", "${\"".repeat(300_000))), ""),
        ("deep flow", deep("[", "]"), "limit"),
        ("deep maps", deep("{a: ", "}"), "nested too deeply"),
        ("cyclic alias", "a: &a [*a]\n".to_owned(), ""),
        ("alias bomb", bomb(), ""),
        ("17 MB", fills(17 << 20), "bytes"),
        ("10 MB of text", fills(10 << 20), ""),
        ("10 MB expression", map_with(&format!("'${{{}1}}'", "1 + ".repeat(2_500_000))), ""),
        ("deep expression", map_with(&format!("'${{{}1{}}}'", "(".repeat(50_000), ")".repeat(50_000))), ""),
        ("many wrong resources", rgd("", "", &resources(20_000)), "exactly one of template"),
        ("many fields", rgd(&names(50_000), "", "[]"), ""),
        ("doubling types", doubling(60), ""),
        ("deep type", rgd(&format!("a: '{}string'", "[]".repeat(100_000)), "", ""), "nesting too deep"),
    ];
    let count = cases.len();
    for (name, text, words) in cases {
        let started = std::time::Instant::now();
        let said = match crate::yaml::documents_with_duplicates(&text) {
            Err(error) => error.to_string(),
            Ok(_) => {
                compiled(&text, &core()).diagnostics().iter().map(ToString::to_string).take(3).collect::<Vec<_>>().join("; ")
            }
        };
        println!("  {name}: {:.1} s: {}", started.elapsed().as_secs_f64(), said.chars().take(160).collect::<String>());
        let fits = ["10 MB of text", "many fields", "expressions without end"].contains(&name);
        assert!(said.to_lowercase().contains(words) && said.is_empty() == fits, "{name}: {said}");
        assert!(started.elapsed().as_secs() < 60, "{name} took {:?}", started.elapsed());
    }
    println!("SHOW 03 bad_input {count}/{count} bounded and named");
}

fn map_with(value: &str) -> String {
    rgd(
        "",
        "",
        &format!(
            "- id: a\n  template:\n    apiVersion: v1\n    kind: ConfigMap\n    metadata: {{name: a}}\n    data: {{x: {value}}}\n"
        ),
    )
}

/// Custom types each of which has the one before twice.
fn doubling(levels: usize) -> String {
    let types = (1..levels).map(|level| format!("        T{level}: {{a: T{0}, b: T{0}}}\n", level - 1));
    let types = format!("    types:\n        T0: {{a: string}}\n{}", types.collect::<String>());
    rgd(&format!("x: T{}", levels - 1), "", "").replace("    status:\n", &format!("{types}    status:\n"))
}

/// Collections of millions are refused by their size, before anything is made of them.
#[test]
fn collections_of_millions_are_refused() {
    use crate::{
        instance::NodeState,
        testing::{cluster::Cluster, graph},
    };
    let item = "  template:\n    apiVersion: v1\n    kind: ConfigMap\n    metadata:\n      name: c-${string(a)}-${string(b)}-${string(c)}\n";
    let lists = "- id: many\n  forEach: [{a: '${lists.range(schema.spec.n)}'}, {b: '${lists.range(schema.spec.n)}'}, {c: '${lists.range(schema.spec.n)}'}]\n";
    let graph = graph(&rgd("n: integer", "", &(lists.to_owned() + item)), &core());
    for (n, words) in
        [(900, "collection size of 729000000 is over the maximum"), (100_000_000, "size 100000000 exceeds maximum allowed")]
    {
        let mut cluster = Cluster::new(std::sync::Arc::clone(&graph), json!({"n": n}));
        let many = cluster.settle().node("many").unwrap().clone();
        assert_eq!(many.state, NodeState::Failed);
        assert!(many.message.contains(words), "{}", many.message);
    }
}
