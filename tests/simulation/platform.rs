//! The platforms that are brought up, and the values that they are given.

use std::{
    path::{Path, PathBuf},
    sync::{Arc, LazyLock},
};

use plinth_api::Scenario;
use plinth_bootstrap::{Content, Distribution, Settings, distribution};
use plinth_controller::delivery::sources::Sources;
use plinth_releasechannel::{Options, Selection, SourceRef, resolve};
use serde_json::{Map, Value, json};

use crate::{random::Random, sources::Shelf};

/// A resolved channel with its distribution.
pub(crate) struct Platform {
    pub(crate) content: Content,
    pub(crate) distribution: Distribution,
    /// Path of the top-level instance.
    pub(crate) instance: &'static str,
    /// Collections that anything of it may be in, beside those of every cluster.
    pub(crate) collections: &'static [&'static str],
    /// CRDs that the programs of its cluster bring, and nobody takes away.
    pub(crate) brought: &'static [&'static str],
    /// Its delivery objects read from here; `None` for a platform without any.
    pub(crate) sources: Option<Arc<dyn Sources>>,
    /// What its cluster's programs do; `None` where the simulation has its own for it.
    pub(crate) scenario: Option<Scenario>,
    settings: Settings,
}

/// Small enough for thousands of lives, and with everything that can go wrong. Resolved once, before any life: files are no
/// part of it.
pub(crate) static SMALL: LazyLock<Platform> = LazyLock::new(|| {
    let mut platform = Platform {
        instance: "/apis/platform.test/v1alpha1/namespaces/default/platforms/main",
        collections: &[
            "/apis/platform.test/v1alpha1/platforms",
            "/apis/platform.test/v1alpha1/operators",
            "/apis/platform.test/v1alpha1/stores",
            "/apis/platform.test/v1alpha1/parts",
            "/apis/storage.test/v1/buckets",
        ],
        brought: &["buckets.storage.test"],
        ..resolved("tests/simulation/platform")
    };
    platform.settings.definitions.retain(|crd| crd.name().ends_with("kro.run"));
    platform
});

/// The sample distribution, with its delivery objects and its scenario.
pub(crate) static SAMPLE: LazyLock<Platform> = LazyLock::new(|| {
    let mut platform = resolved("distributions/open-control-plane-kind");
    let specification = platform.content.repository(&platform.distribution.component).unwrap().clone();
    platform.sources = Some(Arc::new(Shelf::of(&specification)));
    // Where the folder is on this machine is no part of a life.
    platform.settings.repository = Some(json!({"type": "CommonTransportFormat", "filePath": "/simulated"}));
    let text = std::fs::read_to_string(folder("distributions/open-control-plane-kind").join("scenario.yaml")).unwrap();
    let instance = "/apis/bootstrap.open-control-plane.io/v1alpha1/namespaces/default/opencontrolplaneplatforms/default";
    Platform {
        instance,
        collections: &[
            "/apis/bootstrap.open-control-plane.io/v1alpha1/opencontrolplaneplatforms",
            "/apis/bootstrap.open-control-plane.io/v1alpha1/openmcpoperators",
            "/apis/bootstrap.open-control-plane.io/v1alpha1/clusterproviderkinds",
            "/apis/bootstrap.open-control-plane.io/v1alpha1/platformservices",
            "/apis/delivery.ocm.software/v1alpha1/repositories",
            "/apis/delivery.ocm.software/v1alpha1/components",
            "/apis/delivery.ocm.software/v1alpha1/resources",
            "/apis/openmcp.cloud/v1alpha1/clusterproviders",
            "/apis/openmcp.cloud/v1alpha1/platformservices",
            "/apis/rbac.authorization.k8s.io/v1/clusterrolebindings",
            "/api/v1/serviceaccounts",
        ],
        brought: &["clusterproviders.openmcp.cloud", "platformservices.openmcp.cloud", "serviceproviders.openmcp.cloud"],
        scenario: Some(Scenario::parse(&text).unwrap()),
        ..platform
    }
});

fn folder(path: &str) -> PathBuf {
    Path::new(env!("CARGO_MANIFEST_DIR")).join(path)
}

fn resolved(path: &str) -> Platform {
    let runtime = tokio::runtime::Builder::new_current_thread().enable_all().build().unwrap();
    let options = Options { no_user_config: true, ..Options::default() };
    let channel = runtime.block_on(resolve(&SourceRef::Path(folder(path)), &Selection::default(), &options)).unwrap();
    let content = Content::from(&channel);
    let distribution = distribution::choose(&content, None).unwrap();
    let settings = Settings { platform: "simulated".into(), source: "simulated".into(), ..Settings::default() };
    Platform { content, distribution, instance: "", collections: &[], brought: &[], sources: None, scenario: None, settings }
}

impl Platform {
    /// What a run is asked for that wants these values.
    pub(crate) fn settings(&self, values: &Values) -> Settings {
        Settings { values: values.spec(), ..self.settings.clone() }
    }

    /// Values that fit it.
    pub(crate) fn values(&self, random: &mut Random) -> Values {
        if self.scenario.is_some() { Values::Sample } else { Values::small(random) }
    }
}

/// What an operator may want of a platform.
#[derive(Clone, Debug, PartialEq, Eq, PartialOrd, Ord)]
pub(crate) enum Values {
    /// Of [`SMALL`].
    Small {
        /// Of its Deployment.
        replicas: u64,
        /// Of its Bucket.
        size: u64,
        /// Of its collection.
        names: &'static [&'static str],
        /// In all of its parts.
        text: &'static str,
        /// Whether the part is there that may be left out.
        extra: bool,
    },
    /// The sample's own.
    Sample,
}

impl Values {
    fn small(random: &mut Random) -> Self {
        let names: [&[&str]; 3] = [&["a", "b"], &["b", "c"], &[]];
        Self::Small {
            replicas: random.between(1, 3),
            size: random.between(1, 3),
            names: random.pick(&names),
            text: random.pick(&["one", "two"]),
            extra: random.chance(500),
        }
    }

    /// Whose they are.
    pub(crate) fn platform(&self) -> &'static Platform {
        match self {
            Self::Small { .. } => &SMALL,
            Self::Sample => &SAMPLE,
        }
    }

    /// The instance's `spec`.
    pub(crate) fn spec(&self) -> Map<String, Value> {
        match self {
            Self::Small { replicas, size, names, text, extra } => {
                let spec = json!({"replicas": replicas, "size": size, "names": names, "text": text, "extra": extra});
                spec.as_object().unwrap().clone()
            }
            Self::Sample => Map::new(),
        }
    }
}

/// The documents of a YAML file.
pub(crate) fn documents(text: &str) -> Vec<Value> {
    plinth_engine::yaml::documents(text).unwrap().into_iter().map(|document| document.value).collect()
}
