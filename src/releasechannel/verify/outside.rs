//! OCI artifacts that are elsewhere: their manifests are asked for and compared. An access is not signed, so that what it leads to may be
//! another artifact; a place that does not answer proves nothing, and is said.

use std::collections::{BTreeMap, BTreeSet};
use std::sync::Mutex;

use futures::stream::{self, StreamExt};

use super::Verification;
use crate::access::Access;
use crate::closure::Node;
use crate::descriptor::Resource;
use crate::error::{ErrorKind, RepositoryError, ResolveError};
use crate::fetch::Fetcher;
use crate::image::ImageReference;
use crate::options::{Limits, Options};
use crate::registry::Registries;

/// What became of one resource.
enum Looked {
    Compared,
    /// Not now: at this place, for this reason.
    Later(String, String),
    /// Only reading all of it would tell.
    Unread,
}

/// Compares the manifests of these resources with their digests, each place asked until it once does not answer.
pub(super) async fn compare(
    elsewhere: &[(&Node, &Resource)],
    fetcher: &Fetcher,
    verification: &mut Verification,
) -> Result<(), ResolveError> {
    let fetcher = asking_once(fetcher)?;
    let down = Mutex::new(BTreeSet::new());
    let looks: Vec<_> = elsewhere.iter().map(|(node, resource)| look(node, resource, &fetcher, &down)).collect();
    let mut looks = stream::iter(looks).buffered(fetcher.limits.parallel.max(1));
    let mut later: BTreeMap<String, (usize, String)> = BTreeMap::new();
    while let Some(looked) = looks.next().await {
        match looked? {
            Looked::Compared => verification.artifacts_compared += 1,
            Looked::Unread => verification.resources_later += 1,
            Looked::Later(place, reason) => {
                verification.resources_later += 1;
                later.entry(place).or_insert((0, reason)).0 += 1;
            }
        }
    }
    let remark =
        |(place, (count, reason)): (String, (usize, String))| format!("{count} artifacts at {place} were not compared: {reason}");
    verification.remarks.extend(later.into_iter().map(remark));
    Ok(())
}

/// Nobody waits for places that prove no more than they must.
fn asking_once(fetcher: &Fetcher) -> Result<Fetcher, ResolveError> {
    let limits = Limits { attempts: 1, ..fetcher.limits.clone() };
    let options = Options { limits: limits.clone(), ..fetcher.registries.options().clone() };
    Ok(Fetcher { registries: Registries::new(&options)?, limits })
}

async fn look(
    node: &Node,
    resource: &Resource,
    fetcher: &Fetcher,
    down: &Mutex<BTreeSet<String>>,
) -> Result<Looked, ResolveError> {
    let place = match Access::read(&resource.access) {
        Access::OciArtifact { image } => ImageReference::parse(&image).map_or(image, |image| image.host),
        Access::Relative { .. } => node.source.artifacts().place(),
        _ => return Ok(Looked::Unread),
    };
    let is_down = || locked(down).contains(&place);
    if is_down() {
        return Ok(Looked::Later(place, "it does not answer".to_owned()));
    }
    let what = format!("resource {} of {}", resource.identity, node.at());
    match fetcher.settle(node, resource, &what).await {
        Ok(_) => Ok(Looked::Compared),
        Err(source @ RepositoryError::Digest { .. }) => Err(ResolveError::Repository { path: node.path.clone(), source }),
        Err(error) => {
            if error.kind() == ErrorKind::Unavailable {
                locked(down).insert(place.clone());
            }
            Ok(Looked::Later(place, error.to_string()))
        }
    }
}

fn locked(down: &Mutex<BTreeSet<String>>) -> std::sync::MutexGuard<'_, BTreeSet<String>> {
    down.lock().unwrap_or_else(std::sync::PoisonError::into_inner)
}
