use proptest::prelude::*;
use serde_json::json;

use super::*;
use crate::Location;

fn one(text: &str) -> Document {
    let mut documents = documents(text).unwrap();
    assert_eq!(documents.len(), 1, "{text}");
    documents.remove(0)
}

#[expect(clippy::unnecessary_wraps, reason = "what it is compared with is optional")]
fn at(line: usize, column: usize) -> Option<Location> {
    Some(Location { line, column })
}

#[test]
fn scalars_are_those_of_kubernetes() {
    for (text, value) in [
        ("yes", json!(true)),
        ("off", json!(false)),
        ("y", json!(true)),
        ("N", json!(false)),
        ("On", json!(true)),
        ("NO", json!(false)),
        ("0755", json!(493)),
        ("0o755", json!(493)),
        ("0x1F", json!(31)),
        ("1_000", json!(1000)),
        ("1.0", json!(1)),
        ("1.5", json!(1.5)),
        ("1e3", json!(1000)),
        ("-3", json!(-3)),
        ("18446744073709551615", json!(18_446_744_073_709_551_615_u64)),
        ("~", json!(null)),
        ("\"yes\"", json!("yes")),
        ("'0755'", json!("0755")),
        ("1.2.3", json!("1.2.3")),
        ("2024-01-01", json!("2024-01-01")),
        ("|\n  a\n  b\n", json!("a\nb\n")),
    ] {
        assert_eq!(one(&format!("a: {text}")).value["a"], value, "{text}");
    }
}

#[test]
fn keys_become_text() {
    assert_eq!(one("1: a\ntrue: b\nx.y/z: c\n").value, json!({"1": "a", "true": "b", "x.y/z": "c"}));
}

/// `kubectl` makes `"true"` of the key `on`. Nobody wants that, and who applies the file by it should know.
#[test]
fn keys_that_kubectl_reads_as_booleans_are_told() {
    let document = one("é: {on: a, 'no': b}\nlist:\n- N: 1\n  \"off\": 1\n  True: 2\n  true: 3\n  onn: 4\n");
    assert_eq!(document.value["é"], json!({"on": "a", "no": "b"}));
    let told: Vec<_> = document.ambiguous.iter().map(ToString::to_string).collect();
    assert_eq!(
        told,
        [
            "1:5 é.on: the key on is text here, and \"true\" to kubectl, which reads it as a boolean (write \"on\" in quotes)",
            "3:3 list[0].N: the key N is text here, and \"false\" to kubectl, which reads it as a boolean (write \"N\" in quotes)",
            "5:3 list[0].True: the key True is text here, and \"true\" to kubectl, which reads it as a boolean (write \"True\" in quotes)",
        ]
    );
}

#[test]
fn places_are_those_of_the_text() {
    let document = one("# first\nspec:\n  list:\n  - a: ${x}\n    b: {c: 1}\n  labels:\n    a.b/c: \"é\"\n");
    for (path, place) in [
        ("spec", at(2, 1)),
        ("spec.list", at(3, 3)),
        ("spec.list[0]", at(4, 5)),
        ("spec.list[0].a", at(4, 8)),
        ("spec.list[0].b.c", at(5, 12)),
        ("spec.labels[\"a.b/c\"]", at(7, 12)),
        ("spec.nothing", None),
    ] {
        assert_eq!(document.locations.get(path), place, "{path}");
    }
    assert_eq!(document.locations.nearest("spec.list[7].a.b"), at(3, 3));
    assert_eq!(document.locations.nearest("nothing"), at(2, 1));
}

#[test]
fn empty_documents_are_left_out() {
    assert_eq!(documents("---\n---\na: 1\n---\n# nothing\n---\nb: 2\n").unwrap().len(), 2);
    assert_eq!(documents("").unwrap(), vec![]);
}

#[test]
fn mistakes_name_their_place() {
    for (text, place, words) in [
        ("a: 1\nb: 2\na: 3\n", at(3, 1), "duplicate"),
        ("1: a\n\"1\": b\n", at(2, 1), "duplicate"),
        ("a: [1, 2\nb: 3\n", at(2, 2), ""),
        ("a: \"x\n", at(1, 4), "quote"),
        ("a: .inf\n", at(1, 4), ""),
        ("a: *nowhere\n", at(1, 4), ""),
    ] {
        let error = documents(text).unwrap_err();
        assert_eq!(error.location, place, "{text}: {error}");
        assert!(error.message.contains(words), "{text}: {error}");
        assert!(!error.message.contains('\n'), "{error}");
    }
}

#[test]
fn duplicates_can_be_left_to_the_caller() {
    let text = "a:\n  b: [{c: 1, c: 2}]\n  d.e: 1\n  d.e: 2\na: 3\n";
    let documents = documents_with_duplicates(text).unwrap();
    assert_eq!(documents[0].value, json!({"a": 3}));
    let found: Vec<String> =
        documents[0].duplicates.iter().map(|found| format!("{} {}", found.location.unwrap().line, found.path)).collect();
    assert_eq!(found, ["2 a.b[0].c", "4 a[\"d.e\"]", "5 a"]);
}

#[test]
fn merged_keys_are_no_duplicates() {
    let document = one("base: &b {x: 1, y: 1}\nz:\n  <<: *b\n  x: 2\n");
    assert_eq!(document.value["z"], json!({"x": 2, "y": 1}));
}

#[test]
fn an_unquoted_expression_with_a_colon_has_a_hint() {
    let error = documents("a: 1\nb: ${has(x) ? 'a': 'b'}\n").unwrap_err();
    assert_eq!(error.location.unwrap().line, 2);
    assert!(error.hint.unwrap().contains("quotes"));
}

#[test]
fn everything_is_bounded() {
    let deep = format!("{}1{}", "[".repeat(5000), "]".repeat(5000));
    let block: String = (0..200).map(|depth| " ".repeat(depth) + "a:\n").collect();
    let mut bomb = vec!["a0: &a0 [x,x,x,x,x,x,x,x,x]".to_owned()];
    for level in 1..12 {
        let below = format!("*a{}", level - 1);
        bomb.push(format!("a{level}: &a{level} [{}]", [below.as_str(); 9].join(",")));
    }
    let large = format!("a: {}", "x".repeat(17 << 20));
    let cycle = "a: &a [*a]\n".to_owned();
    for (name, text) in [("deep", deep), ("block", block), ("bomb", bomb.join("\n")), ("large", large), ("cycle", cycle)] {
        let start = std::time::Instant::now();
        let error = documents(&text).expect_err(name);
        assert!(start.elapsed().as_secs() < 60, "{name} took {:?}", start.elapsed());
        assert!(error.message.len() < 300, "{name}: {error}");
        assert!(!error.message.contains(['{', '}']), "{name} is told as a data structure: {error}");
    }
}

#[test]
fn a_large_bundle_is_read() {
    let text = "---\nkind: ConfigMap\nmetadata: {name: c}\ndata: {a: \"1\"}\n".repeat(5000);
    assert_eq!(documents(&text).unwrap().len(), 5000);
}

proptest! {
    #[test]
    fn no_text_panics(text in "[ -~\n\u{e9}\u{1F600}]{0,200}") {
        let _ = documents(&text);
    }

    #[test]
    fn yaml_like_text_does_not_panic(text in "([a-c]: |- |\\[|\\]|\\{|\\}|&a |\\*a|\n|  |\"|'|<<: |\\||>|#|!!int |[0-9.]+|: |, ){0,60}") {
        let _ = documents(&text);
    }

    #[test]
    fn json_is_yaml(numbers in prop::collection::btree_map("[a-z.]{1,8}", any::<i64>(), 0..8)) {
        let value = json!({"a": numbers});
        prop_assert_eq!(one(&value.to_string()).value, value);
    }
}

/// A definition in a list is as good as one alone: its findings have their places in the whole text.
#[test]
fn items_of_a_list_have_their_places() {
    let text =
        "# first\n---\nother: 1\n---\napiVersion: v1\nkind: List\nitems:\n- a: 1\n  b: {c: x}\n- a: 2\n  a: 3\n  d:\n  - e\n";
    let documents = documents_with_duplicates(text).unwrap();
    let list = documents.last().unwrap();
    let items = list.items(text).unwrap();
    let values: Vec<_> = items.iter().map(|item| item.value.clone()).collect();
    assert_eq!(values, [json!({"a": 1, "b": {"c": "x"}}), json!({"a": 3, "d": ["e"]})]);
    assert_eq!(items[0].locations.get("b.c"), list.locations.get("items[0].b.c"));
    assert!(text[items[1].part.clone()].starts_with("- a: 2"), "{:?}", &text[items[1].part.clone()]);
    assert_eq!((items[0].duplicates.len(), items[1].duplicates[0].path.as_str()), (0, "a"));
    assert!(documents[0].items(text).is_none());
}
