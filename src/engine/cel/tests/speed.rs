//! How long the usual expressions take. The bound is wide: it catches a change of kind, not of degree.

use std::time::{Duration, Instant};

use serde_json::json;

use crate::cel::{Activation, Expression, Limits, Scope, Type, check, evaluate};

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

fn activation() -> Activation {
    let ports: Vec<_> = (0..10).map(|n| json!({"name": format!("p{n}"), "port": 8000 + n})).collect();
    let schema =
        json!({"metadata": {"labels": {"app": "a", "tier": "b"}}, "spec": {"name": "web", "replicas": 3, "ports": ports}});
    let conditions = json!([{"type": "Progressing", "status": "True"}, {"type": "Available", "status": "True"}]);
    Activation::new().with("schema", schema, None).with("deployment", json!({"status": {"conditions": conditions}}), None)
}

#[test]
fn show_03_cel_speed() {
    let scope = Scope::new().with("schema", Type::Dyn).with("deployment", Type::Dyn);
    drop(Expression::parse("1").unwrap());
    let mut start = Instant::now();
    let expressions: Vec<Expression> = (0..1000).map(|n| Expression::parse(USUAL[n % USUAL.len()]).unwrap()).collect();
    let parsed = start.elapsed();
    start = Instant::now();
    for expression in &expressions {
        check(expression, &scope).unwrap();
    }
    let checked = start.elapsed();
    let activation = activation();
    start = Instant::now();
    for expression in &expressions {
        evaluate(expression, &activation, &Limits::default()).unwrap();
    }
    let evaluated = start.elapsed();
    println!("SHOW 03 cel_speed 1000 usual expressions: parse {parsed:?}, check {checked:?}, evaluate {evaluated:?}");
    assert!(parsed + checked + evaluated < Duration::from_secs(20), "unoptimised and on a busy machine it takes about one");
}
