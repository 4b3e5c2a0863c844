//! The `scale` subresource: how many replicas an object is to have and has, in one form for every kind that has replicas
//! (Kubernetes: `autoscaling/v1`, Scale).

use std::sync::Arc;

use plinth_api::Object;
use serde_json::{Map, Value, json};

use super::{
    identity,
    kinds::Served,
    patch::{self, Form},
    problem::{FieldFault, Problem},
    read::present,
    state::{Ask, Reply, State},
    write::{admit, not_applied, precondition, refused},
};
use crate::embedded::{
    fields::managers::{self, ApplyError, Operation},
    store::Precondition,
};

const API_VERSION: &str = "autoscaling/v1";

/// Where the objects of a kind keep what a scale says, as JSON paths of field names such as `.spec.replicas`.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Paths {
    wanted: String,
    there: String,
    selector: String,
}

impl Paths {
    /// Those of the workloads of `apps`.
    pub(super) fn of_workload() -> Self {
        Self { wanted: ".spec.replicas".to_owned(), there: ".status.replicas".to_owned(), selector: ".spec.selector".to_owned() }
    }

    /// Those that a version of a CRD says; `None` where it has no scale.
    pub(super) fn of_version(version: &Value) -> Option<Self> {
        let scale = version["subresources"]["scale"].as_object()?;
        let text = |name: &str| scale.get(name).and_then(Value::as_str).unwrap_or_default().to_owned();
        Some(Self { wanted: text("specReplicasPath"), there: text("statusReplicasPath"), selector: text("labelSelectorPath") })
    }
}

fn steps(path: &str) -> Vec<&str> {
    path.split('.').filter(|step| !step.is_empty()).collect()
}

impl State {
    /// Answers a request for a scale.
    pub(super) fn scale(&mut self, ask: &Ask<'_>, verb: &str) -> Result<Reply, Problem> {
        let name = ask.target.name.clone().unwrap_or_default();
        let paths = ask.served.scale.as_ref().ok_or_else(Problem::no_resource)?;
        match verb {
            "get" => Ok(Reply::Json(200, shown(&*self.seen(ask, &name)?, paths)?)),
            "update" => {
                let scale = read(ask, ask.json()?)?;
                let count = count(&scale).map_err(Problem::bad_request)?;
                let old = self.seen(ask, &name)?;
                self.rescale(ask, paths, &old, &scale, count)
            }
            "patch" => self.patch_scale(ask, paths, &name),
            _ => Err(Problem::no_method()),
        }
    }

    fn patch_scale(&mut self, ask: &Ask<'_>, paths: &Paths, name: &str) -> Result<Reply, Problem> {
        let form = Form::of(&ask.call.content_type).ok_or_else(Form::unknown)?;
        let body = ask.json()?;
        let old = self.seen(ask, name)?;
        if form == Form::Apply {
            return self.apply_scale(ask, paths, &old, body);
        }
        let scale = read(ask, patch::patched(shown(&old, paths)?, &body, form)?)?;
        let count = count(&scale).map_err(|why| {
            let message = format!("Invalid value: {}: {why}", scale.spec());
            Problem::invalid("", "", "", &[FieldFault { reason: "FieldValueInvalid", field: "patch".to_owned(), message }])
        })?;
        self.rescale(ask, paths, &old, &scale, count)
    }

    /// Stores the count that a scale wants.
    fn rescale(&mut self, ask: &Ask<'_>, paths: &Paths, old: &Arc<Object>, scale: &Object, count: i64) -> Result<Reply, Problem> {
        not_below_zero(ask, paths, old.name(), count)?;
        let precondition = precondition(ask, scale);
        let checked = self.store.checked(&ask.place(old.name()), &precondition);
        checked.map_err(|refusal| refused(ask, old.name(), &refusal))?;
        let mut object = present(old, &ask.served);
        set(&mut object, paths, json!(count));
        admit(ask, &mut object, Some(old), Vec::new())?;
        let reset: &[&str] = if ask.served.status { &["status"] } else { &[] };
        managers::updated(old, &mut object, &ask.served.schema, &ask.manager(Operation::Update), reset, &ask.time());
        self.scaled(ask, paths, object, &precondition)
    }

    /// Applies a scale: the count belongs to the manager as if it had applied the object with nothing else.
    fn apply_scale(&mut self, ask: &Ask<'_>, paths: &Paths, old: &Arc<Object>, body: Value) -> Result<Reply, Problem> {
        let scale = read(ask, body)?;
        let count = count(&scale).map_err(Problem::unmergeable)?;
        not_below_zero(ask, paths, old.name(), count)?;
        let mut config = Object::default();
        config.0.insert("apiVersion".to_owned(), json!(ask.served.api_version()));
        config.0.insert("kind".to_owned(), json!(ask.served.kind));
        config.metadata_mut().insert("name".to_owned(), json!(old.name()));
        set(&mut config, paths, json!(count));
        let stored = present(old, &ask.served);
        let (manager, force) = (ask.manager(Operation::Apply), ask.call.query.is("force"));
        let mut object = managers::applied(&stored, &config, &ask.served.schema, &manager, force, &ask.time())
            .map_err(|error| not_applied(ask, &config, of_scales(error)))?;
        admit(ask, &mut object, Some(old), Vec::new())?;
        self.scaled(ask, paths, object, &Precondition::default())
    }

    fn scaled(&mut self, ask: &Ask<'_>, paths: &Paths, object: Object, precondition: &Precondition) -> Result<Reply, Problem> {
        let name = object.name().to_owned();
        let left = self.keep(ask, &name, object, precondition)?;
        Ok(Reply::Json(200, shown(left.object(), paths)?))
    }
}

/// An object as a scale.
fn shown(object: &Object, paths: &Paths) -> Result<Value, Problem> {
    let wanted = object.at(&steps(&paths.wanted)).and_then(Value::as_i64);
    let wanted =
        wanted.ok_or_else(|| Problem::internal(&format!("the spec replicas field {:?} does not exist", paths.wanted)))?;
    let there = object.at(&steps(&paths.there)).and_then(Value::as_i64).unwrap_or_default();
    let mut metadata = Map::new();
    for name in ["name", "namespace", "uid", "resourceVersion", "creationTimestamp"] {
        if let Some(value) = object.at(&["metadata", name]) {
            metadata.insert(name.to_owned(), value.clone());
        }
    }
    let spec = if wanted == 0 { json!({}) } else { json!({"replicas": wanted}) };
    let mut status = json!({"replicas": there});
    let selector = selector(object.at(&steps(&paths.selector)).unwrap_or(&Value::Null));
    if !selector.is_empty() {
        status["selector"] = json!(selector);
    }
    Ok(json!({"kind": "Scale", "apiVersion": API_VERSION, "metadata": metadata, "spec": spec, "status": status}))
}

/// A selector as text: custom resources have it so, workloads as `matchLabels` and `matchExpressions`.
fn selector(value: &Value) -> String {
    if let Some(text) = value.as_str() {
        return text.to_owned();
    }
    let labels = value["matchLabels"].as_object().into_iter().flatten();
    let mut parts: Vec<(&str, String)> =
        labels.map(|(name, value)| (name.as_str(), format!("{name}={}", value.as_str().unwrap_or_default()))).collect();
    parts.extend(value["matchExpressions"].as_array().into_iter().flatten().filter_map(expression));
    parts.sort();
    parts.into_iter().map(|(_, text)| text).collect::<Vec<_>>().join(",")
}

fn expression(expression: &Value) -> Option<(&str, String)> {
    let key = expression["key"].as_str()?;
    let mut values: Vec<&str> = expression["values"].as_array().into_iter().flatten().filter_map(Value::as_str).collect();
    values.sort_unstable();
    let values = values.join(",");
    Some((
        key,
        match expression["operator"].as_str()? {
            "In" => format!("{key} in ({values})"),
            "NotIn" => format!("{key} notin ({values})"),
            "Exists" => key.to_owned(),
            _ => format!("!{key}"),
        },
    ))
}

/// Conflicts with others who scaled are told in the version of scales.
fn of_scales(error: ApplyError) -> ApplyError {
    let ApplyError::Conflicts(mut conflicts) = error else { return error };
    for conflict in conflicts.iter_mut().filter(|conflict| conflict.manager.subresource == "scale") {
        API_VERSION.clone_into(&mut conflict.manager.api_version);
    }
    ApplyError::Conflicts(conflicts)
}

/// A body as the scale of the object that the path names. It may leave its kind out.
fn read(ask: &Ask<'_>, body: Value) -> Result<Object, Problem> {
    let scale = Object::from_value(body).ok_or_else(|| Problem::bad_request("the body is no JSON object"))?;
    let said = |name: &str| scale.0.get(name).and_then(Value::as_str).unwrap_or_default();
    let (api_version, kind) = (said("apiVersion"), said("kind"));
    if !["", API_VERSION].contains(&api_version) || !["", "Scale"].contains(&kind) {
        let version = api_version.rsplit('/').next().unwrap_or_default();
        return Err(Problem::bad_request(format!(
            "{kind} in version {version:?} cannot be handled as a Scale: converting ({api_version}.{kind}) to (autoscaling.Scale): unknown conversion"
        )));
    }
    identity::same_name(&scale, ask.target.name.as_deref().unwrap_or_default())?;
    if let Some(namespace) = &ask.target.namespace {
        identity::same_namespace(&scale, namespace)?;
    }
    Ok(scale)
}

/// How many replicas a scale wants, none where it does not say; or why it cannot be read.
fn count(scale: &Object) -> Result<i64, &'static str> {
    let said = &scale.spec()["replicas"];
    let count = said.as_i64().or_else(|| said.is_null().then_some(0));
    count.ok_or("json: cannot unmarshal into Go struct field ScaleSpec.spec.replicas of type int32")
}

fn not_below_zero(ask: &Ask<'_>, paths: &Paths, name: &str, count: i64) -> Result<(), Problem> {
    if count >= 0 {
        return Ok(());
    }
    let Served { builtin, group, kind, .. } = &*ask.served;
    let (group, kind, field, rule) = if *builtin {
        ("autoscaling", "Scale", "spec.replicas", "must be greater than or equal to 0")
    } else {
        (group.as_str(), kind.as_str(), paths.wanted.as_str(), "should be a non-negative integer")
    };
    let message = format!("Invalid value: {count}: {rule}");
    let fault = FieldFault { reason: "FieldValueInvalid", field: field.to_owned(), message };
    Err(Problem::invalid(group, kind, name, &[fault]))
}

/// Writes the wanted count where the kind keeps it.
fn set(object: &mut Object, paths: &Paths, count: Value) {
    let steps = steps(&paths.wanted);
    let Some((last, above)) = steps.split_last() else { return };
    let mut fields = &mut *object.0;
    for step in above {
        let below = fields.entry((*step).to_owned()).or_insert_with(|| json!({}));
        let Value::Object(below) = below else { return };
        fields = below;
    }
    fields.insert((*last).to_owned(), count);
}
