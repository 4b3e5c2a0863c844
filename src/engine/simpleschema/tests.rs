use proptest::prelude::*;
use serde_json::json;

use super::*;
use crate::{
    testing::{json_lines, recorded},
    yaml::documents_with_duplicates,
};

fn map(value: &Value) -> Map<String, Value> {
    value.as_object().cloned().unwrap_or_default()
}

/// The findings as lines, warnings included.
fn findings(spec: &Value, types: &Value) -> Vec<String> {
    let findings = match build(&map(spec), &map(types)) {
        Ok(built) => built.warnings,
        Err(refused) => refused.errors,
    };
    findings.iter().map(ToString::to_string).collect()
}

fn schema(field: &str) -> Value {
    let built = build(&map(&json!({"a": field})), &Map::new()).unwrap_or_else(|errors| panic!("{field}: {errors:?}"));
    serde_json::to_value(&built.schema.properties["a"]).unwrap()
}

/// kro's text of one of our errors: the fields on the way, then the message.
fn kros_text(finding: &Diagnostic) -> String {
    let fields = finding.path.strip_prefix("spec.schema.spec.").unwrap_or_default();
    let names = fields.split('.').filter(|name| !name.is_empty());
    names.map(|name| format!("field {name}")).chain([finding.message.clone()]).collect::<Vec<_>>().join(": ")
}

#[test]
fn show_03_simpleschema() {
    let inputs = json_lines("kro/vectors/simpleschema.in.jsonl");
    let outputs = json_lines("kro/vectors/simpleschema.out.jsonl");
    let mut equal = 0;
    for (input, output) in inputs.iter().zip(&outputs) {
        let Translation { schema, findings } = translate(&map(&input["spec"]), Some(&map(&input["types"])));
        if let Some(error) = output["error"].as_str() {
            let ours: Vec<String> = findings.errors.iter().map(kros_text).collect();
            assert!(ours.iter().any(|text| text == error), "{input}: {ours:?} has no {error}");
        } else {
            assert_eq!(findings.errors, vec![], "{input}");
            assert_eq!(serde_json::to_value(&schema).unwrap(), output["schema"], "{input}");
        }
        equal += 1;
        for refused in &findings.refused {
            println!("vector {}: kro accepts, the API server refuses the CRD: {refused}", input["id"]);
        }
    }
    println!("SHOW 03 simpleschema {equal}/{}", outputs.len());
}

/// Found by holding 20 000 random schemas against kro's own library.
#[test]
fn what_kro_accepts_is_accepted_and_means_the_same() {
    let whole = |field: &str| {
        let types = map(&json!({"Alias": "string | required=true"}));
        let built = build(&map(&json!({"a": field})), &types).unwrap_or_else(|errors| panic!("{field}: {errors:?}"));
        serde_json::to_value(&built.schema).unwrap()
    };
    for field in ["string | required=true required=false", "Alias | required=false"] {
        assert_eq!(whole(field)["required"], json!(["a"]), "{field}");
    }
    assert_eq!(whole("string | pattern=\"a{\"")["properties"]["a"]["pattern"], "a{");
    for field in ["[]string | default=", "[]string | default=null", "map[string]integer | default="] {
        let whole = whole(field);
        assert_eq!((&whole["default"], whole["properties"]["a"].get("default")), (&json!({}), None), "{field}");
    }
}

/// What kro says when a schema cannot be built.
const KROS_PREFIX: &str = "failed to build OpenAPI schema for instance: ";

/// kro's message for a line of the verdicts, as far as it is about the schema.
fn schema_error(verdict: &Value) -> Option<&str> {
    let messages = verdict["conditions"].as_array().into_iter().flatten().filter_map(|condition| condition["message"].as_str());
    messages.into_iter().find_map(|message| message.split_once(KROS_PREFIX)).map(|(_, error)| error)
}

#[test]
fn show_03_corpus_schemas() {
    let (mut accepted, mut rejected, mut all) = (0, 0, 0);
    for verdict in json_lines("kro/verdicts.jsonl") {
        let path = verdict["path"].as_str().unwrap();
        let Some(file) = recorded(&format!("kro/{path}")) else { continue };
        let Ok(documents) = documents_with_duplicates(&std::fs::read_to_string(file).unwrap()) else { continue };
        let rgds =
            documents.into_iter().map(|document| document.value).filter(|value| value["kind"] == "ResourceGraphDefinition");
        for rgd in rgds.filter(|rgd| rgd["metadata"]["name"] == verdict["name"]) {
            let schema = &rgd["spec"]["schema"];
            let found = build(&map(&schema["spec"]), &map(&schema["types"]))
                .map_err(|refused| refused.errors.iter().map(kros_text).collect::<Vec<_>>());
            match (schema_error(&verdict), verdict["verdict"].as_str()) {
                (Some(error), _) => {
                    assert!(found.clone().is_err_and(|ours| ours.iter().any(|text| text == error)), "{path}: {error} {found:?}");
                    rejected += 1;
                }
                (None, Some("accepted")) => {
                    assert!(found.is_ok(), "{path}: {found:?}");
                    accepted += 1;
                }
                // Refused for something else, so kro's opinion of the schema is not known.
                _ => continue,
            }
            all += 1;
        }
    }
    println!(
        "SHOW 03 corpus-schemas {}/{all} ({accepted} accepted, {rejected} rejected for the same cause)",
        accepted + rejected
    );
}

/// All messages in a recorded probe.
fn messages(value: &Value) -> Vec<&str> {
    match value {
        Value::Object(fields) => fields
            .iter()
            .flat_map(|(name, value)| match value.as_str() {
                Some(text) if name == "message" => vec![text],
                _ => messages(value),
            })
            .collect(),
        Value::Array(elements) => elements.iter().flat_map(messages).collect(),
        _ => Vec::new(),
    }
}

/// Two of kro's texts cannot be the same: the start of a cycle, which is random there, and the words of Go's regex parser.
fn stable(error: &str) -> &str {
    let error = error.split("in type").next().unwrap_or_default();
    error.split("regexp:").next().unwrap_or_default()
}

#[test]
fn show_03_schema_probes() {
    let Some(folder) = recorded("kro/probes") else { return };
    let (mut agree, mut all) = (0, 0);
    for entry in std::fs::read_dir(folder.join("inputs")).unwrap() {
        let path = entry.unwrap().path();
        let stem = path.file_stem().unwrap().to_str().unwrap();
        if !stem.starts_with('s') {
            continue;
        }
        let text = std::fs::read_to_string(folder.join("out").join(format!("{stem}.json"))).unwrap();
        let out: Value = serde_json::from_str(&text).unwrap();
        let rgd = documents_with_duplicates(&std::fs::read_to_string(&path).unwrap()).unwrap().remove(0).value;
        let schema = &rgd["spec"]["schema"];
        let ours = match build(&map(&schema["spec"]), &map(&schema["types"])) {
            Ok(_) => Vec::new(),
            Err(refused) => refused.errors.iter().map(kros_text).collect(),
        };
        let kros = messages(&out).into_iter().find_map(|message| Some(message.split_once(KROS_PREFIX)?.1));
        let refused_late = messages(&out).into_iter().any(|message| message.contains("failed to create CRD"));
        all += 1;
        match kros {
            Some(error) => assert!(ours.iter().any(|text| stable(text) == stable(error)), "{stem}: {error} {ours:?}"),
            None => assert_eq!(!ours.is_empty(), refused_late, "{stem}: {ours:?}"),
        }
        agree += 1;
    }
    println!("SHOW 03 schema-probes {agree}/{all}");
}

#[test]
fn every_type_has_its_schema() {
    for (field, expected) in [
        ("string", json!({"type": "string"})),
        (" float ", json!({"type": "number"})),
        ("object", json!({"type": "object", "x-kubernetes-preserve-unknown-fields": true})),
        (
            "[]map[string][]boolean",
            json!({"type": "array", "items": {"type": "object", "additionalProperties":
            {"type": "array", "items": {"type": "boolean"}}}}),
        ),
    ] {
        assert_eq!(schema(field), expected, "{field}");
    }
}

#[test]
fn every_marker_has_its_keyword() {
    for (field, expected) in [
        ("string | description=\"two words\"", json!({"type": "string", "description": "two words"})),
        ("integer | minimum=1 maximum=2.5", json!({"type": "integer", "minimum": 1, "maximum": 2.5})),
        (
            "string | enum=a,b minLength=1 maxLength=3",
            json!({"type": "string", "enum": ["a", "b"], "minLength": 1, "maxLength": 3}),
        ),
        (
            "[]string | minItems=1 maxItems=2 uniqueItems=true",
            json!({"type": "array", "items": {"type": "string"},
            "minItems": 1, "maxItems": 2, "x-kubernetes-list-type": "set"}),
        ),
        ("[]string | default=[\"a\", \"b\"]", json!({"type": "array", "items": {"type": "string"}, "default": ["a", "b"]})),
        (
            "map[string]integer | default={\"a\": 1}",
            json!({"type": "object", "additionalProperties": {"type": "integer"}, "default": {"a": 1}}),
        ),
        (
            "string | immutable=true",
            json!({"type": "string", "x-kubernetes-validations": [{"rule": "self == oldSelf", "message": "field is immutable"}]}),
        ),
        ("string | immutable=false required=false", json!({"type": "string"})),
        ("boolean | default=true", json!({"type": "boolean", "default": true})),
        ("float | default=1.5", json!({"type": "number", "default": 1.5})),
        ("float | default=1.0", json!({"type": "number", "default": 1})),
    ] {
        assert_eq!(schema(field), expected, "{field}");
    }
}

#[test]
fn every_mistake_has_kros_words() {
    for (field, words) in [
        ("string | =x", "empty marker key"),
        ("string | required=yes", "failed to parse required marker value: strconv.ParseBool: parsing \"yes\": invalid syntax"),
        ("string | requird=true", "invalid marker key \"requird\": unknown marker: requird (did you mean \"required\"?)"),
        ("string | required", "marker key 'required' without a value (write required=true)"),
        ("string | description=role for", "marker key 'for' without a value (a value of several words needs double quotes)"),
        (
            "string | required=true | default=\"a\"",
            "invalid marker key \"|default\": unknown marker: |default (one bar is enough: \
            markers are separated by blanks, as in \"| required=true default=…\")",
        ),
        ("string | default = x", "marker key 'x' without a value (write KEY=VALUE without spaces around the equals sign)"),
        ("string | default={a", "unclosed bracket/brace (put the value in double quotes)"),
        ("integer | default=x", "default value must be a valid integer, got: x"),
        ("float | default=x", "default value must be a valid number, got: x"),
        ("boolean | default=x", "default value must be a valid boolean, got: x"),
        ("float | enum=1", "enum values only supported for string and integer types, got type: number"),
        ("string | enum=a,,b", "empty enum values are not allowed"),
        ("integer | enum=1,b", "failed to parse integer enum value: strconv.ParseInt: parsing \"b\": invalid syntax"),
        ("integer | minLength=1", "minLength marker is only valid for string types, got type: integer"),
        ("string | minItems=1", "minItems marker is only valid for array types, got type: string"),
        ("string | pattern=\"\"", "pattern marker value cannot be empty"),
        ("[]string | listType=bag", "unsupported value for listType bag, needs to be one of atomic, set, or map"),
        ("string | listType=set", "listType marker only applies to array types"),
        ("[]string | listType=map uniqueItems=true", "cannot set unique when listType is set to map"),
        (
            "[]string | uniqueItems=true listType=map",
            "listType attempting to overwrite set type of set, this can happen if you set \
            contradictory markers like unique=true | listType=map",
        ),
        ("[]object | listMapKey=a", "listMapKey set while listType is unset, listType must be set to map"),
        ("[]object | listType=map listMapKey=a listMapKey=a", "duplicate listMapKey marker, value a"),
        ("string | validation=\" \"", "validation failed"),
        (
            "string | maximum=1e999",
            "failed to parse maximum enum value: strconv.ParseFloat: parsing \"1e999\": value out of range",
        ),
        ("[]", "empty slice element type"),
        ("map[int]string", "map key must be string"),
        ("map[ string ]string", "map key must be string"),
        ("string | listMapKey=a", "listMapKey marker only applies to array types"),
        ("string | uniqueItems=x", "failed to parse uniqueItems marker value: strconv.ParseBool: parsing \"x\": invalid syntax"),
        ("map[string]", "map value type is required"),
        ("number", "unknown type: number (did you mean \"float\"?)"),
        ("strng", "unknown type: strng (did you mean \"string\"?)"),
    ] {
        let found = findings(&json!({"a": field}), &json!({}));
        assert!(found.contains(&format!("spec.schema.spec.a: {words}")), "{field}: {found:#?}");
    }
    assert!(
        findings(&json!({"a": "string | pattern=\"(\""}), &json!({}))[0]
            .contains("invalid pattern regex: error parsing regexp: ")
    );
}

/// Asked of kube-apiserver v1.34.4, as was every line of the next test.
#[test]
fn what_the_api_server_takes_is_not_refused() {
    let item = json!({"Item": {"name": "string", "port": "integer | required=true", "p": "string | default=x"}});
    for field in [
        "float | default=1.0 minimum=0.5",
        "float | default=1e3",
        "object | default={\"a\": 1}",
        "[]Item | listType=map listMapKey=port listMapKey=p",
        "[]Item | listType=atomic",
        "[][]string | listType=set",
        "[]string | listType=set default=[\"a\",\"a\"]",
        "[]string | default=null",
        "map[string]Item",
        "Item | default={\"port\": 1}",
        "string | maxLength=-1",
        "string | minLength=3 maxLength=2",
        "string | required=true default=x",
        "map[string]string | validation=\"self.all(k, k != 'a')\"",
    ] {
        let built = build(&map(&json!({"a": field})), &map(&item));
        assert!(built.is_ok(), "{field}: {built:?}");
    }
}

#[test]
fn what_the_api_server_would_refuse_is_found_here() {
    let item = json!({"Item": {"name": "string", "port": "integer | required=true"}});
    for (field, words) in [
        ("string | default=\"a\\\"b\"", "default value is not valid JSON: \"a\"b\""),
        ("boolean | default=T", "default value is not valid JSON: T"),
        ("string | enum=\"a,b\" default=c", "default value does not fit the schema: \"c\" is not one of \"a\", \"b\""),
        ("integer | minimum=5 default=1", "default value does not fit the schema: 1 is not at least 5"),
        ("[]integer | default=[\"x\"]", "default value does not fit the schema at [0]: expected integer, got string"),
        ("Item | default={\"name\": \"x\"}", "default value does not fit the schema at port: is required and missing"),
        ("float | minimum=-inf", "minimum must be a number of JSON, got: -inf"),
        ("integer | maximum=Inf", "maximum must be a number of JSON, got: Inf"),
        ("float | maximum=NaN", "maximum must be a number of JSON, got: NaN"),
        ("string | validation=\"self ==\"", "validation rule is not an expression: 1:"),
        ("[]Item | uniqueItems=true", "a set cannot have objects as elements"),
        ("[]Item | listType=map", "listType=map needs at least one listMapKey"),
        ("[]Item | listType=map listMapKey=nam", "listMapKey nam is not a field of the list's elements"),
        ("[]Item | listType=map listMapKey=name", "listMapKey name must be required or have a default in the list's elements"),
        ("[]string | listType=map listMapKey=name", "listType=map needs elements that are objects"),
    ] {
        let found = findings(&json!({"a": field}), &item);
        assert!(found.len() == 1 && found[0].starts_with(&format!("spec.schema.spec.a: {words}")), "{field}: {found:?}");
    }
    assert_eq!(findings(&json!({"a": "[]Item | listType=map listMapKey=port"}), &item), Vec::<String>::new());
}

#[test]
fn oddities_are_warnings() {
    for (field, words) in [
        ("string | default='x'", "the single quotes are part of the default: \"'x'\""),
        ("string | default=\"a\\\\b\"", "the backslash starts a JSON escape: the default is \"a\\u{8}\""),
        ("[]string | default=null", "null is no default: API servers leave it out"),
        (
            "string | validation=\"self > 1\"",
            "validation rule may be refused: found no matching overload for '_>_' applied to '(string, int)'",
        ),
        ("string | validation=\"self\"", "validation rule gives string, not bool"),
        ("string | re quired=true", "blanks inside the marker key required are dropped"),
    ] {
        assert_eq!(findings(&json!({"a": field}), &json!({})), [format!("spec.schema.spec.a: {words}")], "{field}");
    }
}

#[test]
fn all_mistakes_are_said_at_once_in_order() {
    let spec = json!({"b": 5, "a": "Loop", "n": {"x": "nothing", "y": "integer | minimum=q maximum=r"}});
    let types = json!({"Loop": "Other", "Other": {"x": "[]Loop"}, "Gone": "Missing", "Own": "Own", "Bad": ["x"], "Field": {"f": "integer | default=x"}});
    assert_eq!(
        findings(&spec, &types),
        [
            "spec.schema.spec.b: unexpected type: float64 (write a type, such as \"string\"; a default is a marker: \"string | default=x\")",
            "spec.schema.spec.n.x: unknown type: nothing",
            "spec.schema.spec.n.y: failed to parse maximum enum value: strconv.ParseFloat: parsing \"r\": invalid syntax",
            "spec.schema.spec.n.y: failed to parse minimum enum value: strconv.ParseFloat: parsing \"q\": invalid syntax",
            "spec.schema.types.Bad: parsing type Bad: unexpected type: []interface {} (write the element's type: \"[]string\")",
            "spec.schema.types.Field.f: default value must be a valid integer, got: x",
            "spec.schema.types.Gone: node Missing does not exist",
            "spec.schema.types.Loop: cyclic dependency in type Loop: graph contains a cycle: Loop -> Other -> Loop",
            "spec.schema.types.Own: self references are not allowed",
        ]
    );
}

#[test]
fn the_marker_at_fault_has_its_offset() {
    let errors = build(&map(&json!({"a": "integer | required=true minimum=x"})), &Map::new()).unwrap_err().errors;
    assert_eq!(errors[0].expression, Some(("integer | required=true minimum=x".to_owned(), 24)));
}

#[test]
fn types_that_double_at_every_level_are_bounded() {
    let types: Map<String, Value> =
        (0..40).map(|n| (format!("T{n}"), json!({"a": format!("T{}", n + 1), "b": format!("T{}", n + 1)}))).collect();
    let types = types.into_iter().chain([("T40".to_owned(), json!("string"))]).collect();
    let errors = build(&map(&json!({"a": "T0"})), &types).unwrap_err().errors;
    assert!(errors.iter().any(|error| error.message.contains("more than 100000 fields")), "{errors:?}");
}

proptest! {
    #[test]
    fn no_field_panics(field in any::<String>()) {
        let _ = build(&map(&json!({"a": field.clone()})), &map(&json!({"T": field})));
    }

    #[test]
    fn marker_like_text_does_not_panic(field in "(\\[\\]|map\\[string\\]|string|integer|T)? ?\\|( |[a-z]{1,3}|required=|default=|enum=|listType=|listMapKey=|map|\"|\\\\|\\{|\\}|,|=|1|true){0,12}") {
        let _ = build(&map(&json!({"a": field.clone()})), &map(&json!({"T": field})));
    }

    #[test]
    fn one_mistake_hides_no_other(fields in prop::collection::btree_map("[a-e]", "(string|x|\\[\\])( \\| (minimum=q|z=1|default=t|enum=))?", 0..5)) {
        let alone = fields.iter().flat_map(|(name, field)| findings(&json!({name: field}), &json!({})));
        prop_assert_eq!(findings(&json!(fields), &json!({})), alone.collect::<Vec<_>>());
    }
}
