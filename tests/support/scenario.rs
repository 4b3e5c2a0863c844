//! A Scenario (`plinth.dev/v1alpha1`): what the programs that are not there would do, as rules.

use std::{path::Path, time::Duration};

use plinth_api::{Object, platform};
use serde::{Deserialize, Deserializer};
use serde_json::{Map, Value};
use thiserror::Error;

/// Why a scenario is not one.
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
}

/// Rules, each for every object that it matches.
#[derive(Clone, Debug, Default, PartialEq, Deserialize)]
#[serde(deny_unknown_fields)]
pub struct Scenario {
    /// In the order in which they are tried; they do not depend on one another.
    pub rules: Vec<Rule>,
}

/// One rule. It acts once for each object and generation.
#[derive(Clone, Debug, PartialEq, Deserialize)]
#[serde(deny_unknown_fields)]
pub struct Rule {
    /// Which objects.
    pub when: Trigger,
    /// How long after the object matched, such as `2s` or `500ms`.
    #[serde(default, deserialize_with = "duration")]
    pub after: Duration,
    /// Makes a workload available: every replica that its spec wants is ready.
    #[serde(default)]
    pub available: bool,
    /// Merged into the object's status.
    #[serde(default)]
    pub status: Map<String, Value>,
    /// Objects to apply.
    #[serde(default)]
    pub register: Vec<Object>,
}

/// Which objects a rule is about.
#[derive(Clone, Debug, PartialEq, Deserialize)]
#[serde(rename_all = "camelCase", deny_unknown_fields)]
pub struct Trigger {
    /// Group and version.
    pub api_version: String,
    /// Kind.
    pub kind: String,
    /// Name; any where absent.
    #[serde(default)]
    pub name: Option<String>,
    /// What must be true of it.
    #[serde(default)]
    pub state: TriggerState,
}

/// What must be true of an object.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq, Deserialize)]
pub enum TriggerState {
    /// It is there.
    #[default]
    Exists,
    /// Its condition `Available` is True for its present generation.
    Available,
}

#[derive(Deserialize)]
#[serde(rename_all = "camelCase", deny_unknown_fields)]
struct Document {
    api_version: String,
    kind: String,
    #[serde(rename = "metadata")]
    _metadata: Value,
    spec: Scenario,
}

impl Scenario {
    /// Reads a scenario file.
    pub fn read(path: &Path) -> Result<Self, ScenarioError> {
        let shown = path.display().to_string();
        let text = std::fs::read_to_string(path).map_err(|source| ScenarioError::Read { path: shown.clone(), source })?;
        Self::parse(&text).map_err(|message| ScenarioError::Parse { path: shown, message })
    }

    fn parse(text: &str) -> Result<Self, String> {
        let document: Document = serde_saphyr::from_str(text).map_err(|error| error.to_string())?;
        let wanted = format!("{}/{}", platform::GROUP, platform::VERSION);
        if (document.api_version.as_str(), document.kind.as_str()) != (wanted.as_str(), "Scenario") {
            return Err(format!("expected {wanted} Scenario, found {} {}", document.api_version, document.kind));
        }
        Ok(document.spec)
    }

    /// Replaces what the rules register by the documents of a folder's YAML files, such as the real CRDs.
    ///
    /// # Panics
    /// Where no rule registers anything, because the folder would have no effect.
    pub fn with_registered(mut self, folder: &Path) -> Result<Self, ScenarioError> {
        let objects = read_objects(folder)?;
        let rule = self.rules.iter_mut().find(|rule| !rule.register.is_empty()).expect("a rule that registers something");
        rule.register = objects;
        Ok(self)
    }
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

fn duration<'de, D: Deserializer<'de>>(deserializer: D) -> Result<Duration, D::Error> {
    let text = String::deserialize(deserializer)?;
    let parsed = match text.strip_suffix("ms") {
        Some(number) => number.parse().ok().map(Duration::from_millis),
        None => text.strip_suffix('s').and_then(|number| number.parse().ok()).map(Duration::from_secs),
    };
    parsed.ok_or_else(|| serde::de::Error::custom(format!("`{text}` is no time such as 2s or 500ms")))
}

#[cfg(test)]
mod tests {
    use super::*;

    fn check(rules: &str) -> Result<Scenario, String> {
        Scenario::parse(&format!(
            "apiVersion: plinth.dev/v1alpha1\nkind: Scenario\nmetadata: {{name: x}}\nspec:\n  rules: {rules}\n"
        ))
    }

    #[test]
    fn the_samples_scenario_is_one() {
        let path = Path::new(env!("CARGO_MANIFEST_DIR")).join("../../distributions/open-control-plane-kind/scenario.yaml");
        let scenario = Scenario::read(&path).unwrap();
        assert_eq!(scenario.rules.len(), 4);
        assert_eq!(scenario.rules[1].register.len(), 3);
        assert_eq!(scenario.rules[2].after, Duration::from_millis(500));
    }

    #[test]
    fn mistakes_are_named() {
        for (rules, part) in [
            ("[{when: {apiVersion: v1, kind: Pod}, after: soon}]", "`soon` is no time"),
            ("[{when: {apiVersion: v1, kind: Pod}, then: x}]", "then"),
            ("[{when: {kind: Pod}}]", "apiVersion"),
        ] {
            let error = check(rules).unwrap_err();
            assert!(error.contains(part), "{error}");
        }
        assert!(
            Scenario::parse("apiVersion: v1\nkind: Pod\nmetadata: {}\nspec: {rules: []}\n").unwrap_err().contains("found v1 Pod")
        );
    }
}
