//! Taking a platform down: instances before definitions, everything in reverse, and a proof that nothing is left.
//!
//! What belongs to a platform is found by its label on the cluster, not by a journal, so that it works from any machine.

mod carry;
mod content;
mod owners;
mod scope;
mod survey;
#[cfg(test)]
mod tests;

use std::collections::BTreeSet;

use plinth_api::{Permission, platform::API_VERSION};
use plinth_engine::schema::{Lookup, SchemaSource};
use plinth_run::{Action, Change, EventKind, Outcome, Plan, Recorder, RunId, Stage, StageId, Subject, Verb, plan::Writer as By};

use crate::{
    error::Error,
    patient::patient,
    ports::{Approval, Approver, Ports},
    preflight::{self, Deadline},
    runner,
    settings::Settings,
    write::Writer,
};

pub use scope::Scope;
pub use survey::Survey;
pub(crate) use survey::{Found, ask, defined, list, own_kinds, tops, users_first, written_kinds};

/// Removes the platform that `settings` name. Everything that happens is in the log, the outcome too.
pub async fn down(settings: &Settings, resumed: Option<RunId>, ports: &Ports, approver: &dyn Approver) -> Outcome {
    let deadline = Deadline::after(ports.log.clock().as_ref(), settings.timeout);
    ports.log.record(EventKind::RunStarted {
        verb: Verb::Down,
        platform: settings.platform.clone(),
        source: String::new(),
        cluster: None,
        resumed,
    });
    let result = taken_down(settings, ports, approver, deadline).await;
    runner::finish(ports, result)
}

async fn taken_down(settings: &Settings, ports: &Ports, approver: &dyn Approver, deadline: Deadline) -> Result<(), Error> {
    let found = preflight::reach(ports, deadline).await?;
    preflight::identity(&ports.log, &found, None)?;
    let plain = ports;
    let ports = &patient(plain, deadline);
    let survey = survey::look(&settings.platform, plain, ports).await?;
    let mut plan = plan(&survey, settings);
    plan.cluster = Some(found);
    ports.log.record(EventKind::Planned { plan: plan.clone() });
    if let Some(message) = scope::unseen(&survey.scope.unseen) {
        ports.log.record(EventKind::Warning { subject: None, reason: "NotLookedAt".into(), message });
    }
    allowed(&survey, ports).await?;
    match approver.approve(&plan).await {
        Approval::Declined => return Err(Error::Declined),
        Approval::Granted(by) => ports.log.record(EventKind::Approved { by }),
    }
    if survey.all().next().is_some() {
        ports.lead.take().await?;
    }
    let carry = carry::Carry { survey: &survey, plan: &plan, plain, writer: &Writer { ports, settings, deadline } };
    let result = carry.out().await;
    ports.control.stop().await;
    ports.lead.release().await;
    let kept = result?;
    carry.prove(kept).await
}

/// What will be deleted, in which order.
pub fn plan(survey: &Survey, settings: &Settings) -> Plan {
    let steps = [
        ("controller", &survey.controller, "it is gone, and this run does its work"),
        ("instances", &survey.instances, "they are gone, and everything below them"),
        ("orphans", &survey.orphans, "they are gone"),
        ("definitions", &survey.definitions, "they are gone"),
        ("generated kinds", &survey.generated, "they are not served any more"),
        ("rights and records", &survey.rights, "they are gone"),
        ("foundation", &survey.foundation, "they are gone"),
    ];
    let stages = steps.into_iter().filter(|(_, found, _)| !found.is_empty()).zip(1..).map(|((title, found, until), id)| Stage {
        id: StageId(id),
        title: title.into(),
        changes: found.iter().map(change).collect(),
        until: until.into(),
    });
    Plan {
        api_version: API_VERSION.into(),
        kind: "Plan".into(),
        platform: settings.platform.clone(),
        stages: stages.collect(),
        ..Plan::default()
    }
}

fn change(found: &survey::Found) -> Change {
    Change {
        subject: Subject::root(found.key.clone()),
        action: if found.stays.is_some() { Action::Skip } else { Action::Delete },
        by: By::Run,
        digest: String::new(),
        resource_version: found.object.resource_version().map(str::to_owned),
        fields: Vec::new(),
        note: found.note.clone(),
    }
}

/// Asks for the permissions before the first deletion.
async fn allowed(survey: &Survey, ports: &Ports) -> Result<(), Error> {
    let kinds: Vec<_> = survey.all().map(|found| found.key.gvk.clone()).collect::<BTreeSet<_>>().into_iter().collect();
    let served = ports.schemas.ensure(&kinds).await?;
    let permissions =
        survey.all().filter(|found| found.stays.is_none()).filter_map(|found| permission(found, served.as_ref())).collect();
    preflight::allowed(&permissions, ports).await
}

fn permission(found: &survey::Found, served: &dyn SchemaSource) -> Option<Permission> {
    let Lookup::Served(kind) = served.kind(&found.key.gvk) else { return None };
    Some(Permission {
        group: found.key.gvk.group.clone(),
        resource: kind.plural.clone(),
        verb: "delete".into(),
        namespace: found.key.namespace.clone(),
        name: None,
    })
}
