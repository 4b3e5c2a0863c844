//! The checker on objects with schemas.

use std::collections::BTreeSet;

use serde_json::{Value, json};

use crate::{
    cel::{Expression, Scope, Type, check, environment::Environment, library, signature::Signature},
    schema::Schema,
    testing::text,
};

fn schema(json: Value) -> Schema {
    serde_json::from_value(json).unwrap()
}

fn deployment() -> Schema {
    schema(json!({
        "type": "object",
        "properties": {
            "metadata": {"type": "object", "properties": {
                "name": {"type": "string"},
                "labels": {"type": "object", "additionalProperties": {"type": "string"}},
                "creationTimestamp": {"type": "string", "format": "date-time"},
            }},
            "spec": {"type": "object", "properties": {
                "replicas": {"type": "integer"},
                "ratio": {"type": "number"},
                "paused": {"type": "boolean"},
                "my-field": {"type": "string"},
                "namespace": {"type": "string"},
                "port": {"x-kubernetes-int-or-string": true},
                "containers": {"type": "array", "items": {"type": "object", "properties": {
                    "name": {"type": "string"}, "image": {"type": "string"},
                }}},
                "untyped": {},
            }},
            "status": {"type": "object", "x-kubernetes-preserve-unknown-fields": true, "properties": {"ready": {"type": "boolean"}}},
            "data": {"type": "object", "additionalProperties": {"type": "string", "format": "byte"}},
        },
    }))
}

fn scope() -> Scope {
    Scope::new().with("deployment", Type::of_schema("deployment", &deployment()))
}

/// The type, or the mistakes as `offset: message (hint)`.
fn found(source: &str) -> String {
    let expression = Expression::parse(source).unwrap_or_else(|error| panic!("{source}: {error}"));
    match check(&expression, &scope()) {
        Ok(of) => of.to_string(),
        Err(errors) => {
            let shown = errors.iter().map(|error| match &error.hint {
                Some(hint) => format!("{}: {} ({hint})", error.offset, error.message),
                None => format!("{}: {}", error.offset, error.message),
            });
            shown.collect::<Vec<_>>().join("; ")
        }
    }
}

#[test]
fn finds_types_of_fields() {
    for (source, of) in [
        ("deployment.spec.replicas", "int"),
        ("deployment.spec.ratio", "double"),
        ("deployment.spec.port", "dyn"),
        ("deployment.spec.my__dash__field", "string"),
        ("deployment.spec.__namespace__ + deployment.spec.namespace", "string"),
        ("has(deployment.spec.__namespace__)", "bool"),
        ("deployment.spec.?__namespace__.orValue('x')", "string"),
        ("deployment.metadata.labels", "map(string, string)"),
        ("deployment.metadata.labels['a']", "string"),
        ("deployment.metadata.?labels.?a.orValue('x')", "string"),
        ("deployment.metadata.creationTimestamp", "google.protobuf.Timestamp"),
        ("deployment.spec.containers", "list(__type_deployment.spec.containers.@idx)"),
        ("deployment.spec.containers.map(c, c.name)", "list(string)"),
        ("deployment.spec.containers.filter(c, c.image != '')[0]", "__type_deployment.spec.containers.@idx"),
        ("deployment.spec.containers.transformMapEntry(i, c, {c.name: i})", "map(string, int)"),
        ("deployment.status.ready", "bool"),
        ("deployment.status.anything.at.all", "dyn"),
        ("deployment.data['k']", "bytes"),
        ("string(deployment.data['k'])", "string"),
        ("has(deployment.spec.replicas) ? deployment.spec.replicas : 1", "int"),
        ("cel.bind(n, deployment.spec.replicas, n + 1)", "int"),
        ("[1, 2].sortBy(x, -x)", "list(int)"),
        ("[].sortBy(x, x)", "list(int)"),
        ("[].sortBy(x, 'a')", "list(dyn)"),
        ("dyn([]).sortBy(x, x)", "list(dyn)"),
        ("{}", "map(dyn, dyn)"),
        ("[]", "list(dyn)"),
        ("[deployment.spec.containers[0], dyn(1)]", "list(dyn)"),
        ("type(deployment.spec.replicas) == int", "bool"),
        ("quantity('1').add(1)", "kubernetes.Quantity"),
        ("optional.none()", "optional_type(dyn)"),
        ("true ? deployment.spec.containers[0] : deployment.spec.containers[1]", "__type_deployment.spec.containers.@idx"),
    ] {
        assert_eq!(found(source), of, "{source}");
    }
}

#[test]
fn names_mistakes_with_their_places() {
    for (source, mistakes) in [
        ("deployment.spec.replica", "15: undefined field 'replica' (did you mean 'replicas'?)"),
        ("deployment.spec.untyped", "15: undefined field 'untyped'"),
        ("deploymnt.spec", "0: undeclared reference to 'deploymnt' (in container '') (did you mean 'deployment'?)"),
        (
            "'a' + deployment.spec.replicas",
            "4: found no matching overload for '_+_' applied to '(string, int)' (convert with string(…))",
        ),
        (
            "deployment.spec.ratio + 1",
            "22: found no matching overload for '_+_' applied to '(double, int)' (numbers of different types do not mix: convert with int(…) or double(…))",
        ),
        ("deployment.spec.nope + deployment.spec.nada", "15: undefined field 'nope'; 38: undefined field 'nada'"),
        (
            "deployment.spec.paused.all(x, true)",
            "15: expression of type 'bool' cannot be range of a comprehension (must be list, map, or dynamic)",
        ),
        (
            "deployment.spec.containers.filter(c, c.name)",
            "38: found no matching overload for '_?_:_' applied to '(string, dyn, dyn)' (the condition of the macro must be bool, and is string)",
        ),
        ("deployment.spec.containers.all(c, c.nam == '')", "35: undefined field 'nam' (did you mean 'name'?)"),
        ("deployment.metadata.name.size", "24: type 'string' does not support field selection"),
        (
            "deployment.metadata.name.lowerAsci()",
            "34: undeclared reference to 'lowerAsci' (in container '') (did you mean 'lowerAscii'?)",
        ),
        (
            "deployment.spec.?replicas.size()",
            "30: found no matching overload for 'size' applied to 'optional_type(int).()' (the value is optional: take it out with orValue(…), or test it with hasValue())",
        ),
        (
            "'%d'.format([deployment.metadata.name])",
            "32: error during formatting: decimal clause can only be used on ints, uints, and doubles, was given string",
        ),
        ("deployment.metadata.name.find('a**')", "30: error parsing regexp: invalid nested repetition operator: `**`"),
        // Told at run time, as by Kubernetes.
        ("deployment.metadata.name.matches('a**')", "bool"),
    ] {
        assert_eq!(found(source), mistakes, "{source}");
    }
}

/// kro#895: two objects that have the same fields are of one type, whatever the types are called.
#[test]
fn branches_with_the_same_fields_are_alike() {
    let container = schema(json!({"type": "object", "properties": {"image": {"type": "string"}}}));
    let scope = Scope::new()
        .with("a", Type::of_schema("a", &container))
        .with("b", Type::of_schema("b", &container))
        .with("c", Type::of_schema("c", &schema(json!({"type": "object", "properties": {"image": {"type": "integer"}}}))));
    assert!(check(&Expression::parse("true ? a : b").unwrap(), &scope).is_ok());
    let errors = check(&Expression::parse("true ? a : c").unwrap(), &scope).unwrap_err();
    assert_eq!(errors[0].message, "found no matching overload for '_?_:_' applied to '(bool, __type_a, __type_c)'");
}

#[test]
fn conditions_and_lists_are_recognised() {
    assert!(
        Type::Bool.is_condition()
            && !Type::Dyn.is_condition()
            && Type::optional(Type::Dyn).is_dynamic()
            && Type::optional(Type::Bool).is_condition()
    );
    assert!(!Type::String.is_condition() && !Type::optional(Type::String).is_condition());
    assert_eq!(Type::list(Type::Int).element(), Some(&Type::Int));
    assert_eq!(Type::map(Type::Int).element(), None);
}

/// The table of functions is kro's: nothing missing, nothing added, every signature the same.
#[test]
fn show_03_cel_functions() {
    let Some(text) = text("kro/cel-functions.json") else { return };
    let theirs: Value = serde_json::from_str(&text).unwrap();
    let theirs: BTreeSet<String> = theirs["functions"]
        .as_object()
        .unwrap()
        .iter()
        // What macros of kro's become, and older names of operators, cannot be written.
        .filter(|(name, _)| {
            !name.starts_with("@sort")
                && !name.starts_with("cel.@")
                && !["@not_strictly_false", "__not_strictly_false__", "_in_", "in"].contains(&name.as_str())
        })
        .flat_map(|(_, signatures)| signatures.as_array().unwrap().iter().map(|signature| signature.as_str().unwrap().to_owned()))
        .collect();
    let ours: BTreeSet<String> =
        library::kro().iter().flat_map(|entry| entry.signatures.iter().map(|signature| (*signature).to_owned())).collect();
    println!("SHOW 03 cel_functions {}/{}", ours.intersection(&theirs).count(), theirs.len());
    assert_eq!(ours, theirs);
    for entry in library::kro() {
        for text in entry.signatures {
            Signature::parse(entry.name, text);
        }
        assert!(Environment::kro().has_function(entry.name));
    }
}

#[test]
fn messages_of_protobuf_are_told_with_what_says_the_same() {
    for (source, said) in [
        (
            "string(google.protobuf.Timestamp{seconds: 1})",
            "32: messages of protobuf are not supported: google.protobuf.Timestamp (timestamp(…) makes a time)",
        ),
        (
            "google.protobuf.StringValue{value: 'x'}",
            "27: messages of protobuf are not supported: google.protobuf.StringValue (write the value itself)",
        ),
        ("deployment{a: 1}", "10: undeclared reference to 'deployment' (in container '') (NAME{…} makes a message"),
    ] {
        assert!(found(source).starts_with(said), "{source}: {}", found(source));
    }
}
