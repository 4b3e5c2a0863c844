//! The same instances of kro's corpus by kro and by our loop, each on its own API server: same children, same status.

mod case;
mod compare;
mod record;

use std::path::PathBuf;

use futures::future;
use kube::Client;
use plinth_api::{Scenario, scenario};
use plinth_support::{ApiServer, Identity, StandIn};
use serde_json::{Map, Value, json};

pub use case::Case;
pub use record::Recorded;

use crate::{
    Result, objects,
    peers::{Peer, Running, objects_below},
};

/// Cases whose instance has another `status.state` on purpose, by a part of the file's name. Everything else of them is compared.
const EXCEPTIONS: &[&str] = &[
    "vpc-lattice__rg-webapp.json",
    "tenant-application-rgd.json",
    "30-rgd-chaining.md-2.json",
    "00-overview.md-0.json",
    "web-app-ingress.md-0.json",
];
const INPUT: &str = "an input that the instance does not set is an error here, for kro it is waited for without end";

/// Runs the cases whose name has `filter` in it and prints what came of them. Whether every difference is an exception.
pub async fn run(data: PathBuf, filter: &str, out: &mut (dyn FnMut(&str) + Send)) -> Result<bool> {
    let cases = Case::read_all(&data, filter)?;
    let stages = future::try_join(Stage::start(Peer::Kro, &data), Stage::start(Peer::Plinth, &data)).await?;
    let (mut same, mut wrong) = (0, 0);
    for case in &cases {
        // One after the other on each server, both at the same time.
        let recorded = future::try_join(stages.0.record(case), stages.1.record(case)).await;
        let excepted = EXCEPTIONS.iter().any(|part| case.name.contains(part));
        let difference = match &recorded {
            Ok((kro, ours)) => compare::difference(ours, kro, if excepted { &["status", "state"] } else { &[] }),
            Err(error) => Some(error.to_string()),
        };
        match difference {
            Some(what) => {
                wrong += 1;
                out(&format!("  different {}: {what}", case.name));
            }
            None if excepted => out(&format!("  the same but for status.state: {}: {INPUT}", case.name)),
            None => same += 1,
        }
    }
    out(&format!("SHOW 03 live {same}/{}", cases.len()));
    Ok(wrong == 0)
}

/// One controller on its own server.
pub(crate) struct Stage {
    pub(crate) client: Client,
    pub(crate) running: Running,
    // Last, so that nobody loses their server while they still run.
    _stand_in: StandIn,
    _server: ApiServer,
}

impl Stage {
    async fn start(peer: Peer, data: &std::path::Path) -> Result<Self> {
        let server = tokio::task::spawn_blocking(ApiServer::start).await??;
        let client = server.client(Identity::Cluster).await;
        let mut crds = peer.crds()?;
        crds.extend(objects_below(&data.join("cases/test/integration/crds"))?);
        crds.retain(|crd| crd.gvk().is_some_and(|gvk| gvk.kind == "CustomResourceDefinition"));
        objects::install(&client, &crds).await?;
        for object in world() {
            let api = objects::api(&client, &object.0, object.1.namespace());
            objects::create(&api, &object.1).await?;
        }
        let stand_in = StandIn::start(client.clone(), others());
        let running = Running::start(peer, &server)?;
        Ok(Self { client, running, _stand_in: stand_in, _server: server })
    }
}

/// What is there before anything else.
fn world() -> Vec<(kube::api::ApiResource, plinth_api::Object)> {
    let object = |value: Value| plinth_api::Object::from_value(value).expect("it has a type and a name");
    let namespace = json!({"apiVersion": "v1", "kind": "Namespace", "metadata": {"name": case::NAMESPACE}});
    let demo = json!({"apiVersion": "v1", "kind": "ConfigMap", "metadata": {"name": "demo", "namespace": "default"},
        "data": {"ECHO_VALUE": "Hello"}});
    vec![
        (objects::kind("", "v1", "Namespace", "namespaces"), object(namespace)),
        (objects::kind("", "v1", "ConfigMap", "configmaps"), object(demo)),
    ]
}

/// What other controllers would do: the same on both servers.
fn others() -> Scenario {
    let rule = |api_version: &str, kind: &str, available: bool, status: Value| scenario::Rule {
        when: Some(scenario::Trigger {
            api_version: api_version.to_owned(),
            kind: kind.to_owned(),
            ..scenario::Trigger::default()
        }),
        available,
        status: status.as_object().cloned().unwrap_or_else(Map::new),
        ..scenario::Rule::default()
    };
    let rules = vec![
        rule("apps/v1", "Deployment", true, json!({})),
        rule("apps/v1", "StatefulSet", true, json!({})),
        rule("v1", "Pod", false, json!({"phase": "Running"})),
    ];
    Scenario { rules, ..Scenario::default() }
}
