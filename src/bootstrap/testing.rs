//! What this room's tests share: a small platform, and a bench of twins to bring it up on.

use std::{sync::Arc, time::Duration};

use plinth_api::{
    ClusterKey, GroupVersionKind, Object, ObjectKey,
    lock::{LockedComponent, LockedRef, LockedReference, ReferenceTarget, ReleaseLock},
};
use plinth_engine::schema::{KindInfo, Schema};
use plinth_run::{Event, EventKind, Feed, Log, Outcome, RunId, RunState, memory::VecJournal, ports::Sink};
use serde_json::{Value, json};

use crate::{
    content::{Content, RgdText},
    distribution::{self, Distribution},
    memory::{FakeCluster, FakeLoop, TokioClock},
    ports::{Alone, Always, Approver, Loop, Ports},
    removal,
    runner::{self, Request},
    settings::Settings,
};

pub(crate) const PLATFORM: &str = r"apiVersion: kro.run/v1alpha1
kind: ResourceGraphDefinition
metadata:
  name: platform
spec:
  schema:
    apiVersion: v1alpha1
    group: acme.example
    kind: Platform
    spec:
      ocmRepoName: string
      size: integer | default=1
  resources:
    - id: repository
      externalRef:
        apiVersion: delivery.ocm.software/v1alpha1
        kind: Repository
        metadata:
          name: ${schema.spec.ocmRepoName}
    - id: worker
      template:
        apiVersion: acme.example/v1alpha1
        kind: Worker
        metadata:
          name: worker
        spec:
          size: ${schema.spec.size}
    - id: late
      template:
        apiVersion: acme.example/v1alpha1
        kind: Late
        metadata:
          name: late
        spec: {}
";

pub(crate) const WORKER: &str = r"apiVersion: kro.run/v1alpha1
kind: ResourceGraphDefinition
metadata:
  name: worker
spec:
  schema:
    apiVersion: v1alpha1
    group: acme.example
    kind: Worker
    spec:
      size: integer | default=1
  resources:
    - id: config
      template:
        apiVersion: v1
        kind: ConfigMap
        metadata:
          name: worker-config
        data:
          size: ${string(schema.spec.size)}
    - id: deployment
      template:
        apiVersion: apps/v1
        kind: Deployment
        metadata:
          name: operator
        spec:
          config: ${config.metadata.name}
";

pub(crate) const LATE: &str = r#"apiVersion: kro.run/v1alpha1
kind: ResourceGraphDefinition
metadata:
  name: late
spec:
  schema:
    apiVersion: v1alpha1
    group: acme.example
    kind: Late
    spec:
      note: string | default="x"
  resources:
    - id: note
      template:
        apiVersion: v1
        kind: ConfigMap
        metadata:
          name: late-note
    - id: thing
      template:
        apiVersion: late.example/v1
        kind: Thing
        metadata:
          name: thing
        spec: {}
"#;

pub(crate) const INSTANCE: &str = r"apiVersion: acme.example/v1alpha1
kind: Platform
metadata:
  name: default
spec:
  ocmRepoName: repo
";

pub(crate) fn component(name: &str) -> LockedRef {
    LockedRef { name: format!("acme.example/{name}"), version: "v1.0.0".into() }
}

pub(crate) fn rgd(name: &str, text: &str) -> RgdText {
    RgdText { component: component(name), resource: "rgd".into(), text: text.into() }
}

/// A channel whose first component refers to all others.
pub(crate) fn content(rgds: Vec<RgdText>) -> Content {
    let root = rgds.first().map(|rgd| rgd.component.clone()).unwrap_or_default();
    let others: Vec<LockedRef> = rgds.iter().map(|rgd| rgd.component.clone()).filter(|other| *other != root).collect();
    let reference = |other: &LockedRef| LockedReference {
        name: "x".into(),
        target: ReferenceTarget { component_name: other.name.clone(), version: other.version.clone() },
        ..LockedReference::default()
    };
    let locked = |at: &LockedRef| LockedComponent {
        name: at.name.clone(),
        version: at.version.clone(),
        references: if *at == root { others.iter().map(reference).collect() } else { vec![] },
        ..LockedComponent::default()
    };
    let components = std::iter::once(&root).chain(&others).map(locked).collect();
    Content { lock: ReleaseLock { root: root.clone(), components, ..ReleaseLock::default() }, rgds, ..Content::default() }
}

/// The sample platform.
pub(crate) fn sample() -> Content {
    let mut content = content(vec![rgd("platform", PLATFORM), rgd("worker", WORKER), rgd("late", LATE)]);
    content.instances = vec![(component("platform"), INSTANCE.into())];
    content
}

pub(crate) fn settings() -> Settings {
    Settings {
        source: "sample".into(),
        repository: Some(json!({"type": "OCIRegistry", "baseUrl": "registry.example"})),
        ..Settings::default()
    }
}

pub(crate) fn object(value: Value) -> Object {
    Object::from_value(value).unwrap()
}

pub(crate) fn crd(group: &str, kind: &str) -> Object {
    let plural = format!("{}s", kind.to_lowercase());
    object(json!({
        "apiVersion": "apiextensions.k8s.io/v1", "kind": "CustomResourceDefinition",
        "metadata": {"name": format!("{plural}.{group}")},
        "spec": {
            "group": group, "scope": "Namespaced",
            "names": {"kind": kind, "plural": plural, "singular": kind.to_lowercase(), "listKind": format!("{kind}List")},
            "versions": [{"name": "v1", "served": true, "storage": true, "schema": {"openAPIV3Schema":
                {"type": "object", "x-kubernetes-preserve-unknown-fields": true}}}],
        },
    }))
}

pub(crate) fn key(api_version: &str, kind: &str, namespace: Option<&str>, name: &str) -> ObjectKey {
    ObjectKey {
        cluster: ClusterKey::host(),
        gvk: GroupVersionKind::from_api_version(api_version, kind).unwrap(),
        namespace: namespace.map(str::to_owned),
        name: name.into(),
    }
}

/// A cluster, a journal, and a loop that brings the late kind when the operator is there.
pub(crate) struct Bench {
    pub(crate) cluster: Arc<FakeCluster>,
    pub(crate) journal: Arc<VecJournal>,
    pub(crate) clock: Arc<TokioClock>,
    pub(crate) content: Content,
    pub(crate) settings: Settings,
    /// CRDs that appear once the operator is there.
    pub(crate) brings: Vec<Object>,
    pub(crate) operator: &'static str,
    pub(crate) broken: Option<&'static str>,
    runs: std::cell::Cell<u32>,
}

impl Bench {
    pub(crate) fn new() -> Self {
        let any = || Arc::new(Schema::any());
        let kind = |group: &str, kind: &str, plural: &str| KindInfo {
            gvk: GroupVersionKind::new(group, "v1", kind),
            plural: plural.into(),
            namespaced: true,
            schema: any(),
        };
        let kinds = [kind("", "ConfigMap", "configmaps"), kind("apps", "Deployment", "deployments")];
        Self {
            cluster: FakeCluster::new("cluster-1", kinds),
            journal: Arc::new(VecJournal::default()),
            clock: Arc::new(TokioClock::default()),
            content: sample(),
            settings: settings(),
            brings: vec![crd("late.example", "Thing")],
            operator: "operator",
            broken: None,
            runs: std::cell::Cell::new(0),
        }
    }

    /// The twins for one more run on the same cluster and journal.
    pub(crate) fn ports(&self) -> Ports {
        let feed = Arc::new(Feed::default());
        self.runs.set(self.runs.get() + 1);
        let id = RunId(format!("run-{}", self.runs.get()));
        let sinks: Vec<Arc<dyn Sink>> = vec![feed.clone()];
        let log = Arc::new(Log::open(id, self.journal.clone(), self.clock.clone(), sinks).unwrap());
        let mut control = FakeLoop::new(self.cluster.clone(), log.clone(), feed).bringing(self.operator, self.brings.clone());
        if let Some(broken) = self.broken {
            control = control.breaking(broken);
        }
        let control: Arc<dyn Loop> = Arc::new(control);
        let (applier, reader) = (self.cluster.clone(), self.cluster.clone());
        Ports {
            applier,
            reader,
            access: self.cluster.clone(),
            schemas: self.cluster.clone(),
            control,
            lead: Arc::new(Alone),
            log,
        }
    }

    pub(crate) fn distribution(&self) -> Distribution {
        distribution::choose(&self.content, None).unwrap()
    }

    pub(crate) async fn up(&self) -> Outcome {
        self.up_with(&Always("--apply".into()), None).await
    }

    pub(crate) async fn up_with(&self, approver: &dyn Approver, saved: Option<&plinth_run::Plan>) -> Outcome {
        let distribution = self.distribution();
        let (content, settings) = (&self.content, &self.settings);
        let request = Request { content, distribution: &distribution, settings, saved, resumed: None };
        runner::up(&request, &self.ports(), approver).await
    }

    pub(crate) async fn plan(&self) -> (Outcome, Option<crate::Planned>) {
        let distribution = self.distribution();
        let (content, settings) = (&self.content, &self.settings);
        let request = Request { content, distribution: &distribution, settings, saved: None, resumed: None };
        runner::plan(&request, &self.ports(), true).await
    }

    pub(crate) async fn down(&self) -> Outcome {
        removal::down(&self.settings, None, &self.ports(), &Always("--apply".into())).await
    }

    /// Runs until the process is killed by the cluster's fault: nothing goes on after an hour.
    pub(crate) async fn killed(&self, run: impl Future<Output = Outcome>) -> bool {
        let killed = tokio::time::timeout(Duration::from_hours(1), run).await.is_err();
        self.cluster.fault(None);
        killed
    }

    pub(crate) fn state(&self) -> RunState {
        RunState::replay(&self.journal.events())
    }

    /// Events of the newest run.
    pub(crate) fn events(&self) -> Vec<Event> {
        let all = self.journal.events();
        let last = all.last().map(|event| event.run.clone());
        all.into_iter().filter(|event| Some(&event.run) == last.as_ref()).collect()
    }

    /// Time since the bench was made.
    pub(crate) fn clock_passed(&self) -> Duration {
        let now = plinth_engine::ports::Clock::now(self.clock.as_ref());
        Duration::try_from(now.duration_since(jiff::Timestamp::UNIX_EPOCH)).unwrap()
    }

    pub(crate) fn message(&self) -> String {
        self.state().finished.map(|finished| finished.message).unwrap_or_default()
    }

    pub(crate) fn count(&self, which: impl Fn(&EventKind) -> bool) -> usize {
        self.events().iter().filter(|event| which(&event.kind)).count()
    }
}
