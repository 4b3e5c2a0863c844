//! The Platform that `up` leaves with the controller: what the command line and the file asked for, as one spec (contracts 20).

use std::path::Path;

use plinth_api::platform::{DistributionChoice, VerifyPolicy};
use plinth_bootstrap::Choice;
use plinth_releasechannel::SourceRef;
use serde_json::{Map, Value, json};

use super::up::Loaded;
use crate::{
    args::{SelectionArgs, SourceArgs},
    exit::Failure,
    files, load,
};

/// What the controller is to keep. The channel is named by what it is and by where it really came from, so that the cluster finds it too;
/// public keys and authorities go along as text, credentials do not.
pub(super) fn spec(source: &SourceArgs, selection: &SelectionArgs, loaded: &Loaded) -> Result<Map<String, Value>, Failure> {
    let mut spec = loaded.asked.clone().unwrap_or_default();
    spec.source.channel.clone_from(&loaded.content.lock.root.name);
    spec.source.repositories = loaded.content.lock.repositories.iter().cloned().map(absolute).collect();
    if loaded.asked.is_none() {
        spec.source.version = version(&source.source);
    }
    for file in &source.access.ca {
        let text = files::text(file).map_err(Failure::refused)?;
        spec.source.ca = Some(spec.source.ca.unwrap_or_default() + &text);
    }
    if let Some(Choice { name, range }) = selection.distribution.as_deref().map(Choice::parse) {
        spec.distribution = Some(DistributionChoice { name, version: range });
    }
    let asked = load::versions(&selection.versions)?;
    spec.select.extend(asked.select);
    spec.labels.extend(asked.labels);
    spec.namespace = loaded.settings.namespace.clone().or(spec.namespace);
    spec.values.clone_from(&loaded.settings.values);
    spec.verify = verify(source, selection, spec.verify)?;
    match serde_json::to_value(spec).expect("a spec is made of strings, lists and mappings") {
        Value::Object(spec) => Ok(spec),
        other => unreachable!("a spec is a mapping, and not {other}"),
    }
}

/// An archive by a path that is right from everywhere on this machine.
fn absolute(mut repository: Value) -> Value {
    let path = repository.get("filePath").and_then(Value::as_str).and_then(|path| std::path::absolute(path).ok());
    if let Some(path) = path {
        repository["filePath"] = path.display().to_string().into();
    }
    repository
}

/// The version or range in SOURCE.
fn version(source: &str) -> Option<String> {
    match SourceRef::parse(source).ok()? {
        SourceRef::Component { version, .. } => version,
        SourceRef::Registry(_) | SourceRef::Path(_) => None,
    }
}

/// The policy and the keys; those in files as text.
fn verify(source: &SourceArgs, selection: &SelectionArgs, file: Option<VerifyPolicy>) -> Result<Option<VerifyPolicy>, Failure> {
    let mut verify = file.unwrap_or_default();
    if let Some(policy) = selection.verify {
        load::policy(policy).name().clone_into(&mut verify.policy);
    }
    let folder = Path::new(&source.source).parent().unwrap_or(Path::new(""));
    for key in &mut verify.keys {
        if let Some(path) = key.get("file").and_then(Value::as_str) {
            let pem = files::text(&folder.join(path)).map_err(Failure::refused)?;
            *key = json!({"signature": key["signature"], "value": pem});
        }
    }
    for (signature, path) in &source.access.key {
        let pem = files::text(path).map_err(Failure::refused)?;
        verify.keys.retain(|key| key["signature"] != signature.as_str());
        verify.keys.push(json!({"signature": signature, "value": pem}));
    }
    Ok((verify != VerifyPolicy::default()).then_some(verify))
}

#[cfg(test)]
mod tests {
    use plinth_api::platform::PlatformSpec;

    use super::*;

    #[test]
    fn the_version_is_the_one_that_was_written() {
        for (source, expected) in [
            ("r.example/channel//acme.example/platform:v1.0.0", Some("v1.0.0")),
            ("r.example/channel//acme.example/platform:>=1 <2", Some(">=1 <2")),
            ("r.example/channel//acme.example/platform", None),
            ("r.example//", None),
            ("./archive.tgz", None),
        ] {
            assert_eq!(version(source).as_deref(), expected, "{source}");
        }
        assert_eq!(serde_json::to_value(PlatformSpec::default()).unwrap(), json!({"source": {"channel": ""}}));
    }
}
