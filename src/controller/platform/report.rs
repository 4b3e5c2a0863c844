//! The status of a Platform.
//!
//! | what is so | Resolved | Applied | Ready |
//! | --- | --- | --- | --- |
//! | everything is as wanted, and ready | True | True | True |
//! | something is not ready yet | True | True | False `NotReady`, and why |
//! | the channel cannot be asked again | Unknown, why | True | as the platform is |
//! | the spec cannot be carried out | False, why, or True | False, why | False, why |
//! | it is suspended | as it was | as it was | as it was; `Suspended` True |
//!
//! Fields that a pass could not find out stay as they were.

use std::collections::BTreeSet;

use jiff::Timestamp;
use plinth_api::{ClusterKey, GroupVersionKind, Object, ObjectKey, delivery, lock::LockedRef, permission};
use plinth_bootstrap::{Error, Planned, plan::Built};
use plinth_cluster::watch::Look;
use plinth_engine::{
    health::{Health, judge},
    ports::Query,
};
use plinth_run::health::word;
use serde_json::{Map, Value, json};

use super::{Pass, load::Loaded};
use crate::{
    conditions::{self, Before, Said, seconds},
    delivery::report::{Failed, Reason},
    instance::Instances,
    world::World,
};

/// Field manager of what is written here.
pub(super) const MANAGER: &str = "plinth.dev/platform";
/// The conditions that are written here; a Platform has others.
const CONDITIONS: [&str; 5] = ["Resolved", "Applied", permission::MISSING, "Suspended", "Ready"];
/// The fields that are written here.
const FIELDS: [&str; 8] =
    ["observedGeneration", "release", "nextUpgrade", "instance", "components", "stages", "deferred", "lastRun"];
/// Most causes of one object.
const CAUSES: usize = 5;
/// Longest message.
const LONGEST: usize = 4096;

/// Where a status is taken from.
pub(super) struct Facts<'a> {
    pub(super) world: &'a World,
    pub(super) instances: &'a Instances,
    pub(super) cluster: &'a ClusterKey,
}

impl Facts<'_> {
    /// The status after a pass that carried everything out.
    pub(super) fn status(&self, platform: &Object, pass: &Pass, last_run: Option<Value>, now: Timestamp) -> Value {
        let Pass { loaded, carried, away } = pass;
        let (release, planned) = (loaded.release.as_ref(), &carried.planned);
        let resolved = match away {
            None => Said::yes("Resolved", "Succeeded", format!("{}:{}", release.name, release.version)),
            Some(why) => Said::unknown("Resolved", "Away", shortened(format!("not looked at since: {why}"))),
        };
        let count = planned.wanted.len();
        let said = [resolved, Said::yes("Applied", "Succeeded", format!("{count} objects are as wanted")), self.ready(planned)];
        let mut status = Map::new();
        status.insert("release".into(), json!({"component": release.name, "version": release.version}));
        status.extend(loaded.next.as_ref().map(|next| ("nextUpgrade".to_owned(), json!({"version": next}))));
        status.insert("instance".into(), reference(&planned.instance));
        status.insert("components".into(), self.components(loaded, planned));
        status.insert("stages".into(), self.stages(planned));
        status.insert("deferred".into(), self.deferred(planned));
        finished(platform, status, &said, last_run, now)
    }

    /// Definitions and instance are ready, and with it everything below.
    fn ready(&self, planned: &Planned) -> Said {
        for built in &planned.built {
            let (health, message) = self.health(&built.key);
            if health != Health::Current {
                let reason = if health == Health::Waiting { "Waiting" } else { "NotReady" };
                return Said::no("Ready", reason, shortened(format!("{} is {}: {message}", built.key, word(health))));
            }
        }
        if self.instances.is_ready(&planned.instance) == Some(true) {
            return Said::yes("Ready", "Ready", "");
        }
        let why = self.why(&planned.instance).join(": ");
        Said::no(
            "Ready",
            "NotReady",
            shortened(format!("{} is not ready: {why}", planned.instance).trim_end_matches(": ").to_owned()),
        )
    }

    fn why(&self, instance: &ObjectKey) -> Vec<String> {
        self.instances
            .causes(instance)
            .into_iter()
            .map(|cause| cause.message)
            .filter(|text| !text.is_empty())
            .take(CAUSES)
            .collect()
    }

    /// How an object is, as far as it is watched; an instance as its reconciler says.
    pub(super) fn health(&self, key: &ObjectKey) -> (Health, String) {
        match self.instances.is_ready(key) {
            Some(true) => return (Health::Current, String::new()),
            Some(false) => return (Health::InProgress, self.why(key).join(": ")),
            None => {}
        }
        match self.world.index.look(key) {
            Look::Present(object) => {
                let verdict = judge(&object);
                (verdict.health, verdict.message)
            }
            Look::Absent => (Health::NotFound, String::new()),
            Look::Unknown | Look::Unwatched => (Health::Unknown, String::new()),
        }
    }

    /// Every component version of the release, with the health of what is made of it.
    fn components(&self, loaded: &Loaded, planned: &Planned) -> Value {
        let components = loaded.content.lock.components.iter().map(|component| {
            let at = LockedRef { name: component.name.clone(), version: component.version.clone() };
            let mut entry = json!({"name": at.name, "version": at.version, "digest": component.digest});
            let built = planned.built.iter().filter(|built| built.rgd.component == at);
            let found: Vec<(Health, String)> =
                built.flat_map(|built| self.of_definition(built)).chain(self.of_delivery(&at)).collect();
            let worst = found.into_iter().max_by_key(|(health, _)| urgency(*health));
            if let Some((health, message)) = worst {
                entry["health"] = word(health).into();
                if health != Health::Current && !message.is_empty() {
                    entry["why"] = shortened(message).into();
                }
            }
            entry
        });
        components.collect()
    }

    /// A definition, and all instances of its kind.
    fn of_definition(&self, built: &Built) -> Vec<(Health, String)> {
        let of_kind = |key: &ObjectKey| key.gvk == built.graph.instance.gvk && key.cluster == *self.cluster;
        let instances = self.instances.all().into_iter().filter(of_kind).map(|key| self.health(&key));
        std::iter::once(self.health(&built.key)).chain(instances).collect()
    }

    /// Component objects that ask for this version.
    fn of_delivery(&self, at: &LockedRef) -> Vec<(Health, String)> {
        let gvk = GroupVersionKind::new(delivery::GROUP, delivery::VERSION, "Component");
        let query = Query { cluster: self.cluster.clone(), gvk, namespace: None, selector: String::new() };
        let is_it = |object: &&std::sync::Arc<Object>| {
            let found = &object.status()["component"];
            found["component"] == at.name.as_str() && found["version"] == at.version.as_str()
        };
        let found = self.world.index.list(&query).unwrap_or_default();
        found.iter().filter(is_it).map(|object| judge(object)).map(|verdict| (verdict.health, verdict.message)).collect()
    }

    /// The stages of the plan, with how many of their objects are ready. What is not watched is left out.
    fn stages(&self, planned: &Planned) -> Value {
        let stages = planned.plan.stages.iter().filter_map(|stage| {
            let known: Vec<Health> = stage
                .changes
                .iter()
                .map(|change| self.health(&change.subject.key).0)
                .filter(|health| *health != Health::Unknown)
                .collect();
            let ready = known.iter().filter(|health| **health == Health::Current).count();
            (!known.is_empty()).then(|| json!({"title": stage.title, "ready": ready, "total": known.len()}))
        });
        stages.collect()
    }

    /// Nodes whose kinds are not served yet; those of definitions that are ready by now have come.
    fn deferred(&self, planned: &Planned) -> Value {
        let waits = planned.plan.deferred.iter().filter(|deferred| self.health(&deferred.subject.key).0 == Health::Waiting);
        let entry = |deferred: &plinth_run::Deferred| {
            let kinds: Vec<String> = deferred.missing.iter().map(ToString::to_string).collect();
            json!({"definition": deferred.subject.key.name, "node": deferred.node, "kinds": kinds, "expectedFrom": deferred.expected_from})
        };
        waits.map(entry).collect()
    }
}

/// What needs attention first.
fn urgency(health: Health) -> u8 {
    match health {
        Health::Current => 0,
        Health::Unknown => 1,
        Health::InProgress => 2,
        Health::Waiting => 3,
        Health::Terminating => 4,
        Health::NotFound => 5,
        Health::Failed => 6,
    }
}

/// The status of a Platform that cannot be carried out; what is known of the one that runs stays.
pub(super) fn failed(platform: &Object, failed: &Failed, last_run: Option<Value>, now: Timestamp) -> Value {
    let reason = failed.reason.as_str();
    let message = shortened(failed.message.clone());
    let is_late = matches!(
        failed.reason,
        Reason::ValuesInvalid | Reason::PlanRefused | Reason::ApplyFailed | Reason::PermissionMissing | Reason::NotMoved
    );
    let resolved = if is_late { Said::yes("Resolved", "Succeeded", "") } else { Said::no("Resolved", reason, message.clone()) };
    let mut said = vec![resolved, Said::no("Applied", reason, message.clone()), Said::no("Ready", reason, message)];
    if !failed.missing.is_empty() {
        said.insert(2, Said::yes(permission::MISSING, "Forbidden", shortened(permission::message(&failed.missing))));
    }
    finished(platform, kept(platform), &said, last_run, now)
}

/// The status of a Platform that is let alone.
pub(super) fn suspended(platform: &Object, now: Timestamp) -> Value {
    let mut status = Value::Object(kept(platform));
    let before = Before::of(platform);
    let said = Said::yes("Suspended", "Suspended", "spec.suspend is set: nothing is looked at and nothing is written");
    let mut list = own_conditions(platform);
    list.retain(|condition| condition["type"] != "Suspended");
    list.extend(conditions::to_value(&[before.stamp(&said, platform.generation(), now)]).as_array().cloned().unwrap_or_default());
    status["conditions"] = Value::Array(list);
    status["lastRun"] = platform.status().get("lastRun").cloned().unwrap_or_default();
    status.as_object_mut().expect("a mapping was just made").retain(|_, value| !value.is_null());
    status
}

fn finished(platform: &Object, mut status: Map<String, Value>, said: &[Said], last_run: Option<Value>, now: Timestamp) -> Value {
    let (before, generation) = (Before::of(platform), platform.generation());
    let list: Vec<_> = said.iter().map(|said| before.stamp(said, generation, now)).collect();
    status.insert("conditions".into(), conditions::to_value(&list));
    status.insert("observedGeneration".into(), generation.into());
    let last_run = last_run.or_else(|| platform.status().get("lastRun").cloned());
    status.extend(last_run.map(|run| ("lastRun".to_owned(), run)));
    Value::Object(status)
}

/// The fields of the platform that runs.
fn kept(platform: &Object) -> Map<String, Value> {
    let fields = FIELDS.into_iter().filter(|field| *field != "lastRun");
    fields.filter_map(|field| Some((field.to_owned(), platform.status().get(field)?.clone()))).collect()
}

fn own_conditions(platform: &Object) -> Vec<Value> {
    let list = platform.status().get("conditions").and_then(Value::as_array).cloned().unwrap_or_default();
    list.into_iter().filter(|condition| CONDITIONS.iter().any(|own| condition["type"] == *own)).collect()
}

/// Whether a Platform has this status already.
pub(super) fn is_so(platform: &Object, status: &Value) -> bool {
    let by_type = |list: Vec<Value>| -> BTreeSet<String> { list.into_iter().map(|condition| condition.to_string()).collect() };
    let wanted = status["conditions"].as_array().cloned().unwrap_or_default();
    FIELDS.iter().all(|field| platform.status().get(field) == status.get(field))
        && by_type(own_conditions(platform)) == by_type(wanted)
}

/// The release that runs, as the status says.
pub(super) fn installed(platform: &Object) -> Option<LockedRef> {
    let text = |field: &str| platform.status()["release"][field].as_str().map(str::to_owned);
    Some(LockedRef { name: text("component")?, version: text("version")? })
}

/// What a run that wrote, or was refused, came to.
pub(super) fn run(began: Timestamp, ended: Timestamp, end: Result<usize, &Error>) -> Value {
    let (outcome, message) = match end {
        Ok(writes) => ("done".to_owned(), format!("{writes} objects written")),
        Err(error) => (error.outcome().word().to_owned(), shortened(error.to_string())),
    };
    json!({"started": seconds(began), "ended": seconds(ended), "outcome": outcome, "message": message})
}

fn reference(key: &ObjectKey) -> Value {
    let mut reference = json!({"apiVersion": key.gvk.api_version(), "kind": key.gvk.kind, "name": key.name});
    if let Some(namespace) = &key.namespace {
        reference["namespace"] = namespace.clone().into();
    }
    reference
}

fn shortened(text: String) -> String {
    if text.len() <= LONGEST {
        return text;
    }
    let end = (0..LONGEST).rev().find(|at| text.is_char_boundary(*at)).unwrap_or_default();
    format!("{} …", &text[..end])
}
