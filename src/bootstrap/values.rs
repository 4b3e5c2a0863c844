//! What the operator wants differently: values over the instance's `spec`, held against the generated schema.

use plinth_api::Object;
use plinth_engine::{
    Diagnostic,
    graph::Graph,
    schema::{self, Schema},
};
use serde_json::{Map, Value};

use crate::{
    error::Error,
    settings::{Settings, ValuesFile},
};

/// Merges `values` over the instance's `spec`: objects field by field, `null` takes a field away, everything else replaces.
pub fn merge(instance: &mut Object, values: &Map<String, Value>) {
    let spec = instance.0.entry("spec").or_insert_with(|| Value::Object(Map::new()));
    over(spec, &Value::Object(values.clone()));
}

fn over(base: &mut Value, values: &Value) {
    let Value::Object(values) = values else {
        *base = values.clone();
        return;
    };
    if !base.is_object() {
        *base = Value::Object(Map::new());
    }
    if let Value::Object(base) = base {
        merge_maps(base, values);
    }
}

/// The same for two sets of values.
pub fn merge_maps(base: &mut Map<String, Value>, values: &Map<String, Value>) {
    for (name, value) in values {
        if value.is_null() {
            base.remove(name);
        } else {
            over(base.entry(name.clone()).or_insert(Value::Null), value);
        }
    }
}

/// Refuses an instance that the API server would refuse, and fields that it would drop in silence. A finding about a field that
/// the values file sets has its place there.
pub fn check(instance: &Object, graph: &Graph, settings: &Settings) -> Result<(), Error> {
    let mut findings = findings(instance, schema_of(graph)?.as_ref());
    if findings.is_empty() {
        return Ok(());
    }
    let mut file = None;
    if let Some(ValuesFile { name, locations }) = &settings.values_file {
        for finding in &mut findings {
            let path = finding.path.strip_prefix("spec").map(|path| path.trim_start_matches('.'));
            finding.location = path.filter(|path| !path.is_empty()).and_then(|path| locations.get(path));
            if finding.location.is_some() {
                file = Some(name.clone());
            }
        }
    }
    Err(Error::Values { kind: graph.instance.gvk.to_string(), file, findings })
}

fn findings(instance: &Object, schema: &Schema) -> Vec<Diagnostic> {
    let mut value = Value::Object(instance.0.clone());
    let unknown = schema::prune(&mut value, schema);
    let mut findings: Vec<Diagnostic> =
        unknown.into_iter().map(|path| Diagnostic::error(path, "the distribution has no such field")).collect();
    schema::apply_defaults(&mut value, schema);
    findings.extend(schema::validate(&value, schema, ""));
    findings
}

fn schema_of(graph: &Graph) -> Result<std::sync::Arc<Schema>, Error> {
    let kinds = schema::crd::kinds(&graph.crd).map_err(|error| Error::Failed(error.to_string()))?;
    let own = kinds.into_iter().find(|kind| kind.gvk == graph.instance.gvk);
    own.map(|kind| kind.schema).ok_or_else(|| Error::Failed(format!("the CRD of {} does not serve it", graph.instance.gvk)))
}

#[cfg(test)]
mod tests {
    use serde_json::json;

    use super::*;

    fn check(instance: Value, values: &Value, expect: &Value) {
        let mut instance = Object::from_value(instance).unwrap();
        merge(&mut instance, values.as_object().unwrap());
        assert_eq!(instance.spec(), expect);
    }

    #[test]
    fn values_go_over_the_spec() {
        check(json!({}), &json!({"a": 1}), &json!({"a": 1}));
        check(json!({"spec": null}), &json!({"a": 1}), &json!({"a": 1}));
        check(json!({"spec": {"a": {"b": 1, "c": 2}}}), &json!({"a": {"b": 3}}), &json!({"a": {"b": 3, "c": 2}}));
        check(json!({"spec": {"a": {"b": 1, "c": 2}}}), &json!({"a": {"b": null}}), &json!({"a": {"c": 2}}));
        check(json!({"spec": {"a": [1, 2]}}), &json!({"a": [3]}), &json!({"a": [3]}));
        check(json!({"spec": {"a": "x"}}), &json!({"a": {"b": {"c": null, "d": 1}}}), &json!({"a": {"b": {"d": 1}}}));
    }
}
