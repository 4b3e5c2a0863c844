//! Moves that change kinds so that objects of them may break: the definitions say that it is permitted for as long as the move takes. What is
//! permitted once is not permitted for good.

use plinth_api::Object;
use plinth_engine::{naming::keys, ports::Apply};
use plinth_run::{Action, Change};
use serde_json::json;

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
    say(wanted, true, writer).await
}

/// Takes the permissions back, once everything of the release is ready.
pub(super) async fn done(planned: &Planned, writer: &Writer<'_>) -> Result<(), Error> {
    for built in &planned.built {
        let Some(wanted) = planned.wanted.iter().find(|wanted| wanted.key == built.key) else { continue };
        let Some(live) = writer.read(&wanted.key).await? else { continue };
        if managed::applied_by(&live, MANAGER).next().is_some() {
            say(wanted, false, writer).await?;
        }
    }
    Ok(())
}

async fn say(wanted: &Wanted, is_permitted: bool, writer: &Writer<'_>) -> Result<(), Error> {
    let key = wanted.key.clone();
    let mut object = json!({"apiVersion": key.gvk.api_version(), "kind": key.gvk.kind, "metadata": {"name": key.name}});
    if is_permitted {
        object["metadata"]["annotations"] = json!({keys::ALLOW_BREAKING_CHANGES: "true"});
    }
    let object = Object::from_value(object).expect("a JSON object was just written");
    let apply = Apply { key, object, manager: MANAGER.to_owned(), force: true, subresource: None };
    writer.send(&apply).await.map(drop)
}
