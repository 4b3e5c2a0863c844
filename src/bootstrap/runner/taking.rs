//! Taking over what other tools left, object by object, before anything of it is written: their fields become ours.

use plinth_api::ObjectKey;
use plinth_engine::{naming::keys, ports::WriteError};
use plinth_run::{EventKind, Recorder, Subject};

use crate::{adopt::adopted, error::Error, plan::Planned, wanted::Step, write::Writer};

/// How often an object is looked at again that changes meanwhile.
const ATTEMPTS: u32 = 5;

/// Makes the fields of other tools ours on everything that the release comes to and that is there.
pub(super) async fn take(planned: &Planned, writer: &Writer<'_>) -> Result<(), Error> {
    let own = planned.wanted.iter().filter(|wanted| wanted.step > Step::Controller).map(|wanted| (&wanted.key, keys::MANAGER));
    let places = planned.places.iter().filter(|place| place.is_named() && place.waits_for.is_empty());
    let below = places.map(|place| (&place.subject.key, keys::MANAGER_APPLYSET));
    for (key, heir) in own.chain(below) {
        adopt(key, heir, writer).await?;
    }
    Ok(())
}

async fn adopt(key: &ObjectKey, heir: &str, writer: &Writer<'_>) -> Result<(), Error> {
    let mut attempt = 0;
    loop {
        attempt += 1;
        let Some(live) = writer.read(key).await? else { return Ok(()) };
        let Some(object) = adopted(&live, heir) else { return Ok(()) };
        writer.may_write()?;
        match writer.ports.applier.replace(key, &object).await {
            Ok(_) => break,
            Err(WriteError::NotFound { .. }) => return Ok(()),
            Err(WriteError::Conflict { .. }) if attempt < ATTEMPTS => {}
            Err(error) => return Err(error.into()),
        }
    }
    let message = "the fields that other tools held are this platform's from here on".to_owned();
    writer.ports.log.record(EventKind::Warning {
        subject: Some(Subject::root(key.clone())),
        reason: "TakenOver".into(),
        message,
    });
    Ok(())
}
