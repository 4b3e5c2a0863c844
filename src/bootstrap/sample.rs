//! The sample distribution, from its folder to a platform on twins.

use std::{path::Path, sync::Arc};

use plinth_api::{Object, lock::LockedRef};
use plinth_engine::{schema::builtin, yaml};
use plinth_releasechannel::{Channel, Options, Selection, SourceRef, resolve};
use plinth_run::{Action, EventKind, Health, Outcome};
use serde_json::json;

use crate::{Content, distribution, memory::FakeCluster, plan, testing::Bench};

const FOLDER: &str = concat!(env!("CARGO_MANIFEST_DIR"), "/../../distributions/open-control-plane-kind");

async fn channel() -> Channel {
    let source = SourceRef::Path(FOLDER.into());
    let options = Options { no_user_config: true, ..Options::default() };
    resolve(&source, &Selection::default(), &options).await.unwrap()
}

/// What the scenario lets the operator register.
fn registered() -> Vec<Object> {
    let text = std::fs::read_to_string(Path::new(FOLDER).join("scenario.yaml")).unwrap();
    let scenario = yaml::documents(&text).unwrap().remove(0).value;
    let rules = scenario["spec"]["rules"].as_array().unwrap();
    let registered = rules.iter().filter_map(|rule| rule["register"].as_array()).flatten();
    registered.map(|crd| Object::from_value(crd.clone()).unwrap()).collect()
}

#[tokio::test]
async fn the_sample_is_planned_without_a_cluster() {
    let content = Content::from(&channel().await);
    let distribution = distribution::choose(&content, None).unwrap();
    assert!(distribution.component.name.ends_with("/open-control-plane-platform"));
    let mut settings = crate::testing::settings();
    settings.repository = content.repository(&distribution.component).cloned();
    let draft = plan::draft(&content, &distribution, &settings, Arc::new(builtin().clone())).unwrap();
    let waiting: Vec<(&str, &str, &str)> = draft
        .deferred
        .iter()
        .map(|d| (d.subject.key.name.as_str(), d.missing[0].kind.as_str(), d.expected_from.as_deref().unwrap_or_default()))
        .collect();
    let operator = "Deployment.apps/default/openmcp-operator";
    assert_eq!(
        waiting,
        [("cluster-provider-kind", "ClusterProvider", operator), ("platform-service", "PlatformService", operator)]
    );
    assert_eq!(draft.remarks, []);
}

#[tokio::test]
async fn the_sample_comes_up_on_twins_in_one_apply() {
    let content = Content::from(&channel().await);
    tokio::time::pause();
    let mut bench = Bench::new();
    bench.cluster = FakeCluster::new("cluster-1", builtin().iter().map(|kind| kind.as_ref().clone()));
    bench.content = content;
    bench.brings = registered();
    bench.operator = "openmcp-operator";
    bench.settings.repository = Some(json!({"type": "OCIRegistry", "baseUrl": "registry.example"}));
    assert_eq!(bench.up().await, Outcome::Done, "{}", bench.message());
    let state = bench.state();
    for name in ["cluster-provider-kind", "platform-service"] {
        let waited = |kind: &EventKind| matches!(kind, EventKind::ChangeDeferred { subject, missing, .. } if subject.key.name == name && !missing.is_empty());
        assert!(bench.count(waited) >= 1, "{name}");
        let rgd =
            state.subjects.values().find(|s| s.subject.key.name == name && s.subject.key.gvk.kind == "ResourceGraphDefinition");
        assert_eq!(rgd.unwrap().health, Some(Health::Current), "{name}");
    }
    let plan = state.plan.unwrap();
    let last = plan.stages.last().unwrap();
    assert!(last.changes.iter().all(|change| change.action == Action::Defer), "{last:?}");
    bench.cluster.forget_writes();
    assert_eq!(bench.up().await, Outcome::Done);
    assert_eq!(bench.cluster.writes(), []);
    assert_eq!(bench.down().await, Outcome::Done, "{}", bench.message());
}

#[tokio::test]
async fn a_component_that_the_channel_lost_is_refused_before_anything_is_written() {
    let mut content = Content::from(&channel().await);
    let is_dns = |name: &str| name.ends_with("/platform-service-dns");
    content.lock.components.retain(|component| !is_dns(&component.name));
    tokio::time::pause();
    let mut bench = Bench::new();
    bench.cluster = FakeCluster::new("cluster-1", builtin().iter().map(|kind| kind.as_ref().clone()));
    bench.content = content;
    assert_eq!(bench.up().await, Outcome::Refused);
    let gone = LockedRef { name: "github.com/openmcp-project/platform-service-dns".into(), version: "v0.0.5".into() };
    assert!(bench.message().contains(&format!("component {} {}", gone.name, gone.version)), "{}", bench.message());
    assert!(bench.cluster.writes().is_empty());
}
