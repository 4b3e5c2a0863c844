//! Discovery: which component versions and resources a Component leads to, as an answer in its status (openmcp.md section 3, OCM ADR
//! 0025).
//!
//! ```text
//! root of the Component ─ walk ─> graph ─ select ─> components and resources ─ extract ─> status.discovery
//! ```
//!
//! There is no interval: the answer changes when the Component does. A pass that fails leaves the last answer where it is.

mod extract;
mod form;
mod select;
#[cfg(test)]
mod tests;
mod walk;

use jiff::SignedDuration;
use plinth_api::delivery::DiscoverySpec;
use plinth_releasechannel::{Descriptor, descriptor::Resource};
use serde_json::Value;

use super::{
    found::is_verified,
    image,
    kind::Kind,
    reconcile::{Delivery, Pass, spec},
    report::{End, Failed, Reason},
};

/// How long selectors and expressions may take together.
const LONGEST: SignedDuration = SignedDuration::from_secs(5);

impl Delivery {
    /// Answers the question.
    pub(super) async fn discovery(&self, pass: &mut Pass<'_>) -> End {
        let spec: DiscoverySpec = spec(pass.object)?;
        let selectors = select::Selectors::read(&spec)?;
        let extract = extract::Extract::read(spec.extract.as_ref())?;
        let parent = self.parent(pass, Kind::Component, &spec.component_ref.name, Reason::GetComponentVersionFailed).await?;
        let credentials = self.credentials(pass, Some(&parent)).await?;
        let root = self.located(parent.status().get("component"), &credentials).await?;
        let version = root.version.clone();
        let walk = walk::Walk {
            repository: root.repository.clone(),
            is_verified: is_verified(&parent),
            goes_on: spec.on_resolution_error.as_deref() == Some("Ignore"),
            only: selectors.only(),
        };
        let (graph, unresolved) = walk.from(root).await?;

        let specification = walk.repository.specification();
        let access = |component: &Descriptor, resource: &Resource| {
            let at = plinth_releasechannel::ComponentVersion::new(component.name.as_str(), component.version.as_str());
            image::locate(&at, resource, &specification, &*self.images).access
        };
        let began = self.world.clock.now();
        let is_over = || self.world.clock.now().duration_since(began) > LONGEST;
        let (found, components) = match selectors.select(&graph, &is_over)? {
            Ok(selected) => (extracted(pass, &extract, &selected, &access, &is_over)?, selected.len()),
            Err(empty) => {
                pass.reason = empty.as_str();
                (Value::Array(Vec::new()), 0)
            }
        };
        pass.fields.insert("discovery".into(), found);
        Ok(conclude(pass, unresolved, &format!("found {components} components from {version}")))
    }
}

/// A result that does not fit is none: an older one would be taken for the answer.
fn extracted(
    pass: &mut Pass<'_>,
    extract: &extract::Extract,
    selected: &select::Selected,
    access: &extract::AccessOf<'_>,
    is_over: &dyn Fn() -> bool,
) -> Result<Value, Failed> {
    let result = extract.of(selected, access, is_over);
    if result.as_ref().is_err_and(|failed| failed.reason == Reason::PayloadTooLarge) {
        pass.fields.remove("discovery");
    }
    result
}

/// Says what is missing from the answer.
fn conclude(pass: &mut Pass<'_>, unresolved: Vec<Value>, message: &str) -> String {
    let count = unresolved.len();
    if count == 0 {
        pass.fields.remove("unresolved");
        return message.to_owned();
    }
    pass.fields.insert("unresolved".into(), Value::Array(unresolved));
    pass.reason = "PartiallyResolved";
    format!("{message}; {count} component versions could not be read")
}
