//! What a comparison with kro's own builder over generated definitions found: accepted by it means accepted here, and the other way
//! round where `docs/differences.md` says nothing else.

use plinth_api::Object;

use super::rules::map;
use crate::{
    graph::Compiled,
    schema::{SchemaMap, crd},
    testing::{compiled, core, rgd},
    yaml,
};

const WIDGET: &str = "
apiVersion: apiextensions.k8s.io/v1
kind: CustomResourceDefinition
metadata: {name: widgets.example.org}
spec:
  group: example.org
  names: {kind: Widget, plural: widgets}
  scope: Namespaced
  versions:
  - name: v1
    served: true
    storage: true
    schema:
      openAPIV3Schema:
        type: object
        properties:
          spec:
            type: object
            properties:
              labels: {type: object, additionalProperties: {type: string}}
              nested: {type: object, additionalProperties: {type: object, properties: {a: {type: string}, b: {type: integer}}}}
              deep: {type: object, properties: {leaf: {type: string}, count: {type: integer}}}
              half: {type: object, x-kubernetes-preserve-unknown-fields: true, properties: {known: {type: string}}}
              whole: {type: object, x-kubernetes-embedded-resource: true, x-kubernetes-preserve-unknown-fields: true}
              for: {type: integer}
              any: {x-kubernetes-preserve-unknown-fields: true}
";

const SPEC: &str =
    "name: string\ncount: integer\nmap: map[string]string\nopen: object\nall: '[]string'\nown: {leaf: string, more: integer}";

fn kinds() -> SchemaMap {
    let crd = yaml::documents(WIDGET).unwrap().remove(0).value;
    let mut kinds = core();
    kinds.extend(crd::kinds(&Object::from_value(crd).unwrap()).unwrap());
    kinds
}

fn widget(head: &str, name: &str, field: &str) -> String {
    format!(
        "- id: w\n{head}  template:\n    apiVersion: example.org/v1\n    kind: Widget\n    metadata: {{name: '{name}'}}\n    spec: {field}\n"
    )
}

/// The errors and the warnings of a definition.
fn findings(status: &str, resources: &str) -> (Vec<String>, Vec<String>) {
    let compiled = compiled(&rgd(SPEC, status, resources), &kinds());
    let (errors, warnings): (Vec<_>, Vec<_>) =
        compiled.diagnostics().iter().partition(|finding| finding.severity == crate::diagnostic::Severity::Error);
    let text = |found: Vec<&crate::Diagnostic>| found.iter().map(ToString::to_string).collect();
    (text(errors), text(warnings))
}

fn accepted(status: &str, resources: &str) -> Vec<String> {
    let (errors, warnings) = findings(status, resources);
    assert_eq!(errors, Vec::<String>::new(), "{status}{resources}");
    warnings
}

fn refused(status: &str, resources: &str, why: &str) {
    let (errors, _) = findings(status, resources);
    assert!(errors.len() == 1 && errors[0].contains(why), "{status}{resources}{errors:#?}\nis not only\n{why}");
}

/// kro finds the fields of an expected object neither below the keys of a map nor in a collection, nor those of a list of objects.
#[test]
fn objects_that_kro_does_not_look_into_are_accepted_with_a_warning() {
    let own = "field \"more\" exists in output but not in expected type";
    refused("", &widget("", "w", "{deep: '${schema.spec.own}'}"), own);
    let each = "  forEach: [{x: '${schema.spec.all}'}]\n";
    for resources in [
        widget("", "w", "{nested: {key: '${schema.spec.own}'}}"),
        widget(each, "${x}", "{deep: '${schema.spec.own}'}"),
        widget(each, "${x}", "{}") + &widget("", "v", "{labels: '${w[0].spec}'}").replace("id: w", "id: v"),
    ] {
        let warnings = accepted("", &resources);
        assert!(warnings.len() == 1 && warnings[0].contains("type mismatch"), "{resources}{warnings:?}");
    }
    refused(
        "",
        &widget("", "w", "{nested: {key: '${schema.spec.name}', other: {b: '${schema.spec.name}'}}}"),
        "returns type \"string\" but expected \"int\"",
    );
}

#[test]
fn a_named_field_of_an_open_object_has_its_type() {
    refused("", &widget("", "w", "{half: {known: '${schema.spec.count}'}}"), "returns type \"int\" but expected \"string\"");
    accepted("", &widget("", "w", "{half: {known: 5, other: '${schema.spec.count}'}}"));
    refused("", &widget("", "w", "{whole: {kind: '${schema.spec.count}'}}"), "returns type \"int\" but expected \"string\"");
    refused("", &widget("", "w", "{whole: {metadata: '${schema.spec.map}'}}"), "map value incompatible with struct field");
    accepted("", &widget("", "w", "{whole: {metadata: {name: '${schema.spec.name}'}, spec: {a: '${schema.spec.count}'}}}"));
}

#[test]
fn values_that_only_functions_know_are_objects_or_none() {
    refused("", &widget("", "w", "{labels: '${ip(schema.spec.name)}'}"), "map parameter count mismatch: got 0, expected 2");
    accepted("", &widget("", "w", "{labels: '${quantity(schema.spec.name)}'}"));
    let status = rgd(SPEC, "q: ${quantity(schema.spec.name)}\ni: ${ip(schema.spec.name)}", "");
    let Compiled::Active(graph) = compiled(&status, &kinds()) else { panic!() };
    let written = graph.crd.0["spec"]["versions"][0]["schema"]["openAPIV3Schema"]["properties"]["status"]["properties"].clone();
    assert_eq!(written["q"], serde_json::json!({"type": "object", "additionalProperties": true}));
    assert_eq!(written["i"]["x-kubernetes-preserve-unknown-fields"], true);
}

#[test]
fn a_reserved_word_is_a_field_by_both_names() {
    accepted("a: ${w.spec.for}\nb: ${w.spec.__for__}\nc: ${schema.metadata.__namespace__}", &widget("", "w", "{}"));
}

#[test]
fn objects_cannot_be_formatted_as_text() {
    let given = "was given __type_schema.spec.open";
    refused("a: '${\"%s\".format([schema.spec.open])}'", "", given);
    refused(
        "a: '${\"%d\".format([schema.spec.all])}'",
        "",
        "decimal clause can only be used on ints, uints, and doubles, was given list",
    );
    accepted("a: '${\"%s %s\".format([schema.spec.all, schema.spec.open.x])}'", "");
}

/// What is given to a condition is compared as a map of text: values of several types are seen when it is made.
#[test]
fn values_of_conditions_are_judged_together() {
    let condition = |text: &str| format!("conditions:\n- '${{runtime.newCondition({text})}}'");
    accepted(&condition("{type: \"A\", status: schema.spec.count}"), "");
    accepted(&condition("{type: \"A\", status: schema.spec.name, reason: schema.spec.map}"), "");
    refused(
        &condition("{type: schema.spec.count, status: schema.spec.count}"),
        "",
        "found no matching overload for 'newCondition'",
    );
}

/// kro checks `readyWhen` of such a list by the list, and asks each object with `each` when it runs.
#[test]
fn a_condition_on_what_a_selector_finds_reads_the_list_or_each() {
    let selecting = |condition: &str| {
        format!(
            "- id: e\n  readyWhen: ['${{{condition}}}']\n  externalRef:\n    apiVersion: v1\n    kind: ConfigMap\n    metadata: {{selector: {{matchLabels: {{a: b}}}}}}\n"
        )
    };
    accepted("", &selecting("e.size() > 0 && e.all(one, one.data.k == \"v\")"));
    accepted("", &selecting("each.data.k == \"v\""));
    refused("", &selecting("e.data.k == \"v\""), "type 'list(__type_e.@idx)' does not support field selection");
    refused(
        "",
        &selecting("other.data.k == \"v\""),
        "references unknown identifiers: [other] (readyWhen can only read each and e)",
    );
}

#[test]
fn a_cluster_has_no_namespace_even_of_an_empty_name() {
    let namespace = |metadata: &str| format!("- id: a\n  template: {{apiVersion: v1, kind: Namespace, metadata: {metadata}}}\n");
    let why = "is cluster-scoped and must not set metadata.namespace";
    refused("", &namespace("{name: a, namespace: ''}"), why);
    refused("", &namespace("{name: a, namespace: null}"), why);
    let found =
        "- id: a\n  externalRef: {apiVersion: v1, kind: Namespace, metadata: {namespace: x, selector: {matchLabels: {a: b}}}}\n";
    refused("", found, why);
}

#[test]
fn what_says_nothing_is_no_status() {
    let status = rgd(SPEC, "a: {}\nb: {c: {}}\nd: {e: '${schema.spec.name}'}", "");
    let Compiled::Active(graph) = compiled(&status, &kinds()) else { panic!() };
    let written = &graph.crd.0["spec"]["versions"][0]["schema"]["openAPIV3Schema"]["properties"]["status"]["properties"];
    let names: Vec<&String> = written.as_object().unwrap().keys().collect();
    assert_eq!(names, ["conditions", "d", "state"]);
    refused("conditions: null", "", "status.conditions must be a list, got <nil>");
    refused("conditions: [1]", "", "must be a CEL expression string, got int64");
}

#[test]
fn operands_are_worded_as_cel_does() {
    refused("a: ${schema.spec.name && true}", "", "expected type 'bool' but found 'string'");
    refused("a: ${schema.spec.all.all(x, x)}", "", "expected type 'bool' but found 'string'");
    refused(
        "a: x-${schema.metadata.creationTimestamp}",
        "",
        "found no matching overload for '_+_' applied to '(string, timestamp)'",
    );
}

/// Literals are those of the language, however they are written, and texts that look like them are none.
#[test]
fn literals_of_conditions_are_judged_however_they_are_written() {
    let condition = |text: &str| format!("conditions:\n- |-\n  ${{runtime.newCondition({text})}}");
    refused(
        &condition("{type: \"\"\"A\"\"\", status: r\"Maybe\"}"),
        "",
        "status must be one of True, False, Unknown (got \"Maybe\")",
    );
    refused(&condition("{type: '', status: 'True'}"), "", "runtime.newCondition: type must not be empty");
    accepted(&condition("{type: 'A', status: 'True', message: \"{status: 'x'}\"}"), "");
    refused(&condition("{type: 'A', status: runtime.condition(schema, r'Nope').status}"), "", "unknown condition type");
}

#[test]
fn requirements_of_selectors_may_be_computed() {
    let selecting = |selector: &str| {
        format!("- id: e\n  externalRef:\n    apiVersion: v1\n    kind: ConfigMap\n    metadata:\n      selector: {selector}\n")
    };
    accepted("", &selecting("{matchExpressions: ['${schema.spec.open}']}"));
    refused("", &selecting("{matchLabels: {a: '${unfinished'}}"), "Invalid value: \"${unfinished\"");
    refused(
        "",
        &selecting("{matchExpressions: [{key: a, operator: '${unfinished', values: [x]}]}"),
        "not a valid selector operator",
    );
}

#[test]
fn what_a_schema_leaves_open_is_dynamic() {
    accepted("a: ${w.spec.any.x}", &widget("", "w", "{any: {x: 1}}"));
    accepted("", &map("a", "'${type(schema.spec.open.x) == string ? \"text\" : \"none\"}'"));
}

#[test]
fn open_objects_and_reserved_words_stay_in_the_status() {
    let status = rgd(SPEC, "o: ${schema.spec.open}\nm: ${schema.metadata}", "");
    let Compiled::Active(graph) = compiled(&status, &kinds()) else { panic!() };
    let written = &graph.crd.0["spec"]["versions"][0]["schema"]["openAPIV3Schema"]["properties"]["status"]["properties"];
    assert_eq!(written["o"], serde_json::json!({"type": "object", "x-kubernetes-preserve-unknown-fields": true}));
    assert_eq!(written["m"]["properties"]["namespace"]["type"], "string");
}
