//! Going back to lower versions of components: their Component objects refuse that unless they say otherwise (ocm.md section 16,
//! `downgradePolicy`), and the graphs do not say it. The release lock decides, so the run says it for as long as that takes.

use plinth_api::Object;
use plinth_releasechannel::versions::{self, Version};
use serde_json::json;

use crate::{
    error::Error,
    managed,
    plan::{Built, Place, Planned},
    write::Writer,
};

/// Field manager of the permission, apart from what the graph applies: taking it back takes away nothing else.
const MANAGER: &str = "plinth.dev/rollback";

/// Permits the Components of a definition's instances to go down, where the release has lower versions of them.
pub(super) async fn allow(planned: &Planned, built: &Built, writer: &Writer<'_>) -> Result<(), Error> {
    for (place, wanted) in pinned(planned).filter(|(place, _)| place.rgd == built.graph.name) {
        let Some(live) = writer.read(&place.subject.key).await? else { continue };
        let is_lower = in_use(&live).is_some_and(|in_use| is_below(wanted, in_use));
        if is_lower && live.spec()["downgradePolicy"] != "Allow" {
            writer.lend(&place.subject.key, MANAGER, |object| object["spec"] = json!({"downgradePolicy": "Allow"})).await?;
        }
    }
    Ok(())
}

/// Takes the permissions back, once the Components have what is wanted.
pub(super) async fn done(planned: &Planned, writer: &Writer<'_>) -> Result<(), Error> {
    for (place, wanted) in pinned(planned) {
        let Some(live) = writer.read(&place.subject.key).await? else { continue };
        let is_permitted = managed::applied_by(&live, MANAGER).next().is_some();
        if is_permitted && in_use(&live) == Some(wanted) {
            writer.lend(&place.subject.key, MANAGER, |_| {}).await?;
        }
    }
    Ok(())
}

/// Components that are known by name and ask for one version.
fn pinned(planned: &Planned) -> impl Iterator<Item = (&Place, &str)> {
    let components = planned.places.iter().filter(|place| place.is_delivery("Component") && place.is_named());
    components.filter_map(|place| {
        let version = place.object.spec()["semver"].as_str().filter(|version| versions::is_exact(version))?;
        Some((place, version))
    })
}

fn in_use(component: &Object) -> Option<&str> {
    component.status()["component"]["version"].as_str()
}

fn is_below(one: &str, other: &str) -> bool {
    match (Version::parse(one), Version::parse(other)) {
        (Some(one), Some(other)) => one.precedence(&other).is_lt(),
        _ => false,
    }
}
