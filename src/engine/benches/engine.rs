//! What the engine costs: compiling, evaluating, and a pass with nothing to do (`bench/engine` prints the rows).

#![expect(clippy::unwrap_used, reason = "a bench that cannot set up its work ends")]

use std::{fmt::Write, hint::black_box};

use criterion::{BatchSize, BenchmarkId, Criterion, criterion_group, criterion_main};
use plinth_api::Object;
use plinth_engine::{
    cel::{Activation, Expression, Limits, Scope, Type, check, evaluate},
    graph::{Compiled, Definition, Graph, Options, compile},
    instance::{Action, Applied, Observation, decide},
    schema::builtin,
    yaml,
};
use serde_json::{Map, Value, json};

/// A definition of so many ConfigMaps; every tenth reads the one before.
fn text(resources: usize) -> String {
    let mut text = "apiVersion: kro.run/v1alpha1\nkind: ResourceGraphDefinition\nmetadata: {name: bench}\nspec:\n  schema:\n    apiVersion: v1alpha1\n    kind: Bench\n    spec: {value: string | default=a}\n  resources:\n".to_owned();
    for index in 0..resources {
        let before = if index % 10 == 9 { format!("${{map{}.metadata.name}}", index - 1) } else { "none".to_owned() };
        let _ = writeln!(
            text,
            "  - id: map{index}\n    template:\n      apiVersion: v1\n      kind: ConfigMap\n      metadata: {{name: \"${{schema.metadata.name}}-{index}\"}}\n      data: {{value: \"${{schema.spec.value}}\", before: \"{before}\"}}"
        );
    }
    text
}

fn definition(text: &str) -> Definition {
    let documents = yaml::documents_with_duplicates(text).unwrap();
    Definition::from_document(&documents[0], text).unwrap()
}

fn graph(resources: usize) -> std::sync::Arc<Graph> {
    match compile(&definition(&text(resources)), builtin(), &Options::default()) {
        Compiled::Active(graph) => graph,
        other => panic!("{other:?}"),
    }
}

fn compiling(criterion: &mut Criterion) {
    let mut group = criterion.benchmark_group("compile");
    group.sample_size(10);
    for resources in [10, 100, 1000] {
        let definition = definition(&text(resources));
        group.bench_with_input(BenchmarkId::from_parameter(resources), &definition, |bencher, definition| {
            bencher.iter_batched(
                Expression::forget_parsed,
                |()| black_box(compile(definition, builtin(), &Options::default())),
                BatchSize::PerIteration,
            );
        });
    }
    group.finish();
    // What an editor waits for: a file's text to its findings.
    let text = text(100);
    criterion.bench_function("check/100", |bencher| {
        bencher.iter_batched(
            Expression::forget_parsed,
            |()| black_box(compile(&definition(&text), builtin(), &Options::default())),
            BatchSize::PerIteration,
        );
    });
}

const USUAL: [&str; 8] = [
    "schema.spec.name",
    "schema.spec.name + '-' + string(schema.spec.replicas)",
    "schema.spec.replicas > 1 && has(schema.spec.name)",
    "deployment.status.?availableReplicas.orValue(0) == schema.spec.replicas",
    "deployment.status.conditions.exists(c, c.type == 'Available' && c.status == 'True')",
    "schema.spec.ports.map(p, {'name': p.name, 'port': p.port})",
    "has(schema.metadata.labels.app) ? schema.metadata.labels.app : 'none'",
    "schema.metadata.labels.transformList(k, v, k + '=' + v).join(',')",
];

fn expressions(criterion: &mut Criterion) {
    let ports: Vec<_> = (0..10).map(|n| json!({"name": format!("p{n}"), "port": 8000 + n})).collect();
    let schema =
        json!({"metadata": {"labels": {"app": "a", "tier": "b"}}, "spec": {"name": "web", "replicas": 3, "ports": ports}});
    let conditions = json!([{"type": "Progressing", "status": "True"}, {"type": "Available", "status": "True"}]);
    let activation =
        Activation::new().with("schema", schema, None).with("deployment", json!({"status": {"conditions": conditions}}), None);
    // Of other lengths, so that none is remembered.
    let distinct: Vec<String> = (0..1000).map(|n| format!("{}{}", USUAL[n % USUAL.len()], " ".repeat(n / USUAL.len()))).collect();
    let all: Vec<Expression> = (0..1000).map(|n| Expression::parse(USUAL[n % USUAL.len()]).unwrap()).collect();
    let scope = Scope::new().with("schema", Type::Dyn).with("deployment", Type::Dyn);
    let mut group = criterion.benchmark_group("cel");
    group.sample_size(20);
    group.bench_function("parse/1000", |bencher| {
        bencher.iter_batched(
            Expression::forget_parsed,
            |()| distinct.iter().for_each(|text| drop(black_box(Expression::parse(text)))),
            BatchSize::PerIteration,
        );
    });
    group.bench_function("check/1000", |bencher| {
        bencher.iter(|| all.iter().for_each(|expression| drop(black_box(check(expression, &scope)))));
    });
    group.bench_function("evaluate/1000", |bencher| {
        bencher.iter(|| all.iter().for_each(|expression| drop(black_box(evaluate(expression, &activation, &Limits::default())))));
    });
    group.finish();
}

/// An instance whose children are all there, as the last decision wants them.
fn settled(graph: &Graph) -> Observation {
    let metadata = json!({"name": "one", "namespace": "ns", "uid": "u", "generation": 1});
    let gvk = &graph.instance.gvk;
    let instance = json!({"apiVersion": gvk.api_version(), "kind": gvk.kind, "metadata": metadata, "spec": {"value": "a"}});
    let mut seen = Observation { instance: Object::from_value(instance).unwrap(), ..Observation::default() };
    for _ in 0..1000 {
        let decision = decide(graph, &seen);
        if decision.actions.is_empty() {
            return seen;
        }
        decision.actions.iter().for_each(|action| act(graph, action, &mut seen));
    }
    panic!("no end");
}

fn act(graph: &Graph, action: &Action, seen: &mut Observation) {
    match action {
        Action::Read(key) => drop(seen.objects.insert(key.clone(), None)),
        Action::Review(access) => drop(seen.reviews.insert(access.clone(), Ok(true))),
        Action::List(query) => drop(seen.lists.insert(query.clone(), Vec::new())),
        Action::PatchInstance(apply) => {
            let mut whole = seen.instance.clone().into_value();
            merge(&mut whole, &apply.object.clone().into_value());
            seen.instance = Object::from_value(whole).unwrap();
        }
        Action::Apply { apply, .. } => {
            let mut object = apply.object.clone();
            object.metadata_mut().insert("uid".to_owned(), json!(apply.key.name));
            seen.applied.insert(apply.key.clone(), Applied::remember(graph, action, &object).unwrap());
            seen.objects.insert(apply.key.clone(), Some(object));
        }
        Action::WriteStatus(status) => drop(seen.instance.0.insert("status".to_owned(), status.clone())),
        Action::Delete { .. } | Action::RemoveFinalizer(_) => panic!("nothing is to be removed: {action:?}"),
    }
}

fn merge(into: &mut Value, from: &Value) {
    match (into, from) {
        (Value::Object(into), Value::Object(from)) => merge_maps(into, from),
        (into, from) => *into = from.clone(),
    }
}

fn merge_maps(into: &mut Map<String, Value>, from: &Map<String, Value>) {
    for (name, value) in from {
        merge(into.entry(name.clone()).or_insert(Value::Null), value);
    }
}

fn passes(criterion: &mut Criterion) {
    let graph = graph(100);
    let seen = settled(&graph);
    criterion.bench_function("pass/100", |bencher| {
        bencher.iter_batched(
            || seen.clone(),
            |seen| {
                let decision = decide(&graph, &seen);
                assert!(decision.actions.is_empty());
                decision
            },
            BatchSize::SmallInput,
        );
    });
}

criterion_group!(benches, compiling, expressions, passes);
criterion_main!(benches);
