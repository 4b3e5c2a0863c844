//! Waiting for an object that is being deleted.

use std::{sync::Arc, time::Duration};

use jiff::Timestamp;
use plinth_api::{Object, ObjectKey};
use plinth_engine::health::judge;
use plinth_run::{EventKind, Health, Recorder, Subject};

use crate::{error::Error, write::Writer};

/// How often an object that is being deleted is looked at.
const LOOK: Duration = Duration::from_millis(250);

/// Waits until the object with this UID is gone; says what it waits for.
pub(crate) async fn wait(writer: &Writer<'_>, key: &ObjectKey, uid: Option<&str>) -> Result<(), Error> {
    let clock = Arc::clone(writer.ports.log.clock());
    let mut quiet_since = clock.now();
    loop {
        let live = writer.read(key).await?;
        let Some(live) = live.filter(|live| live.uid() == uid) else { return Ok(()) };
        let message = waits_for(&live);
        writer.ports.log.record(EventKind::HealthChanged {
            subject: Subject::root(key.clone()),
            health: Health::Terminating,
            reason: "Finalizers".into(),
            message: message.clone(),
            causes: Vec::new(),
        });
        if writer.deadline.left(clock.as_ref()).is_zero() {
            let text = format!("{key} is still there after {}: {message}", writer.deadline.total());
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
    let message = judge(live).message;
    if message.is_empty() { "deletion was asked for".to_owned() } else { message }
}
