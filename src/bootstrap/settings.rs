//! What the operator asked for, parsed.

use std::{collections::BTreeMap, time::Duration};

use plinth_api::Object;
use serde_json::{Map, Value};

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
    /// OCM repository specification for the Repository that the instance names (contracts 5).
    pub repository: Option<Value>,
    /// CRDs that the run installs where nobody serves their kinds.
    pub definitions: Vec<Object>,
    /// Takes objects of other tools over.
    pub take_over: bool,
    /// When the run gives up, from its first event.
    pub timeout: Duration,
    /// How long something may be failed before the run counts it as failed (ux.md lesson 4).
    pub grace: Duration,
    /// How long nothing may happen before a heartbeat.
    pub heartbeat: Duration,
    /// Grace by kind of object (`Kind.group`), where it differs.
    pub grace_by_kind: BTreeMap<String, Duration>,
}

impl Default for Settings {
    fn default() -> Self {
        Self {
            platform: "default".into(),
            source: String::new(),
            namespace: None,
            values: Map::new(),
            repository: None,
            definitions: plinth_api::crds::platform(),
            take_over: false,
            timeout: Duration::from_mins(10),
            grace: Duration::from_secs(30),
            heartbeat: Duration::from_mins(1),
            grace_by_kind: BTreeMap::new(),
        }
    }
}
