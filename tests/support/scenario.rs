//! Scenarios from files, for a real API server.

use std::path::Path;

use plinth_api::Object;
pub use plinth_api::Scenario;
use serde_json::Value;
use thiserror::Error;

/// Why a scenario cannot be played here.
#[derive(Debug, Error)]
pub enum ScenarioError {
    /// A file could not be read.
    #[error("read {path}: {source}")]
    Read {
        /// The file.
        path: String,
        /// The cause.
        source: std::io::Error,
    },
    /// The text is no such document.
    #[error("read scenario {path}: {message}")]
    Parse {
        /// The file.
        path: String,
        /// What is wrong.
        message: String,
    },
    /// It needs a hand inside the API server.
    #[error("scenario {path} has a rule with `{effect}`, which only the embedded control plane can follow")]
    NeedsEmbedded {
        /// The file.
        path: String,
        /// The effect.
        effect: &'static str,
    },
}

/// Reads a scenario file that a stand-in can play on a real API server.
pub fn read(path: &Path) -> Result<Scenario, ScenarioError> {
    let shown = path.display().to_string();
    let text = std::fs::read_to_string(path).map_err(|source| ScenarioError::Read { path: shown.clone(), source })?;
    let parsed = Scenario::parse(&text);
    let scenario = parsed.map_err(|error| ScenarioError::Parse { path: shown.clone(), message: error.to_string() })?;
    match scenario.needs_embedded() {
        Some(effect) => Err(ScenarioError::NeedsEmbedded { path: shown, effect }),
        None => Ok(scenario),
    }
}

/// Replaces what the rules register by the documents of a folder's YAML files, such as the real CRDs.
///
/// # Panics
/// Where no rule registers anything, because the folder would have no effect.
pub fn with_registered(mut scenario: Scenario, folder: &Path) -> Result<Scenario, ScenarioError> {
    let objects = read_objects(folder)?;
    let rule = scenario.rules.iter_mut().find(|rule| !rule.register.is_empty()).expect("a rule that registers something");
    rule.register = objects;
    Ok(scenario)
}

fn read_objects(folder: &Path) -> Result<Vec<Object>, ScenarioError> {
    let read = |path: &Path, source| ScenarioError::Read { path: path.display().to_string(), source };
    let entries = std::fs::read_dir(folder).map_err(|source| read(folder, source))?;
    let mut paths: Vec<_> = entries.filter_map(|entry| Some(entry.ok()?.path())).collect();
    paths.retain(|path| path.extension().is_some_and(|extension| extension == "yaml"));
    paths.sort();
    let mut objects = Vec::new();
    for path in paths {
        let text = std::fs::read_to_string(&path).map_err(|source| read(&path, source))?;
        let documents: Vec<Value> = serde_saphyr::from_multiple(&text)
            .map_err(|error| ScenarioError::Parse { path: path.display().to_string(), message: error.to_string() })?;
        objects.extend(documents.into_iter().filter_map(Object::from_value));
    }
    Ok(objects)
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn what_only_the_embedded_plane_can_do_is_refused() {
        let folder = tempfile::tempdir().unwrap();
        let path = folder.path().join("scenario.yaml");
        let text = "apiVersion: plinth.dev/v1alpha1\nkind: Scenario\nmetadata: {name: x}\nspec: {rules: [{away: 1s}]}\n";
        std::fs::write(&path, text).unwrap();
        let error = read(&path).unwrap_err().to_string();
        assert!(error.contains("`away`"), "{error}");
    }
}
