//! Removing definitions that the release does not have any more, once everything else is ready.

use plinth_api::ClusterKey;
use plinth_engine::ports::{Delete, Query, ReadError, WriteError};
use plinth_run::{Action, EventKind, Recorder, Subject};

use crate::{
    error::Error,
    gone,
    plan::{Leftover, Planned},
    write::Writer,
};

/// Deletes those of whose kinds nothing is left; says of the others why they stay. Gives how many went.
pub(super) async fn remove(planned: &Planned, writer: &Writer<'_>) -> Result<usize, Error> {
    let mut gone = 0;
    for leftover in &planned.leftovers {
        match instances(leftover, writer).await? {
            0 => {
                delete(leftover, writer).await?;
                gone += 1;
            }
            count => {
                let kind = leftover.kind.as_ref().map(ToString::to_string).unwrap_or_default();
                let message =
                    format!("the release does not have it any more; it stays for {count} objects of {kind} that others made");
                let subject = Some(Subject::root(leftover.key.clone()));
                writer.ports.log.record(EventKind::Warning { subject, reason: "NotRemoved".into(), message });
            }
        }
    }
    Ok(gone)
}

async fn instances(leftover: &Leftover, writer: &Writer<'_>) -> Result<usize, Error> {
    let Some(gvk) = leftover.kind.clone() else { return Ok(0) };
    let query = Query { cluster: ClusterKey::host(), gvk, namespace: None, selector: String::new() };
    match writer.ports.reader.list(&query).await {
        Ok(found) => Ok(found.len()),
        Err(ReadError::NotServed(_)) => Ok(0),
        Err(error) => Err(error.into()),
    }
}

async fn delete(leftover: &Leftover, writer: &Writer<'_>) -> Result<(), Error> {
    writer.may_write()?;
    let request = Delete { key: leftover.key.clone(), uid: leftover.uid.clone() };
    match writer.ports.applier.delete(&request).await {
        Ok(()) | Err(WriteError::NotFound { .. }) => {}
        Err(error) => return Err(error.into()),
    }
    // The loop lets go of it, and may end with the run.
    gone::wait(writer, &leftover.key, leftover.uid.as_deref()).await?;
    writer.ports.log.record(EventKind::ChangeApplied {
        subject: Subject::root(leftover.key.clone()),
        action: Action::Delete,
        digest: String::new(),
        generation: 0,
        result: None,
        uid: leftover.uid.clone(),
    });
    Ok(())
}
