//! Moving a platform that is there: definition by definition in the order of the graphs, each only when everything of the one before is
//! ready. One that does not turn ready stops the rest, which stays as it was.

#[cfg(test)]
mod tests;

use std::{collections::BTreeMap, time::Duration};

use jiff::Timestamp;
use plinth_api::ObjectKey;
use plinth_run::{Action, EventKind, Health, Recorder, Subject};

use super::{crd_of, follow::ready_condition, steps};
use crate::{
    error::Error,
    plan::{Built, Planned},
    ports::Stand,
    wanted::{Step, Wanted},
    write::Writer,
};

/// How often it is asked whether a definition's instances have moved.
const LOOK: Duration = Duration::from_millis(250);

/// How long a definition's instances may take.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(super) enum Patience {
    /// Until the run's own deadline, or until something has failed for longer than its grace.
    Run,
    /// Not at all, but for what is on its way already: whoever comes back later looks again.
    Look(Duration),
}

/// Whether the platform is there and its definitions change: then they move one after the other.
pub(super) fn is_move(planned: &Planned) -> bool {
    let standing: BTreeMap<&ObjectKey, Action> =
        planned.plan.changes().map(|change| (&change.subject.key, change.action)).collect();
    let is = |key: &ObjectKey, action: Action| standing.get(key) == Some(&action);
    let is_there = !is(&planned.instance, Action::Create);
    is_there && planned.built.iter().any(|built| is(&built.key, Action::Configure) || is(&built.key, Action::Create))
}

/// Writes the definitions, each when the one before is ready. Where nothing of a definition changes, it has to be ready all the same: the
/// move may have stopped there before.
pub(super) async fn definitions(planned: &Planned, writer: &Writer<'_>, patience: Patience) -> Result<(), Error> {
    let objects: Vec<&Wanted> = planned.wanted.iter().filter(|wanted| wanted.step == Step::Definitions).collect();
    let Some(stage) = objects.first().and_then(|first| planned.plan.stage_of(&first.key)) else { return Ok(()) };
    steps::start(planned, writer, stage);
    for wanted in &objects {
        let built = planned.built.iter().find(|built| built.key == wanted.key);
        let Some(built) = built else {
            writer.bring(wanted).await?;
            continue;
        };
        super::downgrade::allow(planned, built, writer).await?;
        super::permitted::allow(planned, wanted, writer).await?;
        writer.bring(wanted).await?;
        steps::established(&crd_of(&built.graph), writer, Some(&built.key)).await?;
        // What the top-level definition makes is followed as a whole.
        if planned.built.last().is_some_and(|root| root.key != built.key) {
            ready(planned, built, writer, patience).await?;
        }
    }
    steps::finish(writer, stage, plinth_run::Outcome::Done);
    Ok(())
}

/// Waits until a definition is in use as it is now, and all its instances are ready by it. One that waits for kinds holds nothing up: what
/// brings them may come later.
async fn ready(planned: &Planned, built: &Built, writer: &Writer<'_>, patience: Patience) -> Result<(), Error> {
    let clock = writer.ports.log.clock().clone();
    let (began, mut failing) = (clock.now(), None);
    loop {
        let why = match verdict(built, writer).await? {
            Verdict::Waits => return Ok(()),
            Verdict::Refused(why) => return Err(stopped(planned, built, why, false)),
            Verdict::Unseen => format!("{} is not looked at yet", built.key),
            Verdict::InUse if planned.begun.not_awaited.contains(&built.key.name) => {
                not_awaited(built, writer, patience);
                return Ok(());
            }
            Verdict::InUse => match writer.ports.control.stands(&built.graph.instance.gvk).await {
                Stand::Ready => return Ok(()),
                Stand::Moving { why, has_failed } => {
                    failing = if has_failed { failing.or_else(|| Some(clock.now())) } else { None };
                    why
                }
            },
        };
        let is_over = |since: Timestamp, limit: Duration| {
            Duration::try_from(clock.now().duration_since(since)).unwrap_or_default() >= limit
        };
        let gives_up = match patience {
            Patience::Look(limit) => is_over(began, limit),
            Patience::Run => failing.is_some_and(|since| is_over(since, writer.settings.grace)),
        };
        if gives_up {
            return Err(stopped(planned, built, why, false));
        }
        if writer.deadline.left(clock.as_ref()).is_zero() {
            return Err(stopped(planned, built, format!("{why}; not within {}", writer.deadline.total()), true));
        }
        clock.sleep(LOOK).await;
    }
}

/// Says that it goes on without waiting; whoever looks again and again says it once at most.
fn not_awaited(built: &Built, writer: &Writer<'_>, patience: Patience) {
    if patience != Patience::Run {
        return;
    }
    let message = "it was not ready before this move, which may mend it later: its instances are not waited for".to_owned();
    let subject = Some(Subject::root(built.key.clone()));
    writer.ports.log.record(EventKind::Warning { subject, reason: "NotAwaited".into(), message });
}

/// What the loop says of a definition as it is now.
enum Verdict {
    /// It has not looked since the definition was written.
    Unseen,
    /// The graph is in use.
    InUse,
    /// Kinds are not served yet.
    Waits,
    /// It is refused, and why.
    Refused(String),
}

async fn verdict(built: &Built, writer: &Writer<'_>) -> Result<Verdict, Error> {
    let Some(live) = writer.read(&built.key).await? else { return Ok(Verdict::Unseen) };
    let Some(ready) = ready_condition(&live).filter(|ready| ready["observedGeneration"].as_i64() >= Some(live.generation()))
    else {
        return Ok(Verdict::Unseen);
    };
    Ok(match ready["status"].as_str() {
        Some("True") => Verdict::InUse,
        Some("False") => {
            let known = writer.ports.log.read(|state| state.subjects.get(&built.key).map(|known| (known.health, known.why())));
            let said = plinth_engine::health::judge(&live).message;
            Verdict::Refused(known.filter(|(health, _)| *health == Some(Health::Failed)).map_or(said, |(_, why)| why))
        }
        _ => Verdict::Waits,
    })
}

fn stopped(planned: &Planned, built: &Built, why: String, is_late: bool) -> Error {
    let at = planned.built.iter().position(|other| other.key == built.key).unwrap_or_default();
    let rest = planned.built[at + 1..].iter().map(|built| built.key.name.clone()).collect();
    let component = built.rgd.component.clone();
    Error::Stopped { component, definition: built.key.name.clone(), why, rest, is_late }
}
