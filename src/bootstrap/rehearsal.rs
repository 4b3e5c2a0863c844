//! A rehearsal: the whole bring-up in a control plane that is made for it, and what would be missing elsewhere.
//!
//! It is [`runner::up`](crate::runner::up) with three differences. Missing permissions are noted and the run goes on, so that
//! one rehearsal finds everything. Nobody waits for a deadline: when nothing will happen any more ([`Venue::still`]), it is
//! over. And at its end the plane is looked over for what was asked for in vain.

mod survey;
mod verdict;

#[cfg(test)]
mod tests;

use std::{
    collections::BTreeSet,
    sync::{Arc, Mutex, PoisonError},
};

use plinth_api::Permission;
use plinth_engine::ports::{Answer, ReadError};
use plinth_releasechannel::localization::Localized;
use plinth_run::{ClusterIdentity, EventKind, Outcome, Recorder, Verb};
use serde_json::Value;

use crate::{
    content::Content,
    ports::{Access, Approver, Ports},
    runner::{self, Request},
};

pub use verdict::{MissingImage, MissingKind, Trouble, Unready, Unresolved, Verdict};

/// Where a rehearsal takes place.
pub trait Venue: Send + Sync {
    /// Resolves once neither the plane nor the loop will do anything more by itself.
    fn still(&self) -> Answer<'_, ()>;

    /// Whether an image can be pulled where the platform is to run.
    fn has_image(&self, reference: &str) -> bool;

    /// What those who play the cluster's programs wanted and did not get; where all `is_over`, also what they waited for in vain.
    fn mishaps(&self, is_over: bool) -> Vec<String>;
}

/// Rehearses a bring-up. Everything that happens is in the log; what is missing is in the verdict.
pub async fn rehearse(request: &Request<'_>, ports: &Ports, approver: &dyn Approver, venue: &dyn Venue) -> Verdict {
    let noted = Arc::new(Noted { inner: Arc::clone(&ports.access), missing: Mutex::default() });
    let lenient = Ports { access: noted.clone(), ..ports.clone() };
    let ended = tokio::select! {
        biased;
        outcome = runner::run(Verb::Rehearse, request, &lenient, approver) => Some(outcome),
        () = venue.still() => None,
    };
    // A graph may call ready what has not started yet, and never will: without readyWhen whatever is there is ready.
    if ended == Some(Outcome::Done) && survey::is_under_way(ports.reader.as_ref()).await {
        venue.still().await;
    }
    let found = survey::survey(ports, venue).await;
    // A run that was refused ended before there was much to match.
    let mishaps = venue.mishaps(ended.is_none_or(|outcome| outcome == Outcome::Done));
    ports.control.stop().await;
    let state = ports.log.state();
    let mut verdict = verdict::judge(ended, &state, found, &noted.missing());
    verdict.warnings.extend(mishaps.into_iter().map(|mishap| format!("scenario: {mishap}")));
    if ended.is_none() {
        "nothing will happen any more, and the platform is not ready".clone_into(&mut verdict.message);
        let message = verdict.message.clone();
        ports.log.record(EventKind::RunFinished { outcome: verdict.outcome, message, hint: None });
    }
    verdict
}

/// The images of a channel, as references that a container may name: those in the mirror where there is one, else those of the
/// lock, by tag and by the digest that the descriptor has.
pub fn images(content: &Content) -> BTreeSet<String> {
    let localization = content.images.as_ref();
    if localization.mirror().is_some() {
        let there = |image: &&Localized| localization.of_resource(&image.component, &image.resource, &image.extra).is_some();
        return localization.images().iter().filter(there).map(|image| image.mirrored.clone()).collect();
    }
    let resources = content.lock.components.iter().flat_map(|component| &component.resources);
    resources
        .filter_map(|resource| {
            let reference = resource.access.get("imageReference").and_then(Value::as_str)?;
            let digest = resource.digest.as_ref().filter(|_| !reference.contains('@'));
            Some(std::iter::once(reference.to_owned()).chain(digest.map(|digest| format!("{reference}@{digest}"))))
        })
        .flatten()
        .collect()
}

/// Notes every permission that is missing, and lets the run go on.
struct Noted {
    inner: Arc<dyn Access>,
    missing: Mutex<BTreeSet<Permission>>,
}

impl Noted {
    fn missing(&self) -> BTreeSet<Permission> {
        self.missing.lock().unwrap_or_else(PoisonError::into_inner).clone()
    }
}

impl Access for Noted {
    fn identity(&self) -> Answer<'_, Result<ClusterIdentity, ReadError>> {
        self.inner.identity()
    }

    fn can_i<'a>(&'a self, permission: &'a Permission) -> Answer<'a, Result<bool, ReadError>> {
        Box::pin(async move {
            let has = self.inner.can_i(permission).await?;
            // Nobody lacks everything: what is needed is asked for next.
            if *permission == Permission::everything() {
                return Ok(has);
            }
            if !has {
                self.missing.lock().unwrap_or_else(PoisonError::into_inner).insert(permission.clone());
            }
            Ok(true)
        })
    }
}

/// What the run ended with counts, unless more is known.
fn worse(ended: Option<Outcome>) -> Outcome {
    ended.unwrap_or(Outcome::Deadline)
}
