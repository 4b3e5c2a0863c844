//! Deleting, waiting until things are gone, and the proof at the end.

use std::collections::BTreeMap;

use plinth_api::{Object, ObjectKey};
use plinth_engine::{
    naming::{self, keys},
    ports::{Delete, WriteError},
};
use plinth_run::{Action, EventKind, Outcome, Plan, Recorder, SkipReason, StageId, Subject};
use serde_json::json;

use super::{
    content,
    owners::{self, Owners},
    scope,
    survey::{self, Found, Survey},
};
use crate::{error::Error, gone, ports::Ports, preflight, wanted, write::Writer};

/// Field manager of the mark on generated CRDs.
const MANAGER_REMOVAL: &str = "plinth.dev/removal";

/// What stays, and why.
pub(super) type Kept = BTreeMap<ObjectKey, String>;

/// A removal that was agreed to.
pub(super) struct Carry<'a> {
    pub(super) survey: &'a Survey,
    pub(super) plan: &'a Plan,
    /// Ports that ask once.
    pub(super) plain: &'a Ports,
    pub(super) writer: &'a Writer<'a>,
}

impl Carry<'_> {
    /// Deletes stage by stage. The loop runs while there is anything that it has to take its finalizer off.
    pub(super) async fn out(&self) -> Result<Kept, Error> {
        let (survey, writer) = (self.survey, self.writer);
        let mut kept = Kept::new();
        self.stage(&survey.controller, &mut kept, Guard::None).await?;
        if [&survey.instances, &survey.orphans, &survey.definitions].iter().any(|found| !found.is_empty()) {
            // Nobody follows the observer here: what is gone is found by looking.
            let _observer = writer.ports.control.start().await.map_err(Error::Loop)?;
        }
        self.stage(&survey.instances, &mut kept, Guard::None).await?;
        self.ask_for_all(&survey.orphans).await;
        self.stage(&survey.orphans, &mut kept, Guard::None).await?;
        mark(survey, writer).await?;
        self.stage(&survey.definitions, &mut kept, Guard::Defined).await?;
        writer.ports.control.stop().await;
        self.stage(&survey.generated, &mut kept, Guard::Stored).await?;
        self.stage(&survey.rights, &mut kept, Guard::None).await?;
        self.stage(&survey.foundation, &mut kept, Guard::Stored).await?;
        Ok(kept)
    }

    async fn stage(&self, found: &[Found], kept: &mut Kept, guard: Guard) -> Result<(), Error> {
        let Some(stage) = found.first().and_then(|first| self.plan.stage_of(&first.key)) else { return Ok(()) };
        let title = self.plan.stages.iter().find(|known| known.id == stage).map(|known| known.title.clone()).unwrap_or_default();
        self.writer.ports.log.record(EventKind::StageStarted { stage, title });
        let result = self.delete_all(found, kept, guard).await;
        let outcome = result.as_ref().map_or_else(Error::outcome, |()| Outcome::Done);
        finished(self.writer, stage, outcome);
        result
    }

    /// Asks for the deletion of all: one may be held for the sake of another, and waiting for it alone would never end. What is not
    /// taken here is asked for again.
    async fn ask_for_all(&self, found: &[Found]) {
        for found in found.iter().filter(|found| !found.object.finalizers().is_empty()) {
            if self.writer.may_write().is_err() {
                return;
            }
            let request = Delete { key: found.key.clone(), uid: found.object.uid().map(str::to_owned) };
            let _asked_again_later = self.writer.ports.applier.delete(&request).await;
        }
    }

    async fn delete_all(&self, found: &[Found], kept: &mut Kept, guard: Guard) -> Result<(), Error> {
        for found in found {
            match self.in_the_way(found, guard).await? {
                Some(why) => keep(found, why, self.writer, kept),
                None => delete(found, self.writer).await?,
            }
        }
        Ok(())
    }

    /// Why an object has to stay, if it has to.
    async fn in_the_way(&self, found: &Found, guard: Guard) -> Result<Option<String>, Error> {
        if found.key.gvk == wanted::namespace_kind() {
            let looked = self.survey.scope.inside(&found.key.name, self.plain, self.writer.ports).await?;
            return Ok(content::in_the_way(&looked, &self.survey.selector));
        }
        let kind = match guard {
            Guard::Defined => survey::defined(&found.object),
            Guard::Stored if found.key.gvk == wanted::crd_kind() => survey::stored(&found.object),
            Guard::None | Guard::Stored => None,
        };
        let Some(kind) = kind else { return Ok(None) };
        let left = survey::list(self.writer.ports.reader.as_ref(), &kind, "").await?;
        let names: Vec<String> = left.iter().take(3).map(|found| found.key.to_string()).collect();
        let text = || format!("{} of its kind are left: {}", left.len(), names.join(", "));
        Ok((!left.is_empty()).then(text))
    }

    /// The proof: nothing that carries the label is left in any kind, except what stays for a reason.
    pub(super) async fn prove(&self, mut kept: Kept) -> Result<(), Error> {
        let log = &self.writer.ports.log;
        let selector = &self.survey.selector;
        let looked = self.survey.scope.labelled(selector, self.plain, self.writer.ports).await?;
        let mut known = Owners::new(self.writer.ports.reader.as_ref());
        let mut left = Vec::new();
        for found in looked.found.into_iter().filter(|found| !kept.contains_key(&found.key)).collect::<Vec<_>>() {
            if let Some(owner) = known.living(&found.object).await? {
                keep(&found, format!("it belongs to {owner}"), self.writer, &mut kept);
            } else if found.object.is_terminating() || !owners::references(&found.object).is_empty() {
                // On its way out, or left to the garbage collector.
                gone::wait(self.writer, &found.key, found.object.uid()).await?;
            } else {
                left.push(found.key.to_string());
            }
        }
        if !left.is_empty() {
            let error = Error::Failed(format!("still labelled {}: {}", keys::PLATFORM, left.join(", ")));
            return Err(preflight::failed(log, preflight::NOTHING_LEFT, error));
        }
        let stays = if kept.is_empty() { String::new() } else { format!(" but {} that stay", kept.len()) };
        let unseen = scope::unseen(&looked.unseen).map(|unseen| format!("; {unseen}")).unwrap_or_default();
        preflight::passed(log, preflight::NOTHING_LEFT, format!("nothing labelled {selector} is left{stays}{unseen}"));
        Ok(())
    }
}

/// Labels the generated CRDs as the platform's. Once its definition is gone, nothing else would lead to a CRD any more, and a
/// removal that is killed in between has to find it.
async fn mark(survey: &Survey, writer: &Writer<'_>) -> Result<(), Error> {
    let platform = naming::label_value(&writer.settings.platform);
    for found in survey.generated.iter().filter(|found| found.object.label(keys::PLATFORM) != Some(&platform)) {
        if !is_still_there(found, writer).await? {
            continue;
        }
        // With its UID: where it goes in this moment, the apply must not make another one.
        let marked = json!({
            "apiVersion": found.key.gvk.api_version(),
            "kind": found.key.gvk.kind,
            "metadata": {"name": found.key.name, "uid": found.object.uid(), "labels": {keys::PLATFORM: platform}},
        });
        let object = Object::from_value(marked).expect("a JSON object was just written");
        // A manager of its own: under the loop's, applying the label alone would take all other fields away.
        match writer.apply(&found.key, &object, MANAGER_REMOVAL).await {
            Err(Error::Write(WriteError::Conflict { .. })) if !is_still_there(found, writer).await? => {}
            answer => drop(answer?),
        }
    }
    Ok(())
}

/// Whether the very object is there, not another one of its name.
async fn is_still_there(found: &Found, writer: &Writer<'_>) -> Result<bool, Error> {
    Ok(writer.read(&found.key).await?.is_some_and(|live| live.uid() == found.object.uid()))
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

fn finished(writer: &Writer<'_>, stage: StageId, outcome: Outcome) {
    writer.ports.log.record(EventKind::StageFinished { stage, outcome });
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
            Err(WriteError::NotLeader { .. }) => writer.turn(&mut retry).await?,
            Err(error) => return Err(error.into()),
        }
    }
    gone::wait(writer, &found.key, found.object.uid()).await?;
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
