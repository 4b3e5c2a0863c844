//! What the operator wants differently: values over the instance's `spec`, held against the generated schema.

use plinth_api::Object;
use plinth_engine::{
    Diagnostic, Location,
    graph::Graph,
    schema::{self, Schema},
};
use serde_json::{Map, Value};

use crate::{
    distribution::{self, Distribution},
    error::{Error, Placed},
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

/// Refuses an instance that the API server would refuse, and fields that it would drop in silence. Each finding has its place in the
/// file that brings the field, or what is around it.
pub fn check(instance: &Object, graph: &Graph, distribution: &Distribution, settings: &Settings) -> Result<(), Error> {
    let findings = findings(instance, schema_of(graph)?.as_ref());
    if findings.is_empty() {
        return Ok(());
    }
    let findings = findings.into_iter().map(|finding| placed(finding, distribution, settings)).collect();
    Err(Error::Values { kind: graph.instance.gvk.to_string(), findings })
}

/// The finding with its place: where most of its path is written, and of equals the text that wins.
fn placed(mut finding: Diagnostic, distribution: &Distribution, settings: &Settings) -> Placed {
    let in_values = settings.values_files.iter().filter_map(|file| {
        let (depth, place) = place_of_value(file, &finding.path)?;
        Some((depth, place, format!("{}:", file.name)))
    });
    let name = format!("instance of component {}: ", distribution::printed(&distribution.component));
    let in_instance = distribution.instance_places.reach(&finding.path).map(|(depth, place)| (depth, place, name));
    let mut best: Option<(usize, Location, String)> = None;
    for candidate in in_values.chain(in_instance) {
        if best.as_ref().is_none_or(|(depth, ..)| candidate.0 > *depth) {
            best = Some(candidate);
        }
    }
    let (location, text) = best.map(|(_, location, text)| (location, text)).unzip();
    finding.location = location;
    Placed { text: text.unwrap_or_default(), finding }
}

/// How many segments of a path below the instance are written in a file of values, and where they end; `None` where it has nothing of it.
fn place_of_value(file: &ValuesFile, path: &str) -> Option<(usize, Location)> {
    let below = path.strip_prefix("spec")?;
    let (depth, place) = file.locations.reach(format!("{}{below}", file.under).trim_start_matches('.'))?;
    let outside = if file.under.is_empty() { 0 } else { file.under.split('.').count() };
    // What is the instance's `spec` is written there, but not as a field.
    (depth > outside).then_some((depth - outside + 1, place))
}

fn findings(instance: &Object, schema: &Schema) -> Vec<Diagnostic> {
    let mut value = instance.clone().into_value();
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
