//! A platform's life on the node: up, to the next release and back, a leader that dies, a child that is deleted, down.

use std::{
    collections::BTreeSet,
    time::{Duration, Instant},
};

use k8s_openapi::api::core::v1::Pod;
use kube::{
    Api, Client, ResourceExt,
    api::{DeleteParams, DynamicObject, ListParams},
};
use plinth_bootstrap::rights;
use plinth_run::{EventKind, Outcome};
use plinth_support::AuditLog;

use crate::{
    account,
    cluster::Node,
    distribution::{Distribution, PLATFORM},
    images::Images,
    plinth::plinth,
    pods,
    watch::{resource, seen},
};

/// Until another one goes on with the platform.
const FOLLOWED_WITHIN: Duration = Duration::from_secs(20);
const HEALED_WITHIN: Duration = Duration::from_secs(2);
/// Longer than anything takes here on a busy machine.
const LIMIT: Duration = Duration::from_mins(2);

/// One platform.
pub(crate) struct Life<'a> {
    node: &'a Node,
    client: Client,
    /// Where its images are.
    place: String,
    /// What is asked of the server in this life.
    audit: AuditLog,
}

impl<'a> Life<'a> {
    /// From a channel in a registry, whose plinth is pulled from there.
    pub(crate) async fn from_the_registry(node: &'a Node, images: &Images) -> Self {
        let host = node.registry.host();
        let began = Instant::now();
        send(node, &images.whole, "channel", &["channel", "pack"]).await;
        eprintln!("SHOW 05 node a channel with its images packed and pushed within {} ms", began.elapsed().as_millis());
        let life = Self::new(node, format!("{host}/channel/")).await;
        let source = format!("{}//{PLATFORM}:v0.0.4", life.place.trim_end_matches('/'));
        life.up(&source, &["--plain-http", &host], "the registry").await;
        life
    }

    /// From an archive that went to a mirror, plinth along with it.
    pub(crate) async fn over_the_gap(node: &'a Node, images: &Images) -> Self {
        let host = node.registry.host();
        let archive = send(node, &images.sample, "site", &["bundle", "create"]).await;
        let life = Self::new(node, format!("{host}/site/")).await;
        let mirror = format!("http://{host}/site");
        life.up(&archive, &["--mirror", &mirror], "an archive in the mirror").await;
        life
    }

    async fn new(node: &'a Node, place: String) -> Self {
        Self { node, client: node.client().await, place, audit: node.server.audit().from_now().unwrap() }
    }

    async fn up(&self, source: &str, more: &[&str], name: &str) {
        let (kubeconfig, journal) = (self.node.kubeconfig(), self.node.journal());
        let fixed =
            ["up", source, "--apply", "-o", "json", "--kubeconfig", &kubeconfig, "--journal", &journal, "--timeout", "3m"];
        let began = Instant::now();
        let run = plinth(&[&fixed, more].concat()).await.with_code(0);
        let took = began.elapsed();
        assert_eq!(run.outcome(), Outcome::Done);
        let handed = |event: &EventKind| matches!(event, EventKind::CheckFinished { id, .. } if id.0 == "handed-over");
        assert!(run.events().iter().any(handed), "{}\n{}", run.stdout, run.stderr);
        let controllers = pods::both(&self.client).await;
        for pod in &controllers {
            let spec = pod.spec.as_ref().unwrap();
            assert_eq!(spec.service_account_name.as_deref(), Some(rights::NAME));
            self.assert_pulled(pod);
        }
        self.assert_pulled(&pods::operator(&self.client).await);
        plinth(&["status", "--wait", "--kubeconfig", &kubeconfig]).await.with_code(0);
        eprintln!("SHOW 05 node from {name} to Ready and handed over {} ms, 3 pods run its images by digest", took.as_millis());
    }

    /// What runs is what was pulled from where the images of this platform are.
    fn assert_pulled(&self, pod: &Pod) {
        let images = pods::images(pod);
        let is_its = |image: &String| image.starts_with(&self.place) && image.contains("@sha256:");
        assert!(!images.is_empty() && images.iter().all(is_its), "{}: {images:?}", pod.name_any());
    }

    /// To the next release and back. The pods do both: what is run here asks them, as an operator does.
    pub(crate) async fn next_and_back(&self, images: &Images) {
        let before = pods::images(&pods::operator(&self.client).await);
        send(self.node, &images.next, "channel", &["channel", "pack"]).await;
        let leader = pods::leader(&self.client, "").await;
        let (took, runs) = self.asked("upgrade", "v0.0.5").await;
        assert!(runs.is_disjoint(&before), "{runs:?}");
        let (back, runs) = self.asked("rollback", "v0.0.4").await;
        assert_eq!(runs, before);
        assert_eq!(pods::leader(&self.client, "").await, leader, "the same process did both");
        eprintln!(
            "SHOW 05 node upgraded to v0.0.5 with another image and all Ready after {} ms, rolled back to v0.0.4 and all Ready after {} ms",
            took.as_millis(),
            back.as_millis()
        );
    }

    /// Asks for another release; how long it took, and which images the operator's pod runs then.
    async fn asked(&self, verb: &str, version: &str) -> (Duration, BTreeSet<String>) {
        let (kubeconfig, host) = (self.node.kubeconfig(), self.node.registry.host());
        let began = Instant::now();
        let moved = plinth(&[verb, "--apply", "--kubeconfig", &kubeconfig, "--plain-http", &host]).await.with_code(0);
        let took = began.elapsed();
        assert!(moved.stderr.contains(&format!("runs {version} and is ready")), "{}", moved.stderr);
        plinth(&["status", "--wait", "--kubeconfig", &kubeconfig]).await.with_code(0);
        let operator = pods::operator(&self.client).await;
        self.assert_pulled(&operator);
        (took, pods::images(&operator))
    }

    /// The leader's pod ends at once: the other one goes on in time and writes nothing that is as it should be.
    pub(crate) async fn leader_dies(&self) {
        let before = pods::leader(&self.client, "").await;
        let (leader, _) = before.split_once('/').unwrap();
        // The journal is written a moment after what it tells of.
        tokio::time::sleep(Duration::from_secs(1)).await;
        let audit = self.node.server.audit().from_now().unwrap();
        let killed = Instant::now();
        pods::kill(&self.client, leader).await;
        let follows = pods::leader(&self.client, &before).await;
        let took = killed.elapsed();
        assert!(!follows.starts_with(leader), "{follows}");
        pods::both(&self.client).await;
        // Time for what should not happen.
        tokio::time::sleep(Duration::from_secs(2)).await;
        let again = account::writes(&audit);
        assert!(again.is_empty(), "{again:#?}");
        assert!(took < FOLLOWED_WITHIN, "{took:?}");
        eprintln!("SHOW 05 node leader's pod killed, the other leads after {} ms, 0 writes repeated", took.as_millis());
    }

    /// A child is deleted; it comes back.
    pub(crate) async fn child_is_deleted(&self) {
        let kind = resource("", "v1", "ConfigMap", "configmaps");
        let name = "openmcp-operator-scheduler-config";
        let audit = self.node.server.audit().from_now().unwrap();
        let maps = Api::<DynamicObject>::default_namespaced_with(self.client.clone(), &kind);
        let old = maps.get(name).await.unwrap().metadata.uid;
        let back = seen(self.client.clone(), &kind, Some("default"), name, move |found| found.metadata.uid != old);
        let began = Instant::now();
        maps.delete(name, &DeleteParams::default()).await.unwrap();
        let took = back.await.unwrap().saturating_duration_since(began);
        assert!(took < HEALED_WITHIN, "{took:?}");
        let writes = account::writes(&audit);
        assert!(writes.iter().any(|write| write.contains(name)), "not by a pod: {writes:?}");
        eprintln!("SHOW 05 node a deleted child back after {} ms", took.as_millis());
    }

    /// The pods' role was enough, and is no more than that.
    pub(crate) async fn account_is_confined(&self) {
        account::assert_refused_nothing(&self.audit);
        let refused = account::assert_confined(self.node, &self.client).await;
        eprintln!(
            "SHOW 05 node the pods run by the computed role alone: 0 of theirs refused, {refused} requests outside it refused"
        );
    }

    /// Everything is taken away, pods too.
    pub(crate) async fn down(&self) {
        let began = Instant::now();
        let down = plinth(&["down", "--apply", "-o", "json", "--kubeconfig", &self.node.kubeconfig()]).await.with_code(0);
        assert_eq!(down.outcome(), Outcome::Done);
        let took = began.elapsed();
        for kind in [
            resource("rbac.authorization.k8s.io", "v1", "ClusterRole", "clusterroles"),
            resource("rbac.authorization.k8s.io", "v1", "ClusterRoleBinding", "clusterrolebindings"),
            resource("apiextensions.k8s.io", "v1", "CustomResourceDefinition", "customresourcedefinitions"),
            resource("", "v1", "Namespace", "namespaces"),
            resource("", "v1", "ConfigMap", "configmaps"),
            resource("", "v1", "ServiceAccount", "serviceaccounts"),
            resource("apps", "v1", "Deployment", "deployments"),
        ] {
            let api = Api::<DynamicObject>::all_with(self.client.clone(), &kind);
            let left = api.list(&ListParams::default().labels("plinth.dev/platform")).await.unwrap();
            let left: Vec<String> = left.iter().map(ResourceExt::name_any).collect();
            assert!(left.is_empty(), "{} is left: {left:?}", kind.kind);
        }
        let namespaces = Api::<DynamicObject>::all_with(self.client.clone(), &resource("", "v1", "Namespace", "namespaces"));
        assert!(namespaces.get_opt(rights::NAMESPACE).await.unwrap().is_none());
        while !pods::names(&self.client, "default").await.is_empty() {
            assert!(began.elapsed() < LIMIT, "pods are left");
            tokio::time::sleep(Duration::from_millis(100)).await;
        }
        eprintln!("SHOW 05 node down after {} ms, nothing of it left", took.as_millis());
    }
}

/// Makes an archive and pushes it below a path of the registry; gives the archive.
pub(crate) async fn send(node: &Node, distribution: &Distribution, path: &str, verb: &[&str]) -> String {
    let archive = distribution.file("archive.tar").display().to_string();
    plinth(&[verb, &[&distribution.source(), "-f", &archive]].concat()).await.with_code(0);
    let host = node.registry.host();
    plinth(&["bundle", "push", &archive, &format!("http://{host}/{path}")]).await.with_code(0);
    archive
}
