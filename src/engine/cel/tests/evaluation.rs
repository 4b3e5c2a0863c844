//! Values, pending data, references.

use std::sync::Arc;

use serde_json::{Value, json};

use crate::{
    cel::{
        Activation, Dialect, ErrorKind, Evaluated, Expression, Limits, Scope, Type, check, evaluate, evaluate_into, is_function,
        is_type_name,
    },
    schema::Schema,
};

fn activation() -> Activation {
    Activation::new().with(
        "schema",
        json!({"spec": {"list": [{"name": "a"}, {"nom": "b"}], "map": {"x": {"y": 1}}, "in": 1, "a.b": 2, "my-field": "f", "namespace": "n", "none": null}}),
        None,
    )
}

fn value(source: &str) -> Result<Value, ErrorKind> {
    let expression = Expression::parse(source).unwrap_or_else(|error| panic!("{source}: {error}"));
    match evaluate(&expression, &activation(), &Limits::default()) {
        Ok(Evaluated::Value(value)) => Ok(value),
        Ok(Evaluated::Omit) => Ok(json!("omitted")),
        Err(error) => Err(error.kind),
    }
}

#[test]
fn pending_names_what_is_missing() {
    for (source, path) in [
        ("schema.spec.nope", "schema.spec.nope"),
        ("'a-' + schema.spec.nope.deep", "schema.spec.nope"),
        ("deployment.status.replicas", "deployment"),
        ("schema.spec.list[5].name", "schema.spec.list[5]"),
        ("schema.spec.map['z']", "schema.spec.map.z"),
        ("schema.spec.map['z.w']", "schema.spec.map[\"z.w\"]"),
        ("schema.spec.list.map(i, i.name)", "schema.spec.list[1].name"),
        ("schema.spec.list.transformList(i, v, v.name)", "schema.spec.list[1].name"),
        ("schema.spec.list.all(i, i.name != '')", "schema.spec.list[1].name"),
        ("schema.spec.list.filter(i, i.name != '').size()", "schema.spec.list[1].name"),
        ("cel.bind(m, schema.spec.map, m.gone)", "schema.spec.map.gone"),
        ("true ? schema.spec.gone : 1", "schema.spec.gone"),
        ("json.marshal({'a': schema.spec.gone})", "schema.spec.gone"),
        ("string(schema.spec.gone)", "schema.spec.gone"),
        ("schema.spec.my__dash__thing", "schema.spec.my__dash__thing"),
    ] {
        assert_eq!(value(source), Err(ErrorKind::Pending { path: path.to_owned() }), "{source}");
    }
}

#[test]
fn mistakes_are_not_pending() {
    for source in ["1 / 0", "schema.spec + 1", "int('x')", "schema.spec.map.x.y.z", "b'a'", "{1: 2}", "duration('x')"] {
        assert_eq!(value(source), Err(ErrorKind::Failed), "{source}");
    }
    let expression = Expression::parse("1 + [1, 2].map(x, x / 0)[0]").unwrap();
    assert_eq!(evaluate(&expression, &activation(), &Limits::default()).unwrap_err().offset, Some(20));
}

#[test]
fn functions_that_fail_say_so_in_words_of_go() {
    for (source, said) in [
        ("json.marshal(-1.0 / 0.0)", "json.marshal failed to encode value: json: unsupported value: -Inf"),
        ("json.marshal([0.0 / 0.0])", "json.marshal failed to encode value: json: unsupported value: NaN"),
        ("json.marshal({1: 2})", "json.marshal failed to convert value: map key must be string, got int64"),
        ("string(base64.decode('b'))", "illegal base64 data at input byte 0"),
        ("string(base64.decode('YWJjé'))", "illegal base64 data at input byte 4"),
        ("string(base64.decode('YQ='))", "illegal base64 data at input byte 2"),
        ("string(base64.decode('YWJj\\nYWJjY'))", "illegal base64 data at input byte 9"),
    ] {
        let expression = Expression::parse(source).unwrap_or_else(|error| panic!("{source}: {error}"));
        assert_eq!(evaluate(&expression, &activation(), &Limits::default()).unwrap_err().message, said, "{source}");
    }
}

#[test]
fn computes_values() {
    for (source, expected) in [
        ("schema.spec.my__dash__field", json!("f")),
        ("schema.spec.a__dot__b", json!(2)),
        (
            "json.marshal([double(9223372036854775807), 1e16, 1e21, 1e20, -2.5e-7, 1e-6, -0.0, 1.0, 100000.5])",
            json!("[9223372036854776000,10000000000000000,1e+21,100000000000000000000,-2.5e-7,0.000001,-0,1,100000.5]"),
        ),
        ("schema.spec.__in__", json!(1)),
        ("schema.spec.__namespace__ + schema.spec.namespace", json!("nn")),
        ("has(schema.spec.__namespace__) && !has(schema.spec.__for__)", json!(true)),
        ("has(schema.spec.my__dash__field) && !has(schema.spec.my__dash__nope)", json!(true)),
        ("schema.spec.?my__dash__nope.orValue('d')", json!("d")),
        ("schema.spec.`my-field`", json!("f")),
        ("{'a': 1, 'b': omit(), 'c': [omit(), 2]}", json!({"a": 1, "c": [2]})),
        ("omit()", json!("omitted")),
        ("{'z': 1, 'a': 2, 'm': 3}.map(k, k)", json!(["a", "m", "z"])),
        ("{'b': [3, 1], 'a': [2]}.transformList(k, v, v.map(x, k + string(x)))", json!([["a2"], ["b3", "b1"]])),
        ("[[1, 2], [3]].map(o, o.map(i, i * o.size()))", json!([[2, 4], [3]])),
        ("[1, 2, 3].transformMap(i, v, v > 1, v)[1]", json!(2)),
        ("{'a': 1}.exists(k, v, [5].exists(i, w, w == 5 && v == 1))", json!(true)),
        ("['b', 'a'].sortBy(x, x)", json!(["a", "b"])),
        ("cel.bind(json, {'marshal': 1}, json.marshal(1))", json!("1")),
        ("'é'.size()", json!(1)),
        ("'é' + \"日本\" + r'\\ü'", json!("é日本\\ü")),
        ("'\\u0001é' + 'ß'", json!("\u{1}éß")),
        ("{'ключ': 'é', 'b': ['ö']}", json!({"ключ": "é", "b": ["ö"]})),
        ("base64.encode(b'aé')", json!("YcOp")),
        ("'''é\n''' // ünd", json!("é\n")),
        ("2.0", json!(2)),
        ("timestamp('2024-01-02T03:04:05.678+01:00')", json!("2024-01-02T02:04:05Z")),
        ("'a.b'.matches('^a[.]b$')", json!(true)),
        ("string(1.0) + string(1e6) + string(ip('::1'))", json!("11e+06::1")),
    ] {
        assert_eq!(value(source), Ok(expected), "{source}");
    }
}

#[test]
fn reading_follows_the_schema() {
    let schema: Schema = serde_json::from_value(json!({"type": "object", "properties": {
        "data": {"type": "object", "additionalProperties": {"type": "string", "format": "byte"}},
        "bad": {"type": "string", "format": "byte"},
        "micro": {"type": "string", "format": "date-time"},
        "at": {"type": "string", "format": "date-time"},
        "day": {"type": "string", "format": "date"},
        "wait": {"type": "string", "format": "duration"},
        "count": {"type": "integer"},
        "ratio": {"type": "number"},
        "gone": {"type": "string"},
        "map": {"type": "object", "additionalProperties": {"type": "string", "nullable": true}},
    }}))
    .unwrap();
    let object = json!({"data": {"k": "aGk=", "at": ""}, "bad": "!", "micro": "2024-01-02T03:04:05.250Z", "at": "2024-01-02T03:04:05Z", "day": "2024-01-02", "wait": "90s", "count": 2.0, "ratio": 3, "gone": null, "map": {"x": null}});
    let activation = Activation::new().with("o", object, Some(Arc::new(schema)));
    for (source, expected) in [
        ("string(o.data.k)", json!("hi")),
        ("o.at.getFullYear()", json!(2024)),
        ("o.day.getMonth()", json!(0)),
        ("o.wait + duration('30s')", json!("2m0s")),
        ("o.count + 1", json!(3)),
        ("o.ratio + 0.5", json!(3.5)),
        ("has(o.gone)", json!(false)),
        ("o.map.x == null", json!(true)),
        ("o.data", json!({"k": "aGk=", "at": ""})),
        ("{'when': o.at, 'micro': o.micro}", json!({"when": "2024-01-02T03:04:05Z", "micro": "2024-01-02T03:04:05.250Z"})),
        ("o.micro", json!("2024-01-02T03:04:05Z")),
    ] {
        let found = evaluate(&Expression::parse(source).unwrap(), &activation, &Limits::default());
        assert_eq!(found, Ok(Evaluated::Value(expected)), "{source}");
    }
    let data: Schema = serde_json::from_value(json!({"type": "string", "format": "byte"})).unwrap();
    let bytes = Expression::parse("o.data.k + bytes('!')").unwrap();
    assert_eq!(evaluate_into(&bytes, &activation, &Limits::default(), Some(&data)), Ok(Evaluated::Value(json!("aGkh"))));
    assert_eq!(evaluate(&bytes, &activation, &Limits::default()).unwrap_err().kind, ErrorKind::Failed);
    let broken = evaluate(&Expression::parse("o.bad").unwrap(), &activation, &Limits::default()).unwrap_err();
    assert_eq!((broken.kind, broken.message.as_str()), (ErrorKind::Failed, "invalid data, expected byte, got \"!\""));
}

/// An object with lists of all three types.
fn of_lists() -> Activation {
    let port = json!({"type": "object", "properties": {"name": {"type": "string"}, "port": {"type": "integer"}, "tags":
        {"type": "array", "x-kubernetes-list-type": "set", "items": {"type": "string"}}}});
    let schema: Schema = serde_json::from_value(json!({"type": "object", "properties": {
        "set": {"type": "array", "x-kubernetes-list-type": "set", "items": {"type": "string"}},
        "ports": {"type": "array", "x-kubernetes-list-type": "map", "x-kubernetes-list-map-keys": ["name"], "items": port},
        "plain": {"type": "array", "items": {"type": "string"}},
        "nested": {"type": "object", "properties": {"set":
            {"type": "array", "x-kubernetes-list-type": "set", "items": {"type": "integer"}}}}}}))
    .unwrap();
    let object = json!({"set": ["a", "b", "c"], "plain": ["a", "b"], "nested": {"set": [1, 2]},
        "ports": [{"name": "x", "port": 1, "tags": ["s", "t"]}, {"name": "y", "port": 2}]});
    Activation::new().with("o", object, Some(Arc::new(schema)))
}

/// As in Kubernetes' CEL: the list on the left decides.
#[test]
fn sets_and_map_lists_are_compared_and_added_without_order() {
    let activation = of_lists();
    for (source, expected) in [
        ("o.set == ['c', 'a', 'b']", json!(true)),
        ("o.set != ['c', 'a', 'b']", json!(false)),
        ("['c', 'a', 'b'] == o.set", json!(false)),
        ("['a', 'b', 'c'] == o.set", json!(true)),
        ("o.set == ['a', 'b']", json!(false)),
        ("o.set == ['a', 'b', 'd']", json!(false)),
        ("o.set + ['c', 'd', 'd'] ", json!(["a", "b", "c", "d"])),
        ("['d', 'a'] + o.set", json!(["d", "a", "a", "b", "c"])),
        ("(o.set + ['d']) == ['d', 'c', 'b', 'a']", json!(true)),
        ("o.plain == ['b', 'a']", json!(false)),
        ("o.plain + ['a']", json!(["a", "b", "a"])),
        ("o.ports == [{'name': 'y', 'port': 2}, {'name': 'x', 'port': 1, 'tags': ['t', 's']}]", json!(true)),
        ("o.ports == [{'name': 'y', 'port': 3}, {'name': 'x', 'port': 1, 'tags': ['t', 's']}]", json!(false)),
        (
            "(o.ports + [{'name': 'z', 'port': 9}, {'name': 'x', 'port': 7}]).map(p, p.name + string(p.port))",
            json!(["x7", "y2", "z9"]),
        ),
        ("o.nested == {'set': [2, 1]}", json!(true)),
        ("[o.set].exists(s, s == ['b', 'c', 'a'])", json!(true)),
        ("cel.bind(s, o.set, s == ['b', 'c', 'a'])", json!(true)),
    ] {
        let found = evaluate(&Expression::parse(source).unwrap(), &activation, &Limits::default());
        assert_eq!(found, Ok(Evaluated::Value(expected)), "{source}");
    }
}

#[test]
fn a_list_of_any_type_is_one_for_every_function() {
    let activation = of_lists();
    for (source, expected) in [
        ("o.set", json!(["a", "b", "c"])),
        ("[o.set, o.plain]", json!([["a", "b", "c"], ["a", "b"]])),
        ("o.set[1] + o.ports[1].name", json!("by")),
        ("size(o.set) + o.ports.size()", json!(5)),
        ("'a' in o.set && !('x' in o.set)", json!(true)),
        ("o.set.map(x, x + '!')", json!(["a!", "b!", "c!"])),
        ("o.ports.filter(p, p.port > 1)[0].name", json!("y")),
        ("o.set.join(',')", json!("a,b,c")),
        ("o.set.reverse()", json!(["c", "b", "a"])),
        ("o.set.slice(0, 1)", json!(["a"])),
        ("o.set.sort().first().orValue('')", json!("a")),
        ("lists.setAtIndex(o.set, 0, 'z')", json!(["z", "b", "c"])),
        ("o.set.indexOf('c')", json!(2)),
        ("type(o.set) == list", json!(true)),
        ("json.marshal(o.nested)", json!("{\"set\":[1,2]}")),
        ("optional.ofNonZeroValue(o.set).hasValue()", json!(true)),
        ("optional.ofNonZeroValue(timestamp(0)).hasValue()", json!(true)),
        ("optional.ofNonZeroValue(timestamp('0001-01-01T00:00:00Z')).hasValue()", json!(false)),
        ("optional.ofNonZeroValue(duration('0s')).hasValue()", json!(false)),
        ("optional.ofNonZeroValue(b'').hasValue() || optional.ofNonZeroValue(null).hasValue()", json!(false)),
        ("[0, 0u, 0.0].exists(x, optional.ofNonZeroValue(dyn(x)).hasValue())", json!(false)),
        ("optional.ofNonZeroValue(optional.none()).hasValue() && optional.ofNonZeroValue(int).hasValue()", json!(true)),
        ("o.?set[?5].orValue('none')", json!("none")),
        ("'%s'.format([o.plain]) == '%s'.format([o.set.slice(0, 2)])", json!(true)),
        ("o.set.all(x, x in o.set)", json!(true)),
        ("o.nested.set.sum()", json!(3)),
    ] {
        let found = evaluate(&Expression::parse(source).unwrap(), &activation, &Limits::default());
        assert_eq!(found, Ok(Evaluated::Value(expected)), "{source}");
    }
}

#[test]
fn references_leave_out_what_macros_bind() {
    let expression = Expression::parse(
        "a.spec.items.map(i, i.x + b.y).filter(c, c != d['k'].z) == cel.bind(e, f.g, e + e) && json.marshal(h[0]).size() > nope(j.?k.l) && has(m.n.o) && p[q.r].s",
    )
    .unwrap();
    let found = expression.references();
    let roots: Vec<&str> = found.identifiers.keys().map(String::as_str).collect();
    assert_eq!(roots, ["a", "b", "d", "f", "h", "j", "m", "p", "q"]);
    assert_eq!(found.functions.iter().map(String::as_str).collect::<Vec<_>>(), ["json.marshal", "size"]);
    assert_eq!(found.unknown_functions.keys().map(String::as_str).collect::<Vec<_>>(), ["nope"]);
    let paths: Vec<String> = found.paths.iter().map(|path| path.join(".")).collect();
    assert_eq!(paths, ["a.spec.items", "b.y", "d.k.z", "f.g", "h.[0]", "j.k.l", "m.n.o", "p", "q.r"]);
    assert_eq!(found.identifiers["b"], 26);
    assert!(is_function("json.marshal") && !is_function("nope") && is_type_name("string") && !is_type_name("schema"));
}

#[test]
fn delivery_takes_images_apart() {
    let resource = json!({"access": {"type": "ociArtifact", "imageReference": "ghcr.io/org/app:v1@sha256:abc"}});
    let activation = Activation::new().with("resource", resource, None);
    let scope = Scope::new().with("resource", Type::Dyn);
    for (source, expected) in [
        ("resource.access.toOCI().registry", "ghcr.io"),
        ("resource.access.toOCI().repository", "org/app"),
        ("resource.access.imageReference.toOCI().tag", "v1"),
        ("resource.access.toOCI().digest", "sha256:abc"),
    ] {
        let expression = Expression::parse_as(source, Dialect::Delivery).unwrap();
        assert_eq!(check(&expression, &scope), Ok(Type::String), "{source}");
        assert_eq!(evaluate(&expression, &activation, &Limits::default()), Ok(Evaluated::Value(json!(expected))), "{source}");
    }
    let kro = Expression::parse("resource.access.toOCI()").unwrap();
    assert!(check(&kro, &scope).is_err(), "kro has no such function");
}

#[test]
fn versions_are_compared_by_whoever_evaluates() {
    let expression = Expression::parse_as("semverCheck(identity.version, '>=2 <3')", Dialect::Discovery).unwrap();
    let identity = |version: &str| Activation::new().with("identity", json!({"version": version}), None);
    let check = |version: &str, constraint: &str| match version {
        "latest" => Err("`latest` is no version".to_owned()),
        version => Ok(constraint == ">=2 <3" && version.starts_with("v2.")),
    };
    let ask = |version: &str| evaluate(&expression, &identity(version).with_version_check(check), &Limits::default());
    assert_eq!(ask("v2.1.0"), Ok(Evaluated::Value(json!(true))));
    assert_eq!(ask("v3.0.0"), Ok(Evaluated::Value(json!(false))));
    assert!(ask("latest").unwrap_err().message.contains("is no version"));
    let without = evaluate(&expression, &identity("v2.1.0"), &Limits::default()).unwrap_err();
    assert!(without.message.contains("cannot be compared here"), "the check of one evaluation is not that of the next");
}

#[test]
fn conditions_of_authors() {
    let runtime = json!({"status": {"conditions": [{"type": "Ready", "status": "True", "reason": "AllReady", "message": "m"}]}});
    let child = json!({"status": {"conditions": [{"type": "Ready", "status": "False"}]}});
    let activation = activation().with("runtime", runtime, None).with("child", child, None);
    for (source, expected) in [
        ("runtime.condition(schema, 'Ready').reason", json!("AllReady")),
        ("runtime.condition(child, 'Ready').status", json!("False")),
        ("runtime.condition(child, 'Other')", json!({"type": "", "status": "", "reason": "", "message": ""})),
        ("runtime.newCondition({type: 'A', status: 'True'}).status", json!("True")),
    ] {
        let found = evaluate(&Expression::parse(source).unwrap(), &activation, &Limits::default());
        assert_eq!(found, Ok(Evaluated::Value(expected)), "{source}");
    }
}
