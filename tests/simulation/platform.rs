//! The platform that is brought up, and the values that it is given.

use std::{path::Path, sync::LazyLock};

use plinth_api::Object;
use plinth_bootstrap::{Content, Distribution, Settings, distribution};
use plinth_releasechannel::{Options, Selection, SourceRef, resolve};
use serde_json::{Map, Value, json};

use crate::random::Random;

/// The top-level instance.
pub(crate) const INSTANCE: &str = "/apis/platform.test/v1alpha1/namespaces/default/platforms/main";

/// A resolved channel with its distribution.
pub(crate) struct Platform {
    pub(crate) content: Content,
    pub(crate) distribution: Distribution,
}

/// Resolved once, before any simulation: files are no part of it.
pub(crate) static SMALL: LazyLock<Platform> = LazyLock::new(|| {
    let folder = Path::new(env!("CARGO_MANIFEST_DIR")).join("tests/simulation/platform");
    let runtime = tokio::runtime::Builder::new_current_thread().enable_all().build().unwrap();
    let options = Options { no_user_config: true, ..Options::default() };
    let channel = runtime.block_on(resolve(&SourceRef::Path(folder), &Selection::default(), &options)).unwrap();
    let content = Content::from(&channel);
    let distribution = distribution::choose(&content, None).unwrap();
    Platform { content, distribution }
});

/// The kinds of definitions; this platform has no delivery.
static DEFINITIONS: LazyLock<Vec<Object>> = LazyLock::new(|| {
    let all = plinth_api::crds::platform().into_iter();
    all.filter(|crd| crd.name().ends_with("kro.run")).collect()
});

/// What an operator may want of it.
#[derive(Clone, Debug, PartialEq, Eq, PartialOrd, Ord)]
pub(crate) struct Values {
    replicas: u64,
    size: u64,
    names: &'static [&'static str],
    text: &'static str,
    extra: bool,
}

impl Values {
    pub(crate) fn drawn(random: &mut Random) -> Self {
        let names: [&[&str]; 3] = [&["a", "b"], &["b", "c"], &[]];
        Self {
            replicas: random.between(1, 3),
            size: random.between(1, 3),
            names: random.pick(&names),
            text: random.pick(&["one", "two"]),
            extra: random.chance(500),
        }
    }

    /// The instance's `spec`.
    pub(crate) fn spec(&self) -> Map<String, Value> {
        let spec = json!({
            "replicas": self.replicas, "size": self.size, "names": self.names, "text": self.text, "extra": self.extra,
        });
        spec.as_object().unwrap().clone()
    }

    pub(crate) fn settings(&self) -> Settings {
        let definitions = DEFINITIONS.clone();
        Settings {
            platform: "simulated".into(),
            source: "simulated".into(),
            values: self.spec(),
            definitions,
            ..Settings::default()
        }
    }
}

/// The documents of a YAML file.
pub(crate) fn documents(text: &str) -> Vec<Value> {
    plinth_engine::yaml::documents(text).unwrap().into_iter().map(|document| document.value).collect()
}
