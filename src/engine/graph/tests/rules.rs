//! Mistakes: each is found, with its place and the next step, and all of them at once.

use crate::{
    graph::Compiled,
    testing::{compiled, core, rgd},
};

/// The findings of a text, one line each.
fn findings(text: &str) -> Vec<String> {
    match compiled(text, &core()) {
        Compiled::Invalid(findings) => findings.iter().map(ToString::to_string).collect(),
        other => panic!("accepted: {:?}", other.graph().unwrap().order()),
    }
}

pub(super) fn check(text: &str, expected: &[&str]) {
    let found = findings(text);
    assert_eq!(found.len(), expected.len(), "{found:#?}");
    for (found, expected) in found.iter().zip(expected) {
        assert!(found.contains(expected), "{found}\ndoes not contain\n{expected}");
    }
}

/// Whether the mark under the expression of the first finding stands under `word`. Wide characters take two columns.
fn is_marked(text: &str, word: &str) -> bool {
    let Compiled::Invalid(findings) = compiled(text, &core()) else { panic!("accepted") };
    let marked = findings[0].marked();
    let [_, line, mark] = marked.as_slice() else { panic!("{marked:?}") };
    let wide = |text: &str| text.chars().filter(|letter| "東京🎉".contains(*letter)).count();
    let at = line.find(word).unwrap_or_else(|| panic!("{line} has no {word}"));
    mark.chars().count() == line[..at].chars().count() + wide(&line[..at]) + 1 && mark.ends_with('^')
}

const MAP: &str =
    "- id: a\n  template:\n    apiVersion: v1\n    kind: ConfigMap\n    metadata:\n      name: ${schema.spec.name}\n";

pub(super) fn map(id: &str, data: &str) -> String {
    format!(
        "- id: {id}\n  template:\n    apiVersion: v1\n    kind: ConfigMap\n    metadata:\n      name: {id}\n    data:\n      x: {data}\n"
    )
}

#[test]
fn a_definition_without_spec_is_refused_not_fatal() {
    for spec in ["", "spec: null\n", "spec: {}\n", "spec: 5\n", "spec:\n  schema: []\n"] {
        let text = format!("apiVersion: kro.run/v1alpha1\nkind: ResourceGraphDefinition\nmetadata:\n  name: x\n{spec}");
        assert!(!findings(&text).is_empty(), "{spec}");
    }
}

#[test]
fn an_unknown_field_is_named_with_its_place() {
    let text = rgd("", "", MAP).replace("template:", "tempalte:");
    check(&text, &["14:7 spec.resources[0].tempalte: unknown field \"spec.resources[0].tempalte\" (did you mean template?)"]);
}

#[test]
fn an_unknown_id_is_named_with_a_suggestion() {
    let resources = MAP.to_owned() + &map("b", "${aa.metadata.name}") + &map("component", "${compoment.metadata.name}");
    check(
        &rgd("", "", &resources),
        &[
            "references unknown identifiers: [aa] (did you mean a?)",
            "references unknown identifiers: [compoment] (did you mean component?)",
        ],
    );
}

#[test]
fn a_syntax_error_has_the_line_and_column_of_the_character() {
    let text = rgd("", "", &map("a", "x-${schema.spec.name +}"));
    let found = findings(&text);
    assert_eq!(found.len(), 1, "{found:#?}");
    let line = text.lines().position(|line| line.contains("x-${")).unwrap() + 1;
    let start = text.lines().nth(line - 1).unwrap().find("${").unwrap() + 3;
    let column: usize = found[0].strip_prefix(&format!("{line}:")).unwrap().split(' ').next().unwrap().parse().unwrap();
    assert!((start..=start + 18).contains(&column), "{} is not inside the expression at {start}", found[0]);
    assert!(found[0].contains("Syntax error"), "{}", found[0]);
}

#[test]
fn a_syntax_error_in_a_block_is_placed_in_its_line() {
    let text = rgd("", "", &map("a", "|\n        first ${schema.spec.name}\n        second ${1 +}"));
    let line = text.lines().position(|line| line.contains("second")).unwrap() + 1;
    let found = findings(&text);
    assert!(found[0].starts_with(&format!("{line}:")), "{found:?} is not in line {line}");
}

#[test]
fn a_cycle_is_printed_whole() {
    let resources = map("a", "${b.data.x}") + &map("b", "${c.data.x}") + &map("c", "${a.data.x}") + &map("d", "${a.data.x}");
    check(&rgd("", "", &resources), &["graph contains a cycle: a -> b -> c -> a"]);
    check(&rgd("", "", &map("a", "${a.metadata.name}")), &["self references are not allowed"]);
}

#[test]
fn all_mistakes_are_found_at_once_in_the_order_of_the_document() {
    let resources = map("not-ok", "fine") + &map("b", "${nobody.x}") + &map("c", "[1]") + &map("d", "${nope(1)}");
    check(
        &rgd("name: strin", "", &resources),
        &[
            "unknown type: strin",
            "id not-ok is not a valid KRO resource id: must be lower camelCase",
            "references unknown identifiers: [nobody]",
            "expected string type for path data.x, got array",
            "uses unknown functions: [nope]",
        ],
    );
}

#[test]
fn one_mistake_hides_no_other() {
    let typed = map("a", "${1 + 1}");
    let misspelt = map("b", "${schema.spec.nam}") + "  readyWen: ['${b.data.x}']\n";
    let circle = map("c", "${d.data.x}") + &map("d", "${c.data.x}");
    check(
        &rgd("", "z: ${nobody.x}", &(typed + &misspelt + &circle)).replace("  resources:", "  resourcs: []\n  resources:"),
        &[
            "status field \"z\" expression \"nobody.x\": references unknown identifiers: [nobody]",
            "unknown field \"spec.resourcs\" (did you mean resources?)",
            "returns type \"int\" but expected \"string\"",
            "undefined field 'nam'",
            "unknown field \"spec.resources[1].readyWen\" (did you mean readyWhen?)",
            "graph contains a cycle: c -> d -> c",
        ],
    );
}

/// In one string, and in one expression, no mistake hides another one.
#[test]
fn one_mistake_in_a_string_hides_no_other() {
    let text = |data: &str, status: &str| rgd("name: string\nlist: '[]string'", status, &map("a", data));
    check(
        &text("'${nobody.x}-${schema.spec.nam}-${1 +}-${nope(schema.spec.nme)}-${1}-${2 +}-${alsoNobody}'", ""),
        &[
            "[nobody]",
            "undefined field 'nam'",
            "Syntax error",
            "uses unknown functions: [nope]",
            "undefined field 'nme'",
            "found no matching overload for '_+_'",
            "Syntax error",
            "[alsoNobody]",
        ],
    );
    check(&text("${nobody.x + schema.spec.nam}", "s: x${nobody}${schema.spec.nam}"), &["[nobody]", "'nam'", "[nobody]", "'nam'"]);
    let listed = |entries: &str| rgd("name: string", "", &map("a", "x").replace("- id: a", &format!("- id: a\n  {entries}")));
    for list in ["includeWhen", "readyWhen"] {
        check(&listed(&format!("{list}: ['${{nobody || 1 + true}}']")), &["[nobody]", "found no matching overload for '_+_'"]);
        check(&listed(&format!("{list}: ['${{nope(1)}}']")), &["[nope]"]);
    }
    check(&listed("includeWhen: ['${nope(schema.spec.name)}']"), &["[nope]"]);
    let each =
        MAP.replace("- id: a", "- id: a\n  forEach: [{x: '${[nobody] + schema.spec.nam}'}]").replace("schema.spec.name", "x +");
    check(&rgd("name: string", "", &each), &["[nobody]", "'nam'", "Syntax error"]);
}

#[test]
fn what_follows_from_a_misspelt_field_is_not_said() {
    let text = rgd("name: string", "", &(map("a", "x") + &map("b", "${a.data.x}")));
    check(&text.replacen("template:", "tempalte:", 1), &["unknown field \"spec.resources[0].tempalte\""]);
    check(
        &text.replacen("    spec:", "    spce:", 1).replace("data:\n          x: x", "data:\n          x: ${schema.spec.name}"),
        &["unknown field \"spec.schema.spce\""],
    );
    let each =
        "- id: all\n  forEech: [{one: '${schema.spec.names}'}]\n".to_owned() + &map("x", "${one}").replace("- id: x\n", "");
    check(&rgd("names: '[]string'", "", &each), &["unknown field \"spec.resources[0].forEech\" (did you mean forEach?)"]);
}

#[test]
fn a_refused_definition_says_what_it_would_wait_for() {
    let late = map("late", "${nobody.x}").replace("v1\n", "example.org/v1\n").replace("ConfigMap", "Late");
    let found = findings(&rgd("", "", &late));
    assert_eq!(found.len(), 2, "{found:#?}");
    assert!(found[0].contains("cannot resolve group version kind \"example.org/v1, Kind=Late\": not served yet"), "{found:#?}");
    assert!(found[1].contains("references unknown identifiers: [nobody]"), "{found:#?}");
}

/// However a string is written, a mistake in it is placed at its own character.
#[test]
fn mistakes_in_any_scalar_have_their_line_and_column() {
    for scalar in [
        "x-${dyn(1) + nobody}",
        "\"x \\\"q\\\" \\t ${dyn(1) + nobody}\"",
        "\"a long \\\n          line ${dyn(1) + nobody}\"",
        "'it''s ${dyn(1) + nobody}'",
        "'one\n          two ${dyn(1) + nobody}'",
        ">-\n        first\n        second ${dyn(1) + nobody}\n        third",
        ">\n        first\n\n          more\n        second ${dyn(1) +\n        nobody}",
        "'é 東京 ${dyn(1) + nobody}'",
        "\"\\u00e9 \\x41 \\U0001F389 \\\\ ${dyn(1) + nobody}\"",
        "\"\\t\\e[31m ${dyn(1) + nobody}\"",
        "|\n        \tfirst é\n        \té ${dyn(1) +\tnobody}\n",
        ">\n        é\n        東京 ${dyn(1) + nobody}\n",
        "|2-\n          first\n        second ${dyn(1) + nobody}",
        "|+\n        first\n        ${dyn(1) +\n          nobody}\n\n",
    ] {
        let text = rgd("", "", &(map("z", "${schema.spec.name} nobody") + &map("a", scalar) + &map("b", "nobody")));
        let wanted = text.match_indices("nobody").map(|(at, _)| at).find(|at| text[*at..].starts_with("nobody}")).unwrap();
        let line = text[..wanted].matches('\n').count() + 1;
        let column = text[..wanted].rsplit('\n').next().unwrap().chars().count() + 1;
        let found = findings(&text);
        assert_eq!(found.len(), 1, "{found:#?}");
        assert!(is_marked(&text, "nobody"), "{scalar:?}");
        assert!(found[0].starts_with(&format!("{line}:{column} ")), "{scalar:?}: {} is not at {line}:{column}\n{text}", found[0]);
    }
}

#[test]
fn places_are_those_of_the_whole_text() {
    let first = rgd("", "", MAP);
    let text = format!("# two\n---\n{first}---\n\n{}", rgd("", "", &map("a", "x-${nobody}")));
    let documents = crate::yaml::documents_with_duplicates(&text).unwrap();
    let second = crate::graph::Definition::from_document(&documents[1], &text).unwrap();
    let Compiled::Invalid(found) = crate::graph::compile(&second, &core(), &crate::graph::Options::default()) else { panic!() };
    let line = text.lines().position(|line| line.contains("nobody")).unwrap() + 1;
    let column = text.lines().nth(line - 1).unwrap().find("nobody").unwrap() + 1;
    assert_eq!(found[0].location, Some(crate::Location { line, column }));
}

#[test]
fn shapes_of_resources() {
    check(&rgd("", "", "- id: a\n"), &["exactly one of template or externalRef must be provided"]);
    check(
        &rgd("", "", "- id: a\n  template:\n    kind: ConfigMap\n"),
        &["apiVersion field not found", "metadata field not found"],
    );
    check(&rgd("", "", &map("a", "x").replace("v1", "a/b/c")), &["unexpected GroupVersion string: a/b/c"]);
    let labelled = map("a", "x").replace("name: a", "name: a\n      labels: {kro.run/owned: 'false'}");
    check(&rgd("", "", &labelled), &["labels with prefix \"kro.run/\" are reserved for internal use"]);
    let scoped = map("a", "x")
        .replace("kind: ConfigMap", "kind: Namespace")
        .replace("name: a", "name: a\n      namespace: x")
        .replace("    data:\n      x: x\n", "");
    check(&rgd("", "", &scoped), &["is cluster-scoped and must not set metadata.namespace"]);
}

#[test]
fn conditions_are_expressions_and_nothing_else() {
    let when =
        |list: &str, text: &str| rgd("", "", &map("a", "x").replace("- id: a", &format!("- id: a\n  {list}: [\"{text}\"]")));
    check(&when("readyWhen", "x ${a.data}"), &["only standalone expressions are allowed"]);
    check(&when("readyWhen", "a.data.x == 'x'"), &["only standalone expressions are allowed (write ${a.data.x == 'x'})"]);
    check(&when("includeWhen", "${runtime.x}"), &["runtime is only available in status.conditions expressions"]);
}

#[test]
fn an_entry_keeps_its_place_behind_a_wrong_one() {
    let entries = "- id: a\n  readyWhen: [alone, \"${zzz}\", alone too, \"${a.data.x == 1}\"]";
    let found = findings(&rgd("", "", &map("a", "x").replace("- id: a", entries)));
    for (line, expected) in found.iter().zip([
        "readyWhen[0]: only standalone expressions are allowed (each entry is one CEL expression between ${ and })",
        "readyWhen[1]: resource \"a\" readyWhen: references unknown identifiers: [zzz]",
        "readyWhen[2]: only standalone",
        "readyWhen[3]: found no matching overload",
    ]) {
        assert!(line.contains(expected), "{line}\ndoes not contain\n{expected}");
    }
    assert_eq!(found.len(), 4, "{found:#?}");
}

#[test]
fn what_no_crd_can_bring_is_a_mistake_and_not_waited_for() {
    let kind = |api: &str, kind: &str| {
        rgd("", "", &map("a", "x").replace("apiVersion: v1", &format!("apiVersion: {api}")).replace("ConfigMap", kind))
    };
    check(&kind("v1", "Configmap"), &["no CRD can bring it (did you mean ConfigMap?)"]);
    check(&kind("apps/v1", "Deploymnt"), &["no CRD can bring it (did you mean Deployment?)"]);
    check(&kind("${schema.spec.name}", "ConfigMap"), &["apiVersion cannot be an expression"]);
    assert!(matches!(compiled(&kind("x.test/v1", "Configmap"), &core()), Compiled::Deferred { .. }));
}

#[test]
fn groups_and_versions_that_only_kubernetes_can_bring_are_not_waited_for() {
    let kind = |api: &str, kind: &str| {
        let text = map("a", "x").replace("apiVersion: v1", &format!("apiVersion: {api}")).replace("ConfigMap", kind);
        rgd("", "", &text)
    };
    for (api, name, meant) in [
        ("app/v1", "Deployment", "apps/v1 Deployment"),
        ("app/v1", "Deploymnt", ""),
        ("v2", "ConfigMap", "v1 ConfigMap"),
        ("apps/v2", "Deployment", "apps/v1 Deployment"),
        ("batch/v1beta1", "CronJob", "batch/v1 CronJob"),
        ("extensions/v1beta1", "Ingress", "networking.k8s.io/v1 Ingress"),
        ("networking.k8s.io/v1", "Ingres", "Ingress"),
    ] {
        let hint = if meant.is_empty() { String::new() } else { format!(" (did you mean {meant}?)") };
        check(&kind(api, name), &[&format!("no CRD can bring it{hint}")]);
    }
    let other = compiled(&kind("networking.k8s.io/v1beta1", "Ingress"), &core());
    assert!(matches!(other, Compiled::Deferred { .. }), "a version that a server may have besides");
    let warnings: Vec<_> = other.graph().unwrap().warnings.iter().map(ToString::to_string).collect();
    assert!(warnings.len() == 1 && warnings[0].contains("(did you mean networking.k8s.io/v1 Ingress?)"), "{warnings:?}");
    assert!(matches!(compiled(&kind("gateway.networking.k8s.io/v1", "HTTPRoute"), &core()), Compiled::Deferred { .. }));
}

#[test]
fn only_definitions_of_krop_have_a_target() {
    let text = rgd("", "", &map("a", "x").replace("- id: a", "- id: a\n  target: provider"));
    check(&text, &["unknown field \"spec.resources[0].target\" (only definitions of krop.opendefense.cloud have a target)"]);
    let krop = text.replacen("apiVersion: kro.run/", "apiVersion: krop.opendefense.cloud/", 1);
    assert!(compiled(&krop, &core()).graph().is_some());
}

#[test]
fn an_instance_that_makes_its_own_kind_has_no_end() {
    let own = map("a", "x").replace("apiVersion: v1", "apiVersion: kro.run/v1alpha1").replace("ConfigMap", "Thing");
    let own = rgd("name: string", "", &own);
    let kind = own
        .lines()
        .find_map(|line| line.trim().strip_prefix("kind: ").filter(|kind| *kind != "ResourceGraphDefinition"))
        .unwrap();
    check(&own.replace("kind: Thing", &format!("kind: {kind}")), &["makes an instance of the definition's own kind"]);
}

#[test]
fn what_the_api_server_would_refuse_of_the_crd_is_said_before() {
    let with = |line: &str| rgd("", "", MAP).replacen("  schema:\n", &format!("  schema:\n    {line}\n"), 1);
    check(&with("group: Bad Group"), &["spec.schema.group: group \"Bad Group\" is not valid"]);
    check(
        &with("additionalPrinterColumns: [{name: A, type: strin, jsonPath: .spec.name}]"),
        &[
            "unsupported type \"strin\" of a printer column: supported are boolean, date, integer, number, string (did you mean string?)",
        ],
    );
    check(
        &with("additionalPrinterColumns: [{name: A, type: string, format: foo, jsonPath: 'spec['}]"),
        &[
            "unsupported format \"foo\" of a printer column: supported are byte, date, date-time, double, float, int32, int64, password",
            "jsonPath \"spec[\" of a printer column must begin with a dot",
        ],
    );
}

#[test]
fn an_iterator_that_reads_another_is_told_of_once() {
    let items = "- id: a\n  forEach:\n  - i: ${[schema.spec.name]}\n  - j: ${[i]}\n  template:\n    apiVersion: v1\n    kind: ConfigMap\n    metadata:\n      name: ${i}-${j}\n";
    check(&rgd("", "", items), &["forEach[1]: node \"a\": forEach iterator cannot reference other iterators [i]"]);
}

#[test]
fn omit_stands_in_templates_alone() {
    let resources = map("a", "${omit()}")
        + &MAP.replace("- id: a", "- id: b\n  readyWhen: ['${omit() == 1}']\n  includeWhen: ['${omit() == 1}']")
        + &MAP.replace("- id: a", "- id: c\n  forEach: [{i: '${[omit()]}'}]").replace("${schema.spec.name}", "${i}");
    let elsewhere = "omit() can only be used in resource template expressions";
    check(
        &rgd("", "x: ${omit()}\nconditions: ['${omit()}']", &resources),
        &[
            "must refer to a resource or schema",
            &format!("status.x: {elsewhere}"),
            &format!("conditions[0]: {elsewhere}"),
            "data.x: omit() requires the CELOmitFunction feature gate to be enabled",
            &format!("readyWhen[0]: {elsewhere}"),
            &format!("includeWhen[0]: {elsewhere}"),
            &format!("forEach[0]: {elsewhere}"),
        ],
    );
}

/// A CRD is walked without a schema; kro checks the types in its metadata all the same.
#[test]
fn expressions_in_the_metadata_of_a_crd_have_types() {
    let crd = |name: &str, labels: &str| {
        format!(
            "- id: a\n  template:\n    apiVersion: apiextensions.k8s.io/v1\n    kind: CustomResourceDefinition\n    metadata: {{name: '{name}', labels: {labels}}}\n    \
             spec: {{group: x.io, scope: Namespaced, names: {{kind: X, plural: xs}}, versions: []}}\n"
        )
    };
    check(
        &rgd("", "", &crd("${size(schema.spec.name)}", "'${[schema.spec.name]}'")),
        &[
            "at path \"metadata.name\": expression \"size(schema.spec.name)\" returns type \"int\" but expected \"string\"",
            "at path \"metadata.labels\": expression \"[schema.spec.name]\" returns type \"list(string)\" but expected \"map(string, string)\"",
        ],
    );
    let fine = rgd("", "", &crd("xs.${schema.spec.name}", "{a: '${schema.spec.name}'}"));
    assert!(!matches!(compiled(&fine, &core()), Compiled::Invalid(_)));
}

#[test]
fn names_that_a_server_refuses_are_found_before() {
    let text = rgd("", "", MAP);
    check(
        &text.replacen("name: test", "name: My_Test", 1),
        &["4:9 metadata.name: Invalid value: \"My_Test\": a lowercase RFC 1123 subdomain must consist of"],
    );
    let with = |line: &str| text.replacen("  schema:\n", &format!("  schema:\n    {line}\n"), 1);
    for list in ["shortNames", "categories"] {
        check(&with(&format!("{list}: [ok, Not]")), &["[1] in body should match '^[a-z]([-a-z0-9]*[a-z0-9])?$'"]);
        check(&with(&format!("{list}: [a, b, a]")), &[&format!("spec.schema.{list}[2]: Duplicate value: \"a\"")]);
        let many = (0..33).map(|n| format!("n{n}")).collect::<Vec<_>>().join(", ");
        check(&with(&format!("{list}: [{many}]")), &[&format!("spec.schema.{list}: Too many: 33: must have at most 32 items")]);
    }
}

/// What kro and the API server refuse of a selector, beside what it is asked for in `probes`.
#[test]
fn literal_selectors_are_checked_as_a_server_does() {
    let text = |selector: &str| {
        let external = "- id: e\n  externalRef: {apiVersion: v1, kind: ConfigMap, metadata: {selector: SELECTOR}}\n";
        rgd("name: string", "", &external.replace("SELECTOR", selector))
    };
    let (value, key) = ("a valid label must be an empty string or consist of", "name part must consist of");
    check(
        &text("{matchLabels: {'a b': x, c: 'd e', f: '${schema.spec.name}'}}"),
        &[
            &format!("[metadata.selector.matchLabels: Invalid value: \"a b\": {key}"),
            &format!("[metadata.selector.matchLabels: Invalid value: \"d e\": {value}"),
        ],
    );
    let requirement = "{matchExpressions: [{key: ok, operator: In, values: [x, '-', '${schema.spec.name}']}, {key: -k, operator: Exists}, {key: '', operator: Exists}, {operator: Exists}]}";
    check(
        &text(requirement),
        &[
            &format!("[metadata.selector.matchExpressions[0].values[1]: Invalid value: \"-\": {value}"),
            &format!("[metadata.selector.matchExpressions[1].key: Invalid value: \"-k\": {key}"),
            "[metadata.selector.matchExpressions[2].key: Invalid value: \"\": name part must be non-empty",
            "[metadata.selector.matchExpressions[3].key: Invalid value: \"\": name part must be non-empty",
        ],
    );
    let fine = "{matchLabels: {example.org/a: ''}, matchExpressions: [{key: a, operator: NotIn, values: [x_1]}]}";
    assert!(compiled(&text(fine), &core()).graph().is_some());
}

#[test]
fn variables_of_shells_have_a_hint() {
    let text = |data: &str| rgd("", "", &map("a", data));
    check(&text("'${HOME}'"), &["[HOME] (a variable of a shell is written ${\"${HOME}\"})"]);
    check(&text("'${VAR:-x}'"), &["(a variable of a shell is written ${\"${VAR:-x}\"})"]);
}

#[test]
fn misspelt_functions_have_a_hint() {
    for (expression, message) in [
        ("sizee(schema.spec.name)", "[sizee] (did you mean size?)"),
        ("len(schema.spec.name)", "[len] (did you mean size?)"),
        ("schema.spec.name.startWith('a')", "[startWith] (did you mean startsWith?)"),
        ("schema.spec.name.toLowerCase()", "[toLowerCase] (did you mean lowerAscii?)"),
        ("json.marshall(schema.spec)", "uses unknown functions: [json.marshall] (did you mean json.marshal?)"),
        ("json.nothing(schema.spec)", "uses unknown functions: [json.nothing]"),
        ("marshal(schema.spec)", "[marshal] (did you mean json.marshal?)"),
        ("toJson(schema.spec)", "[toJson] (did you mean json.marshal?)"),
        ("base64.encod(b'a')", "[base64.encod] (did you mean base64.encode?)"),
        ("[1].exits(x, x == 1)", "[exits] (did you mean exists?)"),
        ("optional.off(1)", "[optional.off] (did you mean optional.of?)"),
        ("contains(schema.spec.name, 'a')", "(it is written value.contains(…))"),
        ("schema.spec.name.quantity()", "(it is written quantity(…))"),
    ] {
        let found = findings(&rgd("name: string", "", &map("a", &format!("\"x${{{expression}}}\""))));
        assert!(found.iter().any(|found| found.contains(message)), "{expression}: {found:#?}");
        assert!(found.iter().all(|found| !found.contains("unknown identifiers")), "{expression}: {found:#?}");
    }
    // What is called like a library is a resource, and its functions are those of its value.
    check(&rgd("", "", &(map("json", "x") + &map("a", "${json.marshall()}"))), &["[json.marshall] (did you mean json.marshal?)"]);
    let ready = map("a", "x").replace("- id: a", "- id: a\n  readyWhen: ['${a.data.x.startWith(\"a\")}']");
    check(&rgd("", "", &ready), &["[startWith] (did you mean startsWith?)"]);
}

#[test]
fn status_fields_are_expressions_over_something() {
    check(
        &rgd("", "a: plain\nb: ${1 + 1}\nc: ${nobody.x}", MAP),
        &[
            "status fields without expressions are not supported: [a]",
            "instance status field must refer to a resource or schema: status.b",
            "status field \"c\" expression \"nobody.x\": references unknown identifiers: [nobody]",
        ],
    );
}

#[test]
fn conditions_of_authors() {
    let block = |lines: &str| rgd("", &format!("conditions:\n{lines}"), &map("a", "x"));
    check(&rgd("", "conditions: {a: b}", MAP), &["status.conditions must be a list, got map[string]interface {}"]);
    check(
        &block("- 5\n- plain"),
        &["status.conditions[0] must be a CEL expression string", "only standalone expressions are allowed"],
    );
    let new = |kind: &str, status: &str| format!("- \"${{runtime.newCondition({{type: '{kind}', status: '{status}'}})}}\"");
    check(
        &block(&format!("{}\n{}", new("A", "True"), new("A", "True"))),
        &["condition type \"A\" is declared by more than one conditions entry"],
    );
    check(&block(&new("A", "Maybe")), &["status must be one of True, False, Unknown (got \"Maybe\")"]);
    let reads = |kind: &str| {
        format!("- \"${{runtime.newCondition({{type: 'A', status: runtime.condition(schema, '{kind}').status}})}}\"")
    };
    check(&block(&reads("A")), &["custom conditions cannot reference each other"]);
    check(&block(&reads("Zzz")), &["unknown condition type; only kro's built-in types"]);
    // The words are keys, and nothing that a value may read.
    check(
        &block("- \"${runtime.newCondition({type: 'A', status: status, reason: reason})}\""),
        &["references unknown identifiers: [status]", "references unknown identifiers: [reason]"],
    );
    check(
        &block("- \"${[[runtime.newCondition({type: 'A', status: 'True'})]]}\""),
        &["condition expressions must return runtime.newCondition(...) or a list of them, got \"list(list("],
    );
}

/// Found by holding 11 000 definitions against kro's own builder.
#[test]
fn a_condition_of_the_instance_is_a_bool_and_no_guess() {
    for (expression, returns) in [
        ("schema.spec.o.x", "dyn"),
        ("dyn(true)", "dyn"),
        ("schema.spec.?o.?x", "optional_type(dyn)"),
        ("schema.spec.o", "__type_schema.spec.o"),
        ("null", "null_type"),
    ] {
        let text =
            rgd("o: object", "", &map("a", "x").replace("- id: a", &format!("- id: a\n  includeWhen: ['${{{expression}}}']")));
        check(&text, &[&format!("must return bool or optional_type(bool), but returns \"{returns}\"")]);
    }
    let text = rgd(
        "o: object",
        "",
        &MAP.replace("- id: a", "- id: a\n  forEach: [{x: '${schema.spec.o.x}'}]").replace("${schema.spec.name}", "${x}"),
    );
    check(&text, &["forEach iterator \"x\" must return a list, got \"dyn\""]);
}

#[test]
fn what_is_dynamic_because_a_kind_is_missing_is_no_mistake() {
    let late = "- id: late\n  template: {apiVersion: late.test/v1, kind: Late, metadata: {name: l}}\n  readyWhen: ['${late.status.ready}']\n";
    let text =
        rgd("", "", &(late.to_owned() + &map("a", "x").replace("- id: a", "- id: a\n  includeWhen: ['${late.status.on}']")));
    assert!(matches!(compiled(&text, &core()), Compiled::Deferred { .. }));
}

#[test]
fn the_name_of_an_external_object_is_text() {
    let external =
        |name: &str| format!("- id: e\n  externalRef: {{apiVersion: v1, kind: ConfigMap, metadata: {{name: '{name}'}}}}\n");
    check(
        &rgd("", "", &external("${1.5}")),
        &["at path \"metadata.name\": expression \"1.5\" returns type \"double\" but expected \"string\""],
    );
}

/// What is warned of where an object of this kind has this condition.
fn warnings(kind: &str, condition: &str) -> Vec<String> {
    let secret = map("a", "eA==").replace("ConfigMap", kind);
    let text = rgd("", "", &secret.replace("- id: a", &format!("- id: a\n  readyWhen: ['${{{condition}}}']")));
    let compiled = compiled(&text, &core());
    compiled.graph().unwrap().warnings.iter().map(ToString::to_string).collect()
}

/// kro#1084: nobody who writes this means what it does.
#[test]
fn a_condition_that_reads_bytes_is_warned_of() {
    for condition in ["size(a.data.x) == 7", "string(a.data[\"x\"]) == \"y\"", "a.data.?x.hasValue()"] {
        let found = warnings("Secret", condition);
        assert!(found.len() == 1 && found[0].contains("a.data.x is base64 text there"), "{condition}: {found:?}");
    }
    assert_eq!(warnings("ConfigMap", "size(a.data.x) == 7"), [] as [&str; 0]);
    assert_eq!(warnings("Secret", "a.metadata.name == \"a\""), [] as [&str; 0]);
}

#[test]
fn a_condition_that_takes_stored_text_for_a_time_is_warned_of() {
    let times = [
        "a.metadata.creationTimestamp.getFullYear() > 2000",
        "a.metadata.creationTimestamp > timestamp(\"2026-01-01T00:00:00Z\")",
    ];
    for condition in times {
        let found = warnings("ConfigMap", condition);
        let says = "a.metadata.creationTimestamp is text there, not a timestamp (write timestamp(a.metadata.creationTimestamp))";
        assert!(found.len() == 1 && found[0].contains(says), "{condition}: {found:?}");
    }
    for condition in [
        "!has(a.metadata.deletionTimestamp)",
        "timestamp(a.metadata.creationTimestamp).getFullYear() > 2000",
        "string(a.metadata.creationTimestamp) != \"\"",
    ] {
        assert_eq!(warnings("ConfigMap", condition), [] as [&str; 0], "{condition}");
    }
}

#[test]
fn a_status_that_its_own_schema_refuses_is_warned_of() {
    let status = "state: ${size(a.data)}\nlist: ['${a.metadata.name}', '${size(a.data)}']\nsame: ['${a.data.x}', '${a.data.y}']";
    let compiled = compiled(&rgd("", status, &map("a", "x")), &core());
    let graph = compiled.graph().unwrap();
    let found: Vec<_> = graph.warnings.iter().map(ToString::to_string).collect();
    let [state, list] = found.as_slice() else { panic!("{found:?}") };
    assert!(state.contains("spec.schema.status.state: state is text that the controller writes, and this is integer"), "{state}");
    assert!(list.contains("spec.schema.status.list[0]: all items have the type of the last one, integer"), "{list}");
    let written = &graph.crd.0["spec"]["versions"][0]["schema"]["openAPIV3Schema"]["properties"]["status"]["properties"];
    assert_eq!(written["state"], serde_json::json!({"type": "string"}));
}

#[test]
fn a_key_that_kubectl_reads_otherwise_is_a_warning() {
    let text = rgd("on: string", "", &map("a", "${schema.spec.on}"));
    let compiled = compiled(&text, &core());
    let warnings: Vec<_> = compiled.graph().unwrap().warnings.iter().map(ToString::to_string).collect();
    assert!(warnings.len() == 1 && warnings[0].contains("spec.schema.spec.on: the key on is text here"), "{warnings:?}");
}

#[test]
fn what_kro_lets_through_is_a_warning() {
    let text = rgd(
        "",
        "",
        "- id: d\n  template: {apiVersion: apps/v1, kind: Deployment, metadata: {name: d}, spec: {strategy: '${1}'}}\n",
    );
    let compiled = compiled(&text, &core());
    let warnings: Vec<_> = compiled.graph().unwrap().warnings.iter().map(ToString::to_string).collect();
    assert!(warnings.iter().any(|warning| warning.contains("an object is expected here, and this is int")), "{warnings:?}");
}
