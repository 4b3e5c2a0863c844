//! Kinds that are installed and would change so that objects of them break: found before anything is written.

use std::collections::BTreeMap;

use plinth_api::Object;
use plinth_engine::{
    naming::keys,
    ports::{ReadError, Reader},
    schema::compat::{self, Change, ChangeKind},
};

use super::{Remark, compile::Built};
use crate::{error::Error, runner::crd_of};

/// The path of a field in an object: that in its schema without the schema's own words.
fn field(change: &Change) -> String {
    let path = if change.kind == ChangeKind::TypeChanged { change.path.trim_end_matches(".type") } else { &change.path };
    let fields = path.replace(".properties.", ".").replace(".items", "[]");
    fields.trim_start_matches('.').to_owned()
}

/// Holds the kinds that the definitions generate against those that are installed, with the comparison that the loop refuses by. What its
/// author permits is told; a kind of somebody else is the loop's affair.
pub(super) async fn changes(built: &[Built], allowed: bool, reader: &dyn Reader) -> Result<Vec<Remark>, Error> {
    let (mut refused, mut remarks) = (BTreeMap::new(), Vec::new());
    for built in built {
        let live = match reader.get(&crd_of(&built.graph)).await {
            Ok(live) => live.filter(is_generated),
            // Who may not read definitions of kinds learns of it from the loop.
            Err(ReadError::NotServed(_) | ReadError::Forbidden { .. }) => None,
            Err(error) => return Err(error.into()),
        };
        let Some(live) = live else { continue };
        let changes = compat::compare_crds(&live, &built.graph.crd).breaking;
        if changes.is_empty() {
            continue;
        }
        let changes: Vec<String> = changes.iter().map(|change| format!("{}: {}", field(change), change.summary())).collect();
        if allowed || built.rgd.object.annotation(keys::ALLOW_BREAKING_CHANGES) == Some("true") {
            let message =
                format!("{} changes {} so that objects of it may break: {}", built.key, live.name(), changes.join("; "));
            remarks.push(Remark { reason: "BreakingChange", message });
        } else {
            refused.insert(built.key.to_string(), changes);
        }
    }
    if refused.is_empty() { Ok(remarks) } else { Err(Error::Breaking(refused)) }
}

fn is_generated(crd: &Object) -> bool {
    crd.label(keys::OWNED) == Some("true") && !crd.is_terminating()
}
