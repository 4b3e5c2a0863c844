//! No mistake hides another one, and none is said that only follows from another.

use super::rules::{check, map};
use crate::testing::rgd;

/// Adds mistakes of its own to a definition with a mistake elsewhere: a misspelt field, a name of nobody.
fn with_others(first: &str) -> String {
    first.to_owned() + &map("v", "${schema.spec.nam}") + &map("w", "${nobody.x}")
}

const OTHERS: [&str; 2] = ["undefined field 'nam'", "references unknown identifiers: [nobody]"];

#[test]
fn a_bad_field_of_the_schema_leaves_the_others_known() {
    let spec = "name: string\nbad: strin\nlist: '[]strin'\nlow: integer | minimum=x\nfive: 5\nown: {inner: numbr, kind: string}";
    let reads = map("a", "${schema.spec.bad}${schema.spec.bad.x.y}${schema.spec.list[0].x}${schema.spec.five}")
        + &map("b", "${schema.spec.own.inner}${schema.spec.own.kid}")
        + &map("c", "${schema.spec.low}");
    check(
        &rgd(spec, "s: ${schema.spec.bad.x}\nt: ${schema.spec.lst}", &with_others(&reads)),
        &[
            "unknown type: strin",
            "unknown type: strin",
            "failed to parse minimum",
            "unexpected type: float64",
            "unknown type: numbr",
            "undefined field 'lst'",
            "undefined field 'kid'",
            "returns type \"int\" but expected \"string\"",
            OTHERS[0],
            OTHERS[1],
        ],
    );
}

#[test]
fn a_bad_custom_type_leaves_the_others_known() {
    let spec = "name: string\nof: Bad\nwell: Good\n";
    let types = "    types:\n      Bad: strin\n      Good: {x: string, u: Bad}\n      Loop: Loop\n    spec:\n";
    let reads = map("a", "${schema.spec.of.x}${schema.spec.well.u.z}${schema.spec.well.w}");
    check(
        &rgd(spec, "", &with_others(&reads)).replacen("    spec:\n", types, 1),
        &["node strin does not exist", "self references are not allowed", "undefined field 'w'", OTHERS[0], OTHERS[1]],
    );
}

/// What decides over a node must be a bool, whatever else is wrong.
#[test]
fn a_condition_of_a_known_field_is_judged_beside_a_bad_field() {
    let when = |condition: &str| map("a", "x").replace("- id: a", &format!("- id: a\n  includeWhen: ['${{{condition}}}']"));
    let spec = "bad: strin\nany: object\nname: string";
    check(&rgd(spec, "", &when("schema.spec.any.x")), &["unknown type: strin", "must return bool or optional_type(bool)"]);
    check(&rgd(spec, "", &when("schema.spec.bad")), &["unknown type: strin"]);
}

#[test]
fn a_schema_that_is_none_hides_no_mistake_in_templates() {
    let text = rgd("", "", &map("z", "${nobody.x}${schema.spec.name}"));
    check(
        &text.replace("    spec:\n      name: string\n", "    spec: [name]\n"),
        &["spec.schema.spec in body must be of type object", "[nobody]"],
    );
    check(&text.replace("    kind: Test\n", ""), &["spec.schema.kind: Required value", "[nobody]"]);
    check(
        &text.replace("    kind: Test\n", "    kind: [Test]\n"),
        &["spec.schema.kind in body must be of type string", "[nobody]"],
    );
    check(&text.replace("    kind: Test\n", "    kind: test\n"), &["spec.schema.kind: Invalid value: \"test\"", "[nobody]"]);
    check(
        &text.replace("    kind: Test\n", "    kind: Test\n    scope: cluster\n"),
        &["Unsupported value: \"cluster\"", "[nobody]"],
    );
    let at = text.find("  schema:").unwrap();
    let without = text[..at].to_owned() + &text[text.find("  resources:").unwrap()..];
    check(&without, &["spec.schema: Required value", "[nobody]"]);
}

#[test]
fn resources_that_are_no_list_hide_no_mistake_in_the_schema() {
    let text = rgd("name: strin", "s: ${a.data.x}", "");
    check(
        &text.replace("  resources:\n", "  resources: {}\n"),
        &["unknown type: strin", "spec.resources in body must be of type array"],
    );
    check(
        &rgd("name: string", "s: ${a.data.x}${schema.spec.nam}", "").replace("  resources:\n", "  resourcs: []\n"),
        &["undefined field 'nam'", "unknown field \"spec.resourcs\""],
    );
    check(
        &rgd("name: strin", "s: ${schema.spec.x}", "- text\n- id: a\n"),
        &[
            "unknown type: strin",
            "undefined field 'x'",
            "spec.resources[0] in body must be of type object",
            "exactly one of template or externalRef must be provided",
        ],
    );
}

#[test]
fn a_resource_without_an_id_hides_no_mistake() {
    let nameless = map("gone", "${schema.spec.nam}${gone.x}").replacen("- id: gone\n  ", "- ", 1);
    check(
        &rgd("name: string", "", &(nameless.clone() + &map("b", "${gone.data.x}") + &map("c", "${schema.spec.nme}"))),
        &["spec.resources[0].id: Required value", "undefined field 'nam'", "undefined field 'nme'"],
    );
    // One resource has one name: with two that nobody has, at least one is a mistake.
    check(
        &rgd("name: string", "", &(nameless.clone() + &map("b", "${gone.data.x}") + &map("c", "${lost.x}"))),
        &["spec.resources[0].id: Required value", "undefined field 'nam'", "[gone]", "[gone]", "[lost]"],
    );
    check(
        &rgd("name: string", "", &(nameless.replacen("- ", "- id: [gone]\n  ", 1) + &map("c", "${schema.spec.nme}"))),
        &["spec.resources[0].id in body must be of type string", "undefined field 'nam'", "undefined field 'nme'"],
    );
}

#[test]
fn what_refers_to_a_name_that_is_none_is_not_blamed() {
    let reads = map("b", "${my-cm.data.x}") + "  readyWhen: ['${b.data.y == 1}']\n";
    check(
        &rgd("name: string", "s: ${my-cm.data.x}", &with_others(&(map("my-cm", "x") + &reads))),
        &["id my-cm is not a valid KRO resource id", "found no matching overload for '_==_'", OTHERS[0], OTHERS[1]],
    );
    let each = map("b", "${one-item}").replace("- id: b", "- id: b\n  forEach: [{one-item: '${schema.spec.names}'}]");
    check(
        &rgd("names: '[]string'", "", &each),
        &["iterator name \"one-item\" is not valid", "all forEach dimensions must be used to produce a unique resource identity"],
    );
}

/// The second may be meant to be another one: what reads the id is judged by neither, what each has of its own is.
#[test]
fn ids_that_are_used_twice_hide_no_mistake() {
    let service = "- id: a\n  readyWhen: ['${a.spec.clusterIP != 1}']\n  template:\n    apiVersion: v1\n    kind: Service\n    metadata:\n      name: ${a.data.x}-${nobody.x}\n";
    let first = map("a", "${schema.spec.nam}") + "  readyWhen: ['${a.data.x == 1}']\n";
    check(
        &rgd("name: string", "s: ${a.spec.clusterIP}\nt: ${a.data.x}", &(first + service + &map("c", "${a.data.x}"))),
        &[
            "undefined field 'nam'",
            "found no matching overload for '_==_'",
            "found duplicate resource IDs a",
            "found no matching overload for '_!=_'",
            "references unknown identifiers: [nobody]",
        ],
    );
}

#[test]
fn a_part_of_a_resource_that_is_none_hides_no_other() {
    let with = |part: &str| {
        rgd("name: string", "", &with_others(&map("a", "${schema.spec.nme}").replace("- id: a", &format!("- id: a\n  {part}"))))
    };
    let own = "undefined field 'nme'";
    check(&with("readyWhen: ready"), &["spec.resources[0].readyWhen in body must be of type array", own, OTHERS[0], OTHERS[1]]);
    check(
        &with("readyWhen: [5, '${a.dta}']"),
        &["spec.resources[0].readyWhen[0] in body must be of type string", "undefined field 'dta'", own, OTHERS[0], OTHERS[1]],
    );
    check(
        &with("includeWhen: [true]"),
        &["spec.resources[0].includeWhen[0] in body must be of type string", own, OTHERS[0], OTHERS[1]],
    );
    check(
        &with("externalRef: text"),
        &["spec.resources[0].externalRef in body must be of type object", own, OTHERS[0], OTHERS[1]],
    );
    let each = |each: &str| {
        rgd(
            "name: string\nall: '[]string'",
            "",
            &with_others(&map("a", "${one}").replace("- id: a", &format!("- id: a\n  forEach: {each}"))),
        )
    };
    let dimension = "a forEach dimension is a map of one entry";
    check(&each("[one]"), &[dimension, OTHERS[0], OTHERS[1]]);
    check(&each("[{one: [1]}]"), &[dimension, "missing: [one]", OTHERS[0], OTHERS[1]]);
    check(&each("{one: '${schema.spec.all}'}"), &["forEach in body must be of type array", OTHERS[0], OTHERS[1]]);
    let text = rgd("name: string", "", &with_others("- id: a\n  template: text\n"));
    check(&text.replace("${nobody.x}", "${nobody.x}${a.b}"), &["template in body must be of type object", OTHERS[0], OTHERS[1]]);
}

/// A field that is misspelt beyond doubt cannot be an iterator's.
#[test]
fn a_misspelt_field_hides_no_unknown_name_in_its_resource() {
    let misspelt = map("b", "${nobody.x}") + "  readyWen: ['${b.data.x}']\n";
    check(&rgd("", "", &misspelt), &["[nobody]", "unknown field \"spec.resources[0].readyWen\" (did you mean readyWhen?)"]);
}
