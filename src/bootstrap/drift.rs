//! Drift: what of a platform is not as it is wanted, field by field, and who holds it so. Reads only.
//!
//! What is wanted comes from a plan of the release that runs, or, of what the loop makes, from the definitions and instances that the
//! cluster itself has: for that nobody else has to be asked.

mod roots;
mod values;

use std::sync::Arc;

use plinth_api::{ClusterKey, GroupVersionKind, Object, ObjectKey, lock::LockedRef, rgd};
use plinth_engine::{
    graph::{self, Compiled, Definition},
    naming,
    ports::Reader,
    schema::SchemaSource,
    stored,
};
use plinth_run::{Action, Subject, inspect::masked};
use serde::Serialize;

use crate::{
    Planned,
    distribution::Rgd,
    error::Error,
    held::held_by,
    plan::{self, Built, Place},
    ports::Schemas,
    removal,
    settings::{Purpose, Settings},
};

/// What field managers of ours begin with.
const OURS: &str = "plinth.dev/";

/// One object that is not as it is wanted.
#[derive(Clone, Debug, PartialEq, Serialize)]
#[serde(rename_all = "camelCase")]
pub struct Drift {
    /// The object.
    pub subject: Subject,
    /// What would bring it back: it is made, changed, or deleted.
    pub action: Action,
    /// It is there and being deleted; it is made again once it is gone.
    #[serde(skip_serializing_if = "std::ops::Not::not")]
    pub terminating: bool,
    /// What differs; empty for an object that is missing, or too much.
    #[serde(skip_serializing_if = "Vec::is_empty")]
    pub fields: Vec<Field>,
}

/// One field.
#[derive(Clone, Debug, PartialEq, Eq, Serialize)]
pub struct Field {
    /// Path from the root.
    pub path: String,
    /// What is there, as JSON, secrets masked; `None` where nothing is.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub live: Option<String>,
    /// What is wanted, as JSON, secrets masked; `None` where nothing is.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub wanted: Option<String>,
    /// Managers other than ours that hold it, as the server recorded them.
    pub by: Vec<String>,
}

/// What a plan of the release that runs would change.
pub async fn of_plan(planned: &Planned, reader: &dyn Reader) -> Result<Vec<Drift>, Error> {
    let mut found = Vec::new();
    for change in planned.plan.changes().filter(|change| change.action.is_write()) {
        let key = &change.subject.key;
        let own = planned.wanted.iter().find(|wanted| wanted.key == *key).map(|wanted| &wanted.object);
        let wanted = own.or_else(|| planned.places.iter().find(|place| place.subject.key == *key).map(|place| &place.object));
        let live = if change.action == Action::Delete { None } else { plan::read(reader, key).await? };
        let terminating = live.as_ref().is_some_and(Object::is_terminating);
        let fields = match (wanted, live) {
            (Some(wanted), Some(live)) if change.action == Action::Configure => {
                change.fields.iter().map(|path| field(path, wanted, &live)).collect()
            }
            _ => Vec::new(),
        };
        found.push(Drift { subject: change.subject.clone(), action: change.action, terminating, fields });
    }
    Ok(found)
}

/// What of the objects that the loop makes is not as the definitions and instances in the cluster want it, and which fields of those
/// themselves others have taken. What is missing is not told: it may be on its way.
pub async fn below(platform: &str, reader: &dyn Reader, schemas: &dyn Schemas) -> Result<Vec<Drift>, Error> {
    let built = built(platform, reader, schemas).await?;
    let settings = Settings { platform: platform.to_owned(), take_over: true, purpose: Purpose::Compare, ..Settings::default() };
    let mut found = roots::held(platform, reader).await?;
    for top in removal::tops(platform, reader).await? {
        let Some(root) = built.iter().find(|built| built.graph.instance.gvk == top.key.gvk) else { continue };
        // What cannot be followed is told by the plan.
        let places = plan::below(&top.object, root, &built).unwrap_or_default();
        for place in places.iter().filter(|place| place.is_named() && place.waits_for.is_empty()) {
            found.extend(of_place(place, &settings, reader).await?);
        }
    }
    Ok(found)
}

async fn of_place(place: &Place, settings: &Settings, reader: &dyn Reader) -> Result<Option<Drift>, Error> {
    let Some(live) = plan::read(reader, &place.subject.key).await? else { return Ok(None) };
    // Somebody else's object in its place is no drift.
    let Ok(standing) = plan::of_child(place, Some(&live), settings) else { return Ok(None) };
    let is_drift = standing.action == Action::Configure && !standing.fields.is_empty();
    let fields = standing.fields.iter().map(|path| field(path, &place.object, &live)).collect();
    Ok(is_drift.then(|| Drift { subject: place.subject.clone(), action: Action::Configure, terminating: false, fields }))
}

/// The platform's definitions as the cluster has them, compiled over what it serves.
async fn built(platform: &str, reader: &dyn Reader, schemas: &dyn Schemas) -> Result<Vec<Built>, Error> {
    let gvk = GroupVersionKind::new(rgd::KRO_GROUP, rgd::VERSION, rgd::KIND);
    let found = removal::list(reader, &gvk, &naming::platform_selector(platform)).await?;
    let definitions: Vec<(ObjectKey, Object, Definition)> = found
        .into_iter()
        .filter_map(|found| {
            let definition = Definition::from_object(&found.object).ok()?;
            Some((found.key, found.object, definition))
        })
        .collect();
    let kinds: Vec<GroupVersionKind> = definitions.iter().flat_map(|(.., definition)| graph::kinds(&definition.spec)).collect();
    let served = schemas.ensure(&kinds).await?;
    Ok(definitions.into_iter().filter_map(|(key, object, definition)| compiled(key, object, definition, &served)).collect())
}

fn compiled(key: ObjectKey, object: Object, definition: Definition, served: &Arc<dyn SchemaSource>) -> Option<Built> {
    let (Compiled::Active(graph) | Compiled::Deferred { graph, .. }) =
        graph::compile(&definition, served.as_ref(), &graph::Options::default())
    else {
        return None;
    };
    let key = ObjectKey { cluster: ClusterKey::host(), ..key };
    let rgd = Rgd { component: LockedRef::default(), resource: String::new(), object, definition };
    Some(Built { rgd, key, graph })
}

fn field(path: &str, wanted: &Object, live: &Object) -> Field {
    let shown = |object: &Object| {
        let kept = Object::from_value(stored::kept(object.as_value()).into_owned())?;
        let value = masked(&kept).into_value();
        values::at(&value, path).filter(|value| !value.is_null()).map(ToString::to_string)
    };
    let held = held_by(wanted.as_value(), live, |manager| !manager.starts_with(OURS));
    let is_it = |field: &str| field == path || path.strip_prefix(field).is_some_and(|rest| rest.starts_with(['.', '[']));
    let mut by: Vec<String> = held.into_iter().filter(|held| is_it(&held.field)).map(|held| held.manager).collect();
    by.dedup();
    Field { path: path.to_owned(), live: shown(live), wanted: shown(wanted), by }
}

#[cfg(test)]
mod tests {
    use plinth_api::ClusterKey;
    use serde_json::json;

    use super::*;
    use crate::testing::{Bench, key, object};

    #[tokio::test(start_paused = true)]
    async fn a_field_that_somebody_changed_is_named_with_both_values_and_its_manager() {
        let bench = Bench::new();
        bench.up().await;
        let quiet = below("default", bench.cluster.as_ref(), bench.cluster.as_ref()).await.unwrap();
        assert_eq!(quiet, []);
        let config = key("v1", "ConfigMap", Some("default"), "worker-config");
        let mut edited = bench.cluster.objects()[&config].clone();
        edited.0["data"]["size"] = "9".into();
        edited.metadata_mut().insert(
            "managedFields".into(),
            json!([{"manager": "kubectl-edit", "operation": "Update", "fieldsV1": {"f:data": {"f:size": {}}}}]),
        );
        bench.cluster.put(&edited);
        let found = below("default", bench.cluster.as_ref(), bench.cluster.as_ref()).await.unwrap();
        assert_eq!(found.len(), 1, "{found:?}");
        assert_eq!(found[0].subject.key, config);
        let expected = Field {
            path: "data.size".into(),
            live: Some("\"9\"".into()),
            wanted: Some("\"1\"".into()),
            by: vec!["kubectl-edit".into()],
        };
        assert_eq!(found[0].fields, [expected]);
    }

    #[test]
    fn secrets_are_named_and_not_shown() {
        let of = |value: &str| {
            object(json!({"apiVersion": "v1", "kind": "Secret", "metadata": {"name": "s"}, "data": {"key": value}}))
        };
        let found = field("data.key", &of("aHVudGVyMg=="), &of("b3RoZXI="));
        assert_eq!((found.live.as_deref(), found.wanted.as_deref()), (Some("\"(masked)\""), Some("\"(masked)\"")));
        assert_eq!(of("x").key(&ClusterKey::host()).unwrap().name, "s");
    }
}
