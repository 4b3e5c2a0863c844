//! Is an archive or a mirror complete for a lock?

use plinth_api::lock::{LockedResource, ReleaseLock};

use crate::access::Access;
use crate::channel::Channel;
use crate::closure::Node;
use crate::descriptor::Resource;
use crate::error::{ErrorKind, ResolveError};
use crate::repository::ComponentVersion;

/// What a resolved archive or mirror lacks of a lock, each named; empty where it is complete. All content is read and hashed. An error is
/// only what keeps from looking, such as a registry that cannot be reached.
///
/// Descriptors are compared by what is in them: a bundle rewrites their access, so that their bytes differ.
pub async fn missing(channel: &Channel, lock: &ReleaseLock) -> Result<Vec<String>, ResolveError> {
    let mut missing = Vec::new();
    for component in &lock.components {
        let at = ComponentVersion::new(&component.name, &component.version);
        let Some(node) = channel.closure.nodes.get(&at) else {
            missing.push(format!("component {at}"));
            continue;
        };
        for locked in &component.resources {
            if let Some(what) = look(channel, node, locked).await? {
                missing.push(what);
            }
        }
    }
    Ok(missing)
}

async fn look(channel: &Channel, node: &Node, locked: &LockedResource) -> Result<Option<String>, ResolveError> {
    let is_it = |resource: &&Resource| {
        resource.identity.name == locked.name
            && resource.identity.extra == locked.extra_identity
            && resource.version == locked.version
    };
    let name = format!("resource {} of {}", locked.name, node.at());
    let Some(resource) = node.descriptor.resources.iter().find(is_it) else { return Ok(Some(name)) };
    if Access::read(&resource.access) == Access::Nothing {
        return Ok(None);
    }
    let found = resource.digest.as_ref().and_then(crate::descriptor::DigestSpec::digest).map(|digest| digest.to_string());
    if locked.digest.is_some() && locked.digest != found {
        return Ok(Some(format!(
            "{name}: its digest is {}, not {}",
            found.unwrap_or_default(),
            locked.digest.clone().unwrap_or_default()
        )));
    }
    match channel.fetcher.prove_whole(node, resource).await {
        Ok(()) => Ok(None),
        Err(ResolveError::Repository { source, .. }) if source.kind() != ErrorKind::Unavailable => {
            Ok(Some(format!("{name}: {source}")))
        }
        Err(error) => Err(error),
    }
}
