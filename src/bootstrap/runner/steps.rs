//! The run's own steps, each with what it waits for.

use std::{sync::Arc, time::Duration};

use plinth_api::{ClusterKey, Object, ObjectKey};
use plinth_engine::graph::Graph;
use plinth_run::{EventKind, Health, Observer, Outcome, Recorder, StageId};
use serde_json::Value;

use super::{downgrade, follow, leftovers, moving, moving::Patience, permitted, taking};
use crate::{
    error::Error,
    plan::Planned,
    release,
    wanted::{self, Step, Wanted},
    write::Writer,
};

/// How often a CRD that was just written is looked at. No watch runs yet, and it takes a second at most.
const LOOK: Duration = Duration::from_millis(100);

/// Writes, starts the loop, and follows the platform until it is ready.
pub(super) async fn carry_out(planned: &Planned, writer: &Writer<'_>) -> Result<(), Error> {
    step(planned, writer, Step::Foundation).await?;
    if writer.settings.take_over {
        taking::take(planned, writer).await?;
    }
    let observer = writer.ports.control.start().await.map_err(Error::Loop)?;
    step(planned, writer, Step::Controller).await?;
    if moving::is_move(planned) {
        moving::definitions(planned, writer, Patience::Run).await?;
    } else {
        step(planned, writer, Step::Definitions).await?;
    }
    if let Some(root) = planned.built.last() {
        downgrade::allow(planned, root, writer).await?;
    }
    step(planned, writer, Step::Instance).await?;
    writer.ports.control.hand_over().await;
    ready(planned, writer, observer).await?;
    // A controller that keeps the platform from here on does that too.
    if writer.settings.controller.is_none() {
        downgrade::done(planned, writer).await?;
        permitted::done(planned, writer).await?;
        leftovers::remove(planned, writer).await?;
        if writer.settings.asked.is_some() {
            release::came_to_its_end(writer).await?;
        }
    }
    Ok(())
}

/// One step: all its objects, then what the next step needs.
pub(super) async fn step(planned: &Planned, writer: &Writer<'_>, step: Step) -> Result<(), Error> {
    let objects: Vec<&Wanted> = planned.wanted.iter().filter(|wanted| wanted.step == step).collect();
    let Some(stage) = objects.first().and_then(|first| planned.plan.stage_of(&first.key)) else { return Ok(()) };
    start(planned, writer, stage);
    for wanted in &objects {
        if step == Step::Definitions {
            permitted::allow(planned, wanted, writer).await?;
        }
        writer.bring(wanted).await?;
    }
    match step {
        Step::Foundation => {
            for wanted in objects.iter().filter(|wanted| wanted.key.gvk == wanted::crd_kind()) {
                established(&wanted.key, writer, None).await?;
            }
        }
        Step::Definitions => {
            for built in &planned.built {
                established(&crd_of(&built.graph), writer, Some(&built.key)).await?;
            }
        }
        // Its pods start while the run goes on.
        Step::Controller => {}
        // The instance is ready when everything below it is: the stage stays open until then.
        Step::Instance => return Ok(()),
    }
    finish(writer, stage, Outcome::Done);
    Ok(())
}

/// Waits until a CRD is served. `definition` is who makes it: when the loop refuses that, waiting is over.
pub(super) async fn established(crd: &ObjectKey, writer: &Writer<'_>, definition: Option<&ObjectKey>) -> Result<(), Error> {
    let clock = Arc::clone(writer.ports.log.clock());
    loop {
        if let Some(live) = writer.read(crd).await? {
            writer.judged(crd, &live);
            if is_established(&live) {
                return Ok(());
            }
        }
        if let Some(definition) = definition {
            refused(definition, writer)?;
        }
        if writer.deadline.left(clock.as_ref()).is_zero() {
            return Err(Error::Deadline(format!("{crd} was not served within {}", writer.deadline.total())));
        }
        clock.sleep(LOOK).await;
    }
}

fn refused(definition: &ObjectKey, writer: &Writer<'_>) -> Result<(), Error> {
    writer.ports.log.read(|state| match state.subjects.get(definition) {
        Some(known) if known.health == Some(Health::Failed) => {
            Err(Error::Failed(format!("{definition} is refused: {}", known.why())))
        }
        _ => Ok(()),
    })
}

fn is_established(crd: &Object) -> bool {
    let conditions = crd.at(&["status", "conditions"]).and_then(Value::as_array);
    let holds = |condition: &Value| condition["type"] == "Established" && condition["status"] == "True";
    conditions.is_some_and(|conditions| conditions.iter().any(holds))
}

/// The key of a graph's generated CRD.
pub(crate) fn crd_of(graph: &Graph) -> ObjectKey {
    let name = format!("{}.{}", graph.instance.plural, graph.instance.gvk.group);
    ObjectKey { cluster: ClusterKey::host(), gvk: wanted::crd_kind(), namespace: None, name }
}

/// Follows the platform; stages of the loop begin and end as their objects do.
async fn ready(planned: &Planned, writer: &Writer<'_>, observer: Arc<dyn Observer>) -> Result<(), Error> {
    let mut follow = follow::Follow::new(planned, writer);
    let result = follow.until_ready(observer.as_ref()).await;
    let outcome = result.as_ref().map_or_else(Error::outcome, |()| Outcome::Done);
    follow.close_stages(outcome);
    result
}

/// Records that a stage begins.
pub(super) fn start(planned: &Planned, writer: &Writer<'_>, stage: StageId) {
    let title = planned.plan.stages.iter().find(|known| known.id == stage).map(|known| known.title.clone());
    writer.ports.log.record(EventKind::StageStarted { stage, title: title.unwrap_or_default() });
}

/// Records that a stage ends.
pub(super) fn finish(writer: &Writer<'_>, stage: StageId, outcome: Outcome) {
    writer.ports.log.record(EventKind::StageFinished { stage, outcome });
}
