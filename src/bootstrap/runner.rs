//! Carrying a plan out: write, start the loop, watch until the instance is ready. May be killed anywhere and run again.

mod downgrade;
mod follow;
pub mod keep;
mod leftovers;
mod moving;
mod permitted;
mod steps;
mod taking;
#[cfg(test)]
mod tests;

use std::collections::BTreeSet;

use plinth_run::{Action, Change, Deferred, EventKind, Log, Outcome, Plan, Recorder, RunId, Subject, Verb, plan::Writer as By};

use crate::{
    content::Content,
    distribution::Distribution,
    error::Error,
    patient::patient,
    plan::{self, Planned},
    ports::{Approval, Approver, Ports},
    preflight::{self, Deadline},
    settings::Settings,
    write::Writer,
};

pub(crate) use follow::says_ready;
pub(crate) use steps::crd_of;

/// What is to be brought up.
#[derive(Clone, Debug)]
pub struct Request<'a> {
    /// The channel.
    pub content: &'a Content,
    /// The distribution of it.
    pub distribution: &'a Distribution,
    /// What the operator wants.
    pub settings: &'a Settings,
    /// A saved plan that has to be carried out exactly.
    pub saved: Option<&'a Plan>,
    /// The earlier run in the journal, where this one goes on.
    pub resumed: Option<RunId>,
}

/// Brings a platform up. Everything that happens is in the log, the outcome too; errors have been recorded.
pub async fn up(request: &Request<'_>, ports: &Ports, approver: &dyn Approver) -> Outcome {
    run(request.settings.verb, request, ports, approver).await
}

/// The same under another name.
pub(crate) async fn run(verb: Verb, request: &Request<'_>, ports: &Ports, approver: &dyn Approver) -> Outcome {
    let deadline = Deadline::after(ports.log.clock().as_ref(), request.settings.timeout);
    begin(request, ports, verb);
    let result = brought_up(request, ports, approver, deadline).await;
    match result {
        Ok(()) if !request.settings.unverified.is_empty() => {
            let message = request.settings.unverified.join("; ");
            ports.log.record(EventKind::RunFinished { outcome: Outcome::Done, message, hint: None });
            Outcome::Done
        }
        result => finish(ports, result),
    }
}

/// Makes and records a plan; writes nothing. `changes` asks for [`Outcome::Changes`] where the plan has any.
pub async fn plan(request: &Request<'_>, ports: &Ports, changes: bool) -> (Outcome, Option<Planned>) {
    let deadline = Deadline::after(ports.log.clock().as_ref(), request.settings.timeout);
    begin(request, ports, Verb::Plan);
    match planned(request, ports, deadline).await {
        Ok(planned) if changes && planned.plan.has_changes() => {
            ports.log.record(EventKind::RunFinished { outcome: Outcome::Changes, message: String::new(), hint: None });
            (Outcome::Changes, Some(planned))
        }
        Ok(planned) => (finish(ports, Ok(())), Some(planned)),
        Err(error) => (finish(ports, Err(error)), None),
    }
}

fn begin(request: &Request<'_>, ports: &Ports, verb: Verb) {
    ports.log.record(EventKind::RunStarted {
        verb,
        platform: request.settings.platform.clone(),
        source: request.settings.source.clone(),
        cluster: None,
        resumed: request.resumed.clone(),
    });
    let lock = &request.content.lock;
    let components = lock
        .components
        .iter()
        .map(|component| plinth_api::lock::LockedRef { name: component.name.clone(), version: component.version.clone() });
    ports.log.record(EventKind::Resolved { root: lock.root.clone(), components: components.collect() });
}

/// Records how it ended.
pub(crate) fn finish(ports: &Ports, result: Result<(), Error>) -> Outcome {
    let (outcome, message, hint) = match result {
        Ok(()) => (Outcome::Done, String::new(), None),
        Err(error) => (error.outcome(), error.to_string(), error.hint()),
    };
    ports.log.record(EventKind::RunFinished { outcome, message, hint });
    outcome
}

async fn brought_up(request: &Request<'_>, ports: &Ports, approver: &dyn Approver, deadline: Deadline) -> Result<(), Error> {
    let planned = planned(request, ports, deadline).await?;
    preflight::permissions(&planned, &patient(ports, deadline)).await?;
    match approver.approve(&planned.plan).await {
        Approval::Declined => return Err(Error::Declined),
        Approval::Granted(by) => ports.log.record(EventKind::Approved { by }),
    }
    let writer = Writer { ports, settings: request.settings, deadline };
    ports.lead.take().await?;
    let result = tokio::select! {
        biased;
        why = ports.lead.lost() => Err(Error::LostTurn(why)),
        result = steps::carry_out(&planned, &writer) => result,
    };
    // In flight or failed, what the loop has begun it ends; nothing is deleted.
    ports.control.stop().await;
    ports.lead.release().await;
    result
}

/// Reaches the cluster, plans, and records the plan with what it defers.
async fn planned(request: &Request<'_>, ports: &Ports, deadline: Deadline) -> Result<Planned, Error> {
    let found = preflight::reach(ports, deadline).await?;
    preflight::identity(&ports.log, &found, request.saved.and_then(|plan| plan.cluster.as_ref()))?;
    preflight::images(request.content, request.distribution, &ports.log)?;
    let planned = plan::make(request.content, request.distribution, request.settings, &patient(ports, deadline))
        .await
        .map_err(|error| preflight::failed(&ports.log, preflight::PLAN, error))?;
    if let Some(saved) = request.saved {
        fresh(saved, &planned.plan, &ports.log)?;
    }
    preflight::passed(&ports.log, preflight::PLAN, summary(&planned.plan));
    ports.log.record(EventKind::Planned { plan: planned.plan.clone() });
    for event in deferrals(&planned.plan.deferred) {
        ports.log.record(event);
    }
    for remark in &planned.remarks {
        ports.log.record(EventKind::Warning { subject: None, reason: remark.reason.into(), message: remark.message.clone() });
    }
    Ok(planned)
}

/// One event for each definition that waits, with all kinds that any of its nodes waits for.
fn deferrals(deferred: &[Deferred]) -> Vec<EventKind> {
    let mut subjects: Vec<&Subject> = deferred.iter().map(|deferred| &deferred.subject).collect();
    subjects.dedup();
    let event = |subject: &Subject| {
        let own = || deferred.iter().filter(|deferred| deferred.subject == *subject);
        let missing: BTreeSet<_> = own().flat_map(|deferred| deferred.missing.iter().cloned()).collect();
        let from: BTreeSet<&str> = own().filter_map(|deferred| deferred.expected_from.as_deref()).collect();
        let from: Vec<&str> = from.into_iter().collect();
        EventKind::ChangeDeferred {
            subject: subject.clone(),
            missing: missing.into_iter().collect(),
            expected_from: (!from.is_empty()).then(|| from.join(", ")),
        }
    };
    subjects.into_iter().map(event).collect()
}

fn summary(plan: &Plan) -> String {
    use Action::{Configure, Create, Defer, Unchanged};
    let count = |action| plan.count(action);
    format!(
        "{} stages: {} to create, {} to configure, {} unchanged, {} deferred",
        plan.stages.len(),
        count(Create),
        count(Configure),
        count(Unchanged),
        count(Defer)
    )
}

/// Whether two plans are about the same objects: what is carried out is what the file shows. In which namespace an object is, is not
/// known before its kind is served.
fn same_objects(saved: &Plan, now: &Plan) -> bool {
    let named = |change: &Change| (change.subject.key.gvk.clone(), change.subject.key.name.clone());
    let objects = |plan: &Plan| plan.changes().map(named).collect::<BTreeSet<_>>();
    objects(saved) == objects(now)
}

/// A saved plan is carried out exactly or not at all: same inputs, and what the run itself writes has not moved, but for what the journal
/// knows to be written by a run of this plan that did not come to its end.
fn fresh(saved: &Plan, now: &Plan, log: &Log) -> Result<(), Error> {
    if saved.inputs != now.inputs {
        return Err(Error::Stale("the channel, the values or the settings are not those that it was made from".into()));
    }
    if saved.distribution != now.distribution || !same_objects(saved, now) {
        return Err(Error::Stale("its objects are not those of its channel: it was not saved so".into()));
    }
    for was in saved.changes().filter(|change| change.by == By::Run) {
        let key = &was.subject.key;
        let is = now.changes().find(|change| change.subject.key == *key);
        let same = is.is_some_and(|is| is.action == was.action && is.resource_version == was.resource_version);
        let done = || is.is_some_and(|is| is.action == Action::Unchanged) && log.read(|state| state.applied.contains_key(key));
        if !same && !done() {
            return Err(Error::Stale(format!("{} has changed since", was.subject)));
        }
    }
    Ok(())
}
