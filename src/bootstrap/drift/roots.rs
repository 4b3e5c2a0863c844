//! What others changed of what a run writes itself: definitions, Repositories and the top-level instance. What is wanted of those only their
//! release knows; whose a field is, the server has recorded.

use std::collections::BTreeSet;

use plinth_api::Object;
use plinth_engine::{
    naming::{self, keys},
    ports::Reader,
    yaml,
};
use plinth_run::{Action, Subject, inspect::masked};
use serde_json::Value;

use super::{Drift, Field, OURS, values};
use crate::{error::Error, managed, removal};

/// Fields of the `spec` of these objects that managers other than ours have taken.
pub(super) async fn held(platform: &str, reader: &dyn Reader) -> Result<Vec<Drift>, Error> {
    let mut written = removal::tops(platform, reader).await?;
    for gvk in removal::written_kinds() {
        written.extend(removal::list(reader, &gvk, &naming::platform_selector(platform)).await?);
    }
    Ok(written.into_iter().filter_map(|found| of(Subject::root(found.key), &found.object)).collect())
}

fn of(subject: Subject, live: &Object) -> Option<Drift> {
    // What no run wrote, others may hold.
    managed::applied_by(live, keys::MANAGER).next()?;
    let (mut ours, mut theirs) = (BTreeSet::new(), Vec::new());
    for record in managed::records(live) {
        let manager = record["manager"].as_str().unwrap_or("somebody");
        let mut fields = BTreeSet::new();
        leaves(&record["fieldsV1"]["f:spec"], "spec", &mut fields);
        if manager.starts_with(OURS) { ours.extend(fields) } else { theirs.push((manager.to_owned(), fields)) }
    }
    let shown = masked(live).into_value();
    let fields: Vec<Field> = theirs
        .into_iter()
        .flat_map(|(manager, fields)| fields.into_iter().map(move |path| (manager.clone(), path)))
        .filter(|(_, path)| !ours.contains(path))
        .map(|(manager, path)| {
            let live = values::at(&shown, &path).map(ToString::to_string);
            Field { path, live, wanted: None, by: vec![manager] }
        })
        .collect();
    (!fields.is_empty()).then_some(Drift { subject, action: Action::Configure, fields, terminating: live.is_terminating() })
}

/// The fields of a record, lists as a whole.
fn leaves(fields: &Value, path: &str, found: &mut BTreeSet<String>) {
    for (key, below) in fields.as_object().into_iter().flatten() {
        match key.strip_prefix("f:") {
            Some(name) if below.as_object().is_some_and(|below| !below.is_empty()) => {
                leaves(below, &yaml::field(path, name), found);
            }
            Some(name) => drop(found.insert(yaml::field(path, name))),
            None if key == "." => {}
            None => drop(found.insert(path.to_owned())),
        }
    }
}

#[cfg(test)]
mod tests {
    use plinth_api::ClusterKey;
    use serde_json::json;

    use super::*;
    use crate::testing::object;

    #[test]
    fn a_field_that_somebody_took_is_named_and_one_that_both_have_is_not() {
        let record = |manager: &str, operation: &str, fields: Value| json!({"manager": manager, "operation": operation, "fieldsV1": {"f:spec": fields}});
        let of = |records: Value| {
            let live =
                object(json!({"apiVersion": "a.test/v1", "kind": "Thing", "metadata": {"name": "a", "managedFields": records},
                "spec": {"interval": "5m", "a": {"b": 1}, "list": [1]}}));
            super::of(Subject::root(live.key(&ClusterKey::host()).unwrap()), &live).map(|drift| drift.fields).unwrap_or_default()
        };
        let ours = record("plinth.dev/plinth", "Apply", json!({"f:a": {"f:b": {}}, "f:list": {}}));
        let edited = record("kubectl-edit", "Update", json!({"f:interval": {}, "f:a": {".": {}, "f:b": {}}, "f:list": {}}));
        let by = vec!["kubectl-edit".to_owned()];
        let expected = Field { path: "spec.interval".into(), live: Some("\"5m\"".into()), wanted: None, by };
        assert_eq!(of(json!([ours, edited])), [expected]);
        assert_eq!(of(json!([edited])), [], "no run wrote it");
    }
}
