//! Which controller `plinth up` installs, and why it installs none (contracts 5 and 10).

use plinth_api::{
    crds,
    lock::{LockedResource, ReleaseLock},
};
use plinth_bootstrap::install::Controller;
use plinth_controller::delivery::image;
use plinth_releasechannel::{
    ComponentVersion,
    program::{COMPONENT, RESOURCE},
};
use serde_json::Value;

use super::{
    kept,
    own_image::{self, Purpose},
    up::Loaded,
};
use crate::{
    args::{ControllerArgs, ControllerMode, SelectionArgs, SourceArgs},
    exit::Failure,
    out::Out,
};

/// Decides, and says where the platform stays without a controller although nobody asked for that.
pub(super) async fn choose(
    args: &ControllerArgs,
    (source, selection): (&SourceArgs, &SelectionArgs),
    loaded: &mut Loaded,
    purpose: Purpose,
    out: Out,
) -> Result<(), Failure> {
    loaded.settings.asked = Some(kept::spec(source, selection, loaded)?);
    if args.controller == Some(ControllerMode::None) {
        return Ok(());
    }
    let is_asked = args.controller.is_some() || args.controller_image.is_some();
    match controller(args, source, loaded, purpose, out).await {
        Ok(controller) => {
            loaded.settings.hands_over = true;
            loaded.settings.definitions.push(crds::PLATFORM.object());
            loaded.settings.controller = Some(controller);
            Ok(())
        }
        Err(refusal) if is_asked => Err(refusal),
        Err(refusal) => {
            out.talk(&format!("note: no controller is installed, this run alone keeps the platform: {}", refusal.message));
            Ok(())
        }
    }
}

async fn controller(
    args: &ControllerArgs,
    source: &SourceArgs,
    loaded: &Loaded,
    purpose: Purpose,
    out: Out,
) -> Result<Controller, Failure> {
    let path = loaded.settings.repository.as_ref().and_then(|repository| repository.get("filePath")?.as_str());
    if let Some(path) = path {
        let what = if std::path::Path::new(path).is_dir() { "a folder" } else { "an archive" };
        return Err(Failure::refused(format!("{what} cannot be handed over to a cluster"))
            .hint("give --mirror REGISTRY, or --controller none to stay with it"));
    }
    let image = match (&args.controller_image, &source.access.mirror) {
        (Some(image), _) => given(image)?,
        (None, Some(mirror)) if find(&loaded.content.lock).is_none() => {
            let asked = loaded.settings.asked.clone().unwrap_or_default();
            let asked = serde_json::from_value(Value::Object(asked)).expect("it was written as the spec of a Platform");
            Box::pin(own_image::of_the_mirror(mirror, (source, &asked), purpose, out)).await?
        }
        (None, _) => of_the_channel(loaded)?,
    };
    Ok(Controller { image, arguments: arguments(source), platform: loaded.settings.asked.clone().unwrap_or_default() })
}

/// An image by digest: a tag may be another image tomorrow.
fn given(image: &str) -> Result<String, Failure> {
    let is_fixed = image.split_once("@sha256:").is_some_and(|(name, digest)| {
        !name.is_empty() && digest.len() == 64 && digest.bytes().all(|byte| byte.is_ascii_hexdigit())
    });
    if is_fixed {
        Ok(image.to_owned())
    } else {
        Err(Failure::refused(format!("--controller-image {image}: write REF@sha256:DIGEST")))
    }
}

/// The channel's own plinth, where it can be pulled from.
fn of_the_channel(loaded: &Loaded) -> Result<String, Failure> {
    let lack = |what: &str| {
        Failure::refused(what.to_owned()).hint("give --controller-image REF@DIGEST, or --controller none to do without")
    };
    let (component, resource, repository) =
        find(&loaded.content.lock).ok_or_else(|| lack(&format!("the channel has no component {COMPONENT}")))?;
    let placed = loaded.content.images.of_resource(&component, RESOURCE, &resource.extra_identity).map(str::to_owned);
    let named = placed.or_else(|| image::reference(&component, &resource.access, repository));
    let named =
        named.ok_or_else(|| lack(&format!("the image of {component} is in no registry that a cluster could pull from")))?;
    if named.contains('@') {
        return Ok(named);
    }
    let digest = resource.digest.as_deref().filter(|digest| digest.starts_with("sha256:"));
    digest.map(|digest| format!("{named}@{digest}")).ok_or_else(|| lack(&format!("the image of {component} has no digest")))
}

/// plinth's component, its image, and the repository that it was found in.
fn find(lock: &ReleaseLock) -> Option<(ComponentVersion, &LockedResource, &Value)> {
    let component = lock.components.iter().find(|component| component.name == COMPONENT)?;
    let resource = component.resources.iter().find(|resource| resource.name == RESOURCE)?;
    let repository = lock.repositories.get(component.repository).unwrap_or(&Value::Null);
    Some((ComponentVersion::new(&component.name, &component.version), resource, repository))
}

/// What the controller must know of how repositories are reached.
fn arguments(source: &SourceArgs) -> Vec<String> {
    let mirror = source.access.mirror.iter().map(|mirror| format!("--mirror={mirror}"));
    mirror.chain(source.access.plain_http.iter().map(|host| format!("--plain-http={host}"))).collect()
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn only_a_digest_fixes_an_image() {
        let digest = "a".repeat(64);
        assert!(given(&format!("r.example/plinth@sha256:{digest}")).is_ok());
        for image in ["r.example/plinth:v1".to_owned(), format!("@sha256:{digest}"), "r.example/plinth@sha256:abc".to_owned()] {
            assert!(given(&image).unwrap_err().message.contains("REF@sha256:DIGEST"), "{image}");
        }
    }
}
