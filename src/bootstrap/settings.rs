//! What the operator asked for, parsed.

use std::{
    collections::{BTreeMap, BTreeSet},
    time::Duration,
};

use plinth_api::{Object, platform::PlatformSpec};
use plinth_engine::yaml::Locations;
use plinth_run::Verb;
use serde_json::{Map, Value};

use crate::{install::Controller, others::Tool};

/// Name of a platform that nobody gave one.
pub const DEFAULT_PLATFORM: &str = "default";

/// Everything about a bring-up that is neither in the channel nor on the cluster.
#[derive(Clone, Debug)]
pub struct Settings {
    /// Name of the platform; the value of the label `plinth.dev/platform`.
    pub platform: String,
    /// SOURCE as the user wrote it, without credentials.
    pub source: String,
    /// `-n`: where instance, Repository and delivery objects live (contracts 9).
    pub namespace: Option<String>,
    /// `--values`, `Platform.spec.values`.
    pub values: Map<String, Value>,
    /// The files that the values come from, for lines and columns; the one that wins comes first.
    pub values_files: Vec<ValuesFile>,
    /// OCM repository specification for the Repository that the instance names (contracts 5).
    pub repository: Option<Value>,
    /// CRDs that the run installs where nobody serves their kinds.
    pub definitions: Vec<Object>,
    /// The loop will run in the cluster: what only this machine can read cannot be handed over to it.
    pub hands_over: bool,
    /// The controller that is installed in the cluster, where one is.
    pub controller: Option<Controller>,
    /// `spec` of a Platform that asks for all of this: what the cluster keeps of the release, so that it can be moved and gone back from.
    pub asked: Option<Map<String, Value>>,
    /// What the run calls itself.
    pub verb: Verb,
    /// What the release is asked for as.
    pub way: Way,
    /// Lets kinds change so that objects of them may break.
    pub allow_breaking: bool,
    /// Takes objects of other tools over.
    pub take_over: bool,
    /// What the plan is for.
    pub purpose: Purpose,
    /// Tools whose controllers do not run, as the plan finds out: what they made can be taken over.
    pub idle: BTreeSet<Tool>,
    /// Checks of the channel that were switched off. Said in the plan, in the run, and on the cluster for as long as it stays so.
    pub unverified: Vec<String>,
    /// When the run gives up, from its first event.
    pub timeout: Duration,
    /// How long something may be failed before the run counts it as failed (ux.md lesson 4).
    pub grace: Duration,
    /// How long nothing may happen before a heartbeat.
    pub heartbeat: Duration,
    /// Grace by kind of object (`Kind.group`), where it differs.
    pub grace_by_kind: BTreeMap<String, Duration>,
}

/// What a release is asked for as.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Way {
    /// What is to run from here on.
    On,
    /// The way back to what ran before.
    Back,
}

/// What a plan is for.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Purpose {
    /// It is carried out, or may be.
    Write,
    /// Nothing is written, and nothing of others taken: what is there is held against what is wanted.
    Compare,
}

/// A file with values.
#[derive(Clone, Debug)]
pub struct ValuesFile {
    /// As the user wrote it.
    pub name: String,
    /// Where its fields are.
    pub locations: Locations,
    /// The path of the values in it: empty where it holds nothing else.
    pub under: &'static str,
}

impl Default for Settings {
    fn default() -> Self {
        Self {
            platform: DEFAULT_PLATFORM.into(),
            source: String::new(),
            namespace: None,
            values: Map::new(),
            values_files: Vec::new(),
            repository: None,
            definitions: plinth_api::crds::platform(),
            hands_over: false,
            controller: None,
            asked: None,
            verb: Verb::Up,
            way: Way::On,
            allow_breaking: false,
            take_over: false,
            purpose: Purpose::Write,
            idle: BTreeSet::new(),
            unverified: Vec::new(),
            timeout: Duration::from_mins(10),
            grace: Duration::from_secs(30),
            heartbeat: Duration::from_mins(1),
            grace_by_kind: BTreeMap::new(),
        }
    }
}

impl Settings {
    /// Takes what a Platform says; what is set already (by a flag) wins, values field by field.
    #[must_use]
    pub fn over(mut self, platform: &PlatformSpec) -> Self {
        let flags = std::mem::replace(&mut self.values, platform.values.clone());
        crate::values::merge_maps(&mut self.values, &flags);
        self
    }
}

#[cfg(test)]
mod tests {
    use serde_json::json;

    use super::*;

    #[test]
    fn flags_win_over_the_platform_file() {
        let map = |value: Value| value.as_object().unwrap().clone();
        let platform = PlatformSpec { values: map(json!({"a": {"b": 1, "c": 2}, "d": 3})), ..PlatformSpec::default() };
        let settings = Settings { values: map(json!({"a": {"b": 9}})), ..Settings::default() };
        assert_eq!(settings.over(&platform).values, map(json!({"a": {"b": 9, "c": 2}, "d": 3})));
    }
}
