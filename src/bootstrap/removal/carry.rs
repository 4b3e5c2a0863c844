//! Deleting, waiting until things are gone, and the proof at the end.

use std::{collections::BTreeMap, sync::Arc, time::Duration};

use jiff::Timestamp;
use plinth_api::{Object, ObjectKey};
use plinth_engine::{
    naming::{self, keys},
    ports::{Delete, WriteError},
};
use plinth_run::{Action, EventKind, Health, Outcome, Plan, Recorder, SkipReason, StageId, Subject};
use serde_json::{Value, json};

use super::survey::{self, Found, Survey};
use crate::{error::Error, preflight, wanted, write::Writer};

/// Field manager of the mark on generated CRDs.
const MANAGER_REMOVAL: &str = "plinth.dev/removal";
/// How often an object that is being deleted is looked at.
const LOOK: Duration = Duration::from_millis(250);

/// What stays, and why.
pub(super) type Kept = BTreeMap<ObjectKey, String>;

/// Deletes stage by stage. The loop runs while there is anything that it has to take its finalizer off.
pub(super) async fn out(survey: &Survey, plan: &Plan, writer: &Writer<'_>) -> Result<Kept, Error> {
    let mut kept = Kept::new();
    if !survey.instances.is_empty() || !survey.definitions.is_empty() {
        // Nobody follows the observer here: what is gone is found by looking.
        let _observer = writer.ports.control.start().await.map_err(Error::Loop)?;
    }
    stage(plan, &survey.instances, writer, &mut kept, Guard::None).await?;
    mark(survey, writer).await?;
    stage(plan, &survey.definitions, writer, &mut kept, Guard::Defined).await?;
    writer.ports.control.stop().await;
    stage(plan, &survey.generated, writer, &mut kept, Guard::Stored).await?;
    stage(plan, &survey.foundation, writer, &mut kept, Guard::Stored).await?;
    Ok(kept)
}

/// Labels the generated CRDs as the platform's. Once its definition is gone, nothing else would lead to a CRD any more, and a
/// removal that is killed in between has to find it.
async fn mark(survey: &Survey, writer: &Writer<'_>) -> Result<(), Error> {
    let platform = naming::label_value(&writer.settings.platform);
    for found in survey.generated.iter().filter(|found| found.object.label(keys::PLATFORM) != Some(&platform)) {
        let marked = json!({
            "apiVersion": found.key.gvk.api_version(),
            "kind": found.key.gvk.kind,
            "metadata": {"name": found.key.name, "labels": {keys::PLATFORM: platform}},
        });
        let object = Object::from_value(marked).expect("a JSON object was just written");
        // A manager of its own: under the loop's, applying the label alone would take all other fields away.
        writer.apply(&found.key, &object, MANAGER_REMOVAL).await?;
    }
    Ok(())
}

/// What has to be empty before an object goes.
#[derive(Clone, Copy, PartialEq, Eq)]
enum Guard {
    /// Nothing.
    None,
    /// Instances of the kind that a definition defines.
    Defined,
    /// Objects of the kind that a CRD stores.
    Stored,
}

async fn stage(plan: &Plan, found: &[Found], writer: &Writer<'_>, kept: &mut Kept, guard: Guard) -> Result<(), Error> {
    let Some(stage) = found.first().and_then(|first| plan.stage_of(&first.key)) else { return Ok(()) };
    let title = plan.stages.iter().find(|known| known.id == stage).map(|known| known.title.clone()).unwrap_or_default();
    writer.ports.log.record(EventKind::StageStarted { stage, title });
    let result = delete_all(found, writer, kept, guard).await;
    let outcome = result.as_ref().map_or_else(Error::outcome, |()| Outcome::Done);
    finished(writer, stage, outcome);
    result
}

fn finished(writer: &Writer<'_>, stage: StageId, outcome: Outcome) {
    writer.ports.log.record(EventKind::StageFinished { stage, outcome });
}

async fn delete_all(found: &[Found], writer: &Writer<'_>, kept: &mut Kept, guard: Guard) -> Result<(), Error> {
    for found in found {
        match in_the_way(found, writer, guard).await? {
            Some(why) => keep(found, why, writer, kept),
            None => delete(found, writer).await?,
        }
    }
    Ok(())
}

/// Why an object has to stay, if it has to.
async fn in_the_way(found: &Found, writer: &Writer<'_>, guard: Guard) -> Result<Option<String>, Error> {
    let kind = match guard {
        Guard::Defined => survey::defined(&found.object),
        Guard::Stored if found.key.gvk == wanted::crd_kind() => survey::stored(&found.object),
        Guard::None | Guard::Stored => None,
    };
    let Some(kind) = kind else { return Ok(None) };
    let left = survey::list(writer.ports.reader.as_ref(), &kind, "").await?;
    let names: Vec<String> = left.iter().take(3).map(|found| found.key.to_string()).collect();
    let text = || format!("{} of its kind are left: {}", left.len(), names.join(", "));
    Ok((!left.is_empty()).then(text))
}

fn keep(found: &Found, why: String, writer: &Writer<'_>, kept: &mut Kept) {
    let subject = Subject::root(found.key.clone());
    writer
        .ports
        .log
        .record(EventKind::ChangeSkipped { subject: subject.clone(), reason: SkipReason::Foreign { owner: why.clone() } });
    let message = format!("stays: {why}");
    writer.ports.log.record(EventKind::Warning { subject: Some(subject), reason: "Kept".into(), message });
    kept.insert(found.key.clone(), why);
}

/// Asks for the deletion of exactly this object and waits until it is gone.
async fn delete(found: &Found, writer: &Writer<'_>) -> Result<(), Error> {
    let subject = Subject::root(found.key.clone());
    if writer.read(&found.key).await?.is_none() {
        writer.ports.log.record(EventKind::ChangeSkipped { subject, reason: SkipReason::Gone });
        return Ok(());
    }
    let request = Delete { key: found.key.clone(), uid: found.object.uid().map(str::to_owned) };
    let mut retry = writer.retry(format!("delete {}", found.key));
    loop {
        writer.may_write()?;
        match writer.ports.applier.delete(&request).await {
            Ok(()) | Err(WriteError::NotServed(_) | WriteError::NotFound { .. }) => break,
            Err(WriteError::Unavailable { message, .. }) => retry.wait(message).await?,
            Err(error) => return Err(error.into()),
        }
    }
    gone(found, writer).await?;
    writer.ports.log.record(EventKind::ChangeApplied {
        subject,
        action: Action::Delete,
        digest: String::new(),
        generation: 0,
        result: None,
        uid: None,
    });
    Ok(())
}

/// Waits until the object is gone; says whose finalizer it waits for.
async fn gone(found: &Found, writer: &Writer<'_>) -> Result<(), Error> {
    let clock = Arc::clone(writer.ports.log.clock());
    let mut quiet_since = clock.now();
    loop {
        let live = writer.read(&found.key).await?;
        let Some(live) = live.filter(|live| live.uid() == found.object.uid()) else { return Ok(()) };
        let message = waits_for(&live);
        writer.ports.log.record(EventKind::HealthChanged {
            subject: Subject::root(found.key.clone()),
            health: Health::Terminating,
            reason: "Finalizers".into(),
            message: message.clone(),
            causes: Vec::new(),
        });
        if writer.deadline.left(clock.as_ref()).is_zero() {
            let text = format!("{} is still there after {}: {message}", found.key, writer.deadline.total());
            return Err(Error::Deadline(text));
        }
        quiet_since = beat(quiet_since, clock.now(), writer);
        clock.sleep(LOOK).await;
    }
}

/// A heartbeat where nothing happened for long enough; the answer is since when it is quiet.
fn beat(quiet_since: Timestamp, now: Timestamp, writer: &Writer<'_>) -> Timestamp {
    let changed = writer.ports.log.read(|state| state.changed).map_or(quiet_since, |changed| changed.max(quiet_since));
    let quiet = Duration::try_from(now.duration_since(changed)).unwrap_or_default();
    if quiet < writer.settings.heartbeat {
        return changed;
    }
    let heartbeat = writer.ports.log.read(|state| state.heartbeat(now));
    writer.ports.log.record(heartbeat);
    now
}

fn waits_for(live: &Object) -> String {
    let own: Vec<&str> = live.finalizers();
    // A namespace has its own kind of finalizer, in its spec.
    let spec = live.at(&["spec", "finalizers"]).and_then(Value::as_array).into_iter().flatten().filter_map(Value::as_str);
    let all: Vec<&str> = own.into_iter().chain(spec).collect();
    if all.is_empty() { "deletion was asked for".to_owned() } else { format!("waits for finalizer {}", all.join(", ")) }
}

/// The proof: nothing that carries the label is left, except what stays for a reason.
pub(super) async fn prove(survey: &Survey, kept: &Kept, writer: &Writer<'_>) -> Result<(), Error> {
    let mut left = Vec::new();
    for gvk in survey.searched() {
        let found = survey::list(writer.ports.reader.as_ref(), &gvk, &survey.selector).await?;
        left.extend(found.into_iter().map(|found| found.key).filter(|key| !kept.contains_key(key)));
    }
    let log = &writer.ports.log;
    if !left.is_empty() {
        let names: Vec<String> = left.iter().map(ToString::to_string).collect();
        let error = Error::Failed(format!("still labelled {}: {}", keys::PLATFORM, names.join(", ")));
        return Err(preflight::failed(log, preflight::NOTHING_LEFT, error));
    }
    let stays = if kept.is_empty() { String::new() } else { format!(" but {} that stay", kept.len()) };
    preflight::passed(log, preflight::NOTHING_LEFT, format!("nothing labelled {} is left{stays}", survey.selector));
    Ok(())
}
