//! Moves that change kinds so that objects of them may break: the definitions say that it is permitted for as long as the move takes. What is
//! permitted once is not permitted for good.

use plinth_engine::naming::keys;
use plinth_run::{Action, Change};
use serde_json::{Value, json};

use crate::{error::Error, managed, plan::Planned, wanted::Wanted, write::Writer};

/// Field manager of the permission, apart from what the channel says: taking it back takes away nothing else.
const MANAGER: &str = "plinth.dev/breaking";

/// Permits it for a definition that is there and is about to be written.
pub(super) async fn allow(planned: &Planned, wanted: &Wanted, writer: &Writer<'_>) -> Result<(), Error> {
    let changes = |change: &Change| change.subject.key == wanted.key && change.action == Action::Configure;
    let says_so = wanted.object.annotation(keys::ALLOW_BREAKING_CHANGES) == Some("true");
    if !writer.settings.allow_breaking || says_so || !planned.plan.changes().any(changes) {
        return Ok(());
    }
    let permit = |object: &mut Value| object["metadata"]["annotations"] = json!({keys::ALLOW_BREAKING_CHANGES: "true"});
    writer.lend(&wanted.key, MANAGER, permit).await
}

/// Takes the permissions back, once everything of the release is ready.
pub(super) async fn done(planned: &Planned, writer: &Writer<'_>) -> Result<(), Error> {
    for built in &planned.built {
        let Some(wanted) = planned.wanted.iter().find(|wanted| wanted.key == built.key) else { continue };
        let Some(live) = writer.read(&wanted.key).await? else { continue };
        if managed::applied_by(&live, MANAGER).next().is_some() {
            writer.lend(&wanted.key, MANAGER, |_| {}).await?;
        }
    }
    Ok(())
}
