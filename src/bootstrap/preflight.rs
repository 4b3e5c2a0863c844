//! Checks before the first write. All run; each has an id, an answer, and a hint where it fails.

mod pages;

use std::{collections::BTreeSet, sync::Arc, time::Duration};

use futures::{StreamExt, stream};
use jiff::{SignedDuration, Timestamp};
use plinth_api::Permission;
use plinth_engine::ports::{Clock, ReadError};
use plinth_releasechannel::ComponentVersion;
use plinth_run::{CheckVerdict, ClusterIdentity, EventKind, Log, Recorder, duration};

pub use pages::{PAGES, Page};

use crate::{content::Content, distribution::Distribution, error::Error, plan::Planned, ports::Ports};

/// The cluster answers.
pub const REACHABLE: &str = "cluster-reachable";
/// It is the cluster that the journal (or the plan) was made for.
pub const IDENTITY: &str = "cluster-identity";
/// Every image of the distribution is in the mirror, by digest.
pub const IMAGES: &str = "images-in-mirror";
/// The release lock has all that the graphs ask for, and every definition compiles.
pub const PLAN: &str = "plan";
/// Our identity may do what the plan needs.
pub const PERMISSIONS: &str = "permissions";
/// After a removal: nothing labelled is left.
pub const NOTHING_LEFT: &str = "nothing-left";

/// How many questions are open at a time.
pub(crate) const AT_ONCE: usize = 16;
/// First wait between two attempts to reach the cluster; it doubles.
const FIRST_WAIT: Duration = Duration::from_secs(1);
/// Longest wait between two attempts.
const LONGEST_WAIT: Duration = Duration::from_secs(15);

/// When a run gives up.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct Deadline {
    /// The run's beginning.
    pub from: Timestamp,
    /// Its end.
    pub at: Timestamp,
}

impl Deadline {
    /// `timeout` from now.
    pub fn after(clock: &dyn Clock, timeout: Duration) -> Self {
        let from = clock.now();
        let timeout = SignedDuration::try_from(timeout).unwrap_or(SignedDuration::MAX);
        Self { from, at: from.checked_add(timeout).unwrap_or(Timestamp::MAX) }
    }

    /// How much time is left, zero where it has passed.
    pub fn left(&self, clock: &dyn Clock) -> Duration {
        Duration::try_from(self.at.duration_since(clock.now())).unwrap_or(Duration::ZERO)
    }

    /// How long it was all in all, as people read it.
    pub fn total(&self) -> String {
        duration::short(self.at.duration_since(self.from))
    }
}

/// Asks who the cluster is until it answers or the deadline passes; every attempt that failed is shown with the next one.
pub async fn reach(ports: &Ports, deadline: Deadline) -> Result<ClusterIdentity, Error> {
    let clock = Arc::clone(ports.log.clock());
    let mut wait = FIRST_WAIT;
    for attempt in 1.. {
        let message = match ports.access.identity().await {
            Ok(identity) => {
                passed(&ports.log, REACHABLE, format!("cluster {identity} answers"));
                return Ok(identity);
            }
            Err(ReadError::Unavailable(message)) => message,
            Err(error) => return Err(failed(&ports.log, REACHABLE, error.into())),
        };
        let left = deadline.left(clock.as_ref());
        if left.is_zero() {
            let waited = duration::short(clock.now().duration_since(deadline.from));
            return Err(failed(&ports.log, REACHABLE, Error::Unreachable { waited, message }));
        }
        let next = wait.min(left);
        let next_in_ms = u64::try_from(next.as_millis()).unwrap_or(u64::MAX);
        ports.log.record(EventKind::Retry { what: "reach the cluster".into(), message, attempt, next_in_ms });
        clock.sleep(next).await;
        wait = (wait * 2).min(LONGEST_WAIT);
    }
    unreachable!("attempts are not counted to the end")
}

/// Refuses another cluster than the one that the journal holds, or the saved plan.
pub fn identity(log: &Log, found: &ClusterIdentity, plan: Option<&ClusterIdentity>) -> Result<(), Error> {
    let journal = log.read(|state| state.cluster.clone());
    for (whose, expected) in [("journal", journal.as_ref()), ("plan", plan)] {
        let Some(expected) = expected.filter(|expected| *expected != found) else { continue };
        let error = Error::OtherCluster { whose, expected: expected.clone(), found: found.clone() };
        return Err(failed(log, IDENTITY, error));
    }
    passed(log, IDENTITY, format!("this is cluster {found}"));
    Ok(())
}

/// Asks for every permission that the plan needs; the answer names all that are missing.
pub async fn permissions(planned: &Planned, ports: &Ports) -> Result<(), Error> {
    allowed(&planned.permissions, ports).await
}

/// Asks for everything at once, which most who bring a platform up may do, else for each of these permissions.
pub(crate) async fn allowed(permissions: &BTreeSet<Permission>, ports: &Ports) -> Result<(), Error> {
    let missing =
        if ports.access.can_i(&Permission::everything()).await? { Vec::new() } else { missing(permissions, ports).await? };
    if !missing.is_empty() {
        return Err(failed(&ports.log, PERMISSIONS, Error::Permissions(missing)));
    }
    passed(&ports.log, PERMISSIONS, format!("all {} are there", permissions.len()));
    Ok(())
}

/// Those of these permissions that are missing, several questions at a time.
async fn missing(permissions: &BTreeSet<Permission>, ports: &Ports) -> Result<Vec<Permission>, Error> {
    let ask = |permission| async move { (permission, ports.access.can_i(permission).await) };
    // Two steps, so that the questions are asked here and only awaited in the stream.
    let questions: Vec<_> = permissions.iter().map(ask).collect();
    let answers: Vec<(&Permission, _)> = stream::iter(questions).buffered(AT_ONCE).collect().await;
    let mut missing: Vec<Permission> = Vec::new();
    for (permission, answer) in answers {
        if !answer? {
            missing.push(permission.clone());
        }
    }
    Ok(missing)
}

/// Records that a check passed.
pub(crate) fn passed(log: &Log, id: &str, message: String) {
    log.record(EventKind::CheckFinished { id: id.into(), verdict: CheckVerdict::Passed, message, hint: None });
}

/// Refuses a mirror that lacks images of the distribution. Without a mirror there is nothing to say.
pub(crate) fn images(content: &Content, distribution: &Distribution, log: &Log) -> Result<(), Error> {
    let Some(mirror) = content.images.mirror() else { return Ok(()) };
    let scope = content.reachable(&distribution.component);
    let is_wanted =
        |component: &ComponentVersion| scope.iter().any(|own| own.name == component.name && own.version == component.version);
    let missing = content.images.missing(is_wanted);
    if !missing.is_empty() {
        return Err(failed(log, IMAGES, Error::Incomplete { mirror: mirror.to_owned(), missing }));
    }
    let count = content.images.images().iter().filter(|image| is_wanted(&image.component)).count();
    let message = format!("{count} images are in {mirror}, by digest");
    let unnamed = content.images.unnamed(is_wanted);
    if unnamed.is_empty() {
        passed(log, IMAGES, message);
        return Ok(());
    }
    let message = format!("{message}, but not all under their ordinary names: {}", unnamed.join("; "));
    let hint = Some("nodes pull by those names: plinth bundle push brings them again".to_owned());
    log.record(EventKind::CheckFinished { id: IMAGES.into(), verdict: CheckVerdict::Warned, message, hint });
    Ok(())
}

/// Records that a check failed, and hands the error on. What takes several lines is said whole at the end of the run, once.
pub(crate) fn failed(log: &Log, id: &str, error: Error) -> Error {
    let page = format!("plinth why {id}");
    let hint = error.hint().map_or_else(|| format!("see {page}"), |hint| format!("{hint} ({page})"));
    let message = error.headline();
    log.record(EventKind::CheckFinished { id: id.into(), verdict: CheckVerdict::Failed, message, hint: Some(hint) });
    error
}

#[cfg(test)]
mod tests;
