//! Bringing what the run writes itself to what is wanted, and no more: what comes of it the loop looks after, which runs anyway.

use std::collections::BTreeSet;

use plinth_api::Permission;
use plinth_run::plan::Writer as By;

use super::{Request, steps};
use crate::{
    error::Error,
    plan::{self, Planned},
    ports::Ports,
    preflight::{self, Deadline},
    rights,
    wanted::{self, Step},
    write::Writer,
};

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
        for step in [Step::Foundation, Step::Definitions, Step::Instance] {
            steps::step(&planned, &writer, step).await?;
        }
    }
    // What a controller that starts anew knows the platform's images from.
    writer.bring(&wanted::lock(request.settings, &request.content.lock)?).await?;
    Ok(Kept { planned, writes })
}

/// The rights of the loop, one by one: whoever keeps a platform has them by name, and not for all objects of a kind.
fn needed(planned: &Planned) -> BTreeSet<Permission> {
    planned.plan.rights.iter().flat_map(rights::permissions).collect()
}
