//! Bringing what the run writes itself to what is wanted, and no more: what comes of it the loop looks after, which runs anyway.

use std::{collections::BTreeSet, time::Duration};

use plinth_api::Permission;
use plinth_run::plan::Writer as By;

use super::{Request, downgrade, leftovers, moving, moving::Patience, permitted, steps};
use crate::{
    error::Error,
    plan::{self, Planned},
    ports::Ports,
    preflight::{self, Deadline},
    release, rights,
    wanted::Step,
    write::Writer,
};

/// How long a definition's instances are waited for; whoever keeps the platform comes back when something of them changes.
const NEAR: Duration = Duration::from_secs(2);

/// What was done.
#[derive(Clone, Debug)]
pub struct Kept {
    /// The plan, which was carried out.
    pub planned: Planned,
    /// How many objects the run itself wrote.
    pub writes: usize,
}

/// Plans, and writes where something is not as wanted. Nothing is written before everything needed is known to be there: images, and
/// the rights for all that the graphs come to.
pub async fn keep(request: &Request<'_>, ports: &Ports) -> Result<Kept, Error> {
    let deadline = Deadline::after(ports.log.clock().as_ref(), request.settings.timeout);
    preflight::images(request.content, request.distribution, &ports.log)?;
    let planned = plan::make(request.content, request.distribution, request.settings, ports).await?;
    let writes = planned.plan.changes().filter(|change| change.by == By::Run && change.action.is_write()).count();
    let writer = Writer { ports, settings: request.settings, deadline };
    if writes > 0 {
        preflight::allowed(&needed(&planned), ports).await?;
        steps::step(&planned, &writer, Step::Foundation).await?;
        if moving::is_move(&planned) {
            moving::definitions(&planned, &writer, Patience::Look(NEAR)).await?;
        } else {
            steps::step(&planned, &writer, Step::Definitions).await?;
        }
        steps::step(&planned, &writer, Step::Instance).await?;
    }
    Ok(Kept { planned, writes })
}

/// Ends a move once the platform is ready: what permitted it is taken back, and what the release does not have any more goes. Gives how
/// many definitions went.
pub async fn end(request: &Request<'_>, planned: &Planned, ports: &Ports) -> Result<usize, Error> {
    let deadline = Deadline::after(ports.log.clock().as_ref(), request.settings.timeout);
    let writer = Writer { ports, settings: request.settings, deadline };
    downgrade::done(planned, &writer).await?;
    permitted::done(planned, &writer).await?;
    let gone = leftovers::remove(planned, &writer).await?;
    release::came_to_its_end(&writer).await?;
    Ok(gone)
}

/// The rights of the loop, one by one: whoever keeps a platform has them by name, and not for all objects of a kind.
fn needed(planned: &Planned) -> BTreeSet<Permission> {
    planned.plan.rights.iter().flat_map(rights::permissions).collect()
}
