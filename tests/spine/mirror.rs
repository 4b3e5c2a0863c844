//! From a mirror that holds everything: the source only says which channel, and every image in the cluster is the mirror's.

use std::{fs, path::Path};

use kube::{Api, api::DynamicObject};
use plinth_releasechannel::{Contents, Options, Registries, RepositoryRef, push};
use plinth_run::{EventKind, Outcome};
use plinth_support::{ApiServer, Identity, Registry, RegistryOptions};
use serde_json::{Value, json};
use tempfile::TempDir;

use crate::{
    distribution::{Distribution, PLATFORM},
    plinth::{Run, plinth},
    watch::{resource, seen},
    world::World,
};

/// Path below the mirror's host.
const SITE: &str = "site";
const IMAGES: [&str; 4] = ["openmcp-operator", "cluster-provider-kind", "platform-service-gateway", "platform-service-dns"];

/// A channel as one archive, made where its images are; nothing else of that place is left.
pub(crate) struct Parcel {
    _folder: TempDir,
    pub(crate) distribution: Distribution,
    /// The archive.
    pub(crate) archive: String,
}

impl Parcel {
    pub(crate) async fn pack() -> Self {
        let origin = Registry::start().unwrap();
        let distribution = Distribution::sample();
        let channel = distribution.file("channel.yaml");
        let text = fs::read_to_string(&channel).unwrap();
        fs::write(&channel, text.replace("ghcr.io/", &format!("{}/", origin.host()))).unwrap();
        let options = options(&origin);
        send(&images(&text), &RepositoryRef::parse(&origin.host()).unwrap(), &options).await;

        let folder = TempDir::with_prefix("plinth-parcel-").unwrap();
        let archive = folder.path().join("bundle.tgz").display().to_string();
        let create = ["bundle", "create", &distribution.source(), "-f", &archive, "--plain-http", &origin.host()];
        plinth(&create).await.with_code(0);
        Self { archive, _folder: folder, distribution }
    }

    /// One that was packed by another process.
    pub(crate) fn at(archive: &str, distribution: &str) -> Self {
        let folder = TempDir::with_prefix("plinth-parcel-").unwrap();
        Self { _folder: folder, distribution: Distribution::at(Path::new(distribution)), archive: archive.to_owned() }
    }

    /// Pushes the archive below [`SITE`].
    pub(crate) async fn push(&self, mirror: &Registry) {
        let place = place(mirror);
        let (ca, docker) = (mirror.ca().display().to_string(), mirror.docker_config());
        let trust: &[&str] = if mirror.options().tls { &["--ca", &ca] } else { &[] };
        let push = [&["bundle", "push", &self.archive, &place][..], trust].concat();
        Run::start_with(&push, &[("DOCKER_CONFIG", &docker)]).finish().await.with_code(0);
    }
}

/// `http://HOST/site` or `HOST/site`.
pub(crate) fn place(mirror: &Registry) -> String {
    let scheme = if mirror.options().tls { "" } else { "http://" };
    format!("{scheme}{}/{SITE}", mirror.host())
}

fn options(registry: &Registry) -> Options {
    let mut options = Options { no_user_config: true, ..Options::default() };
    if registry.options().tls {
        options.ca_files.push(registry.ca());
    } else {
        options.plain_http.insert(registry.host());
    }
    if registry.options().login.is_some() {
        options.docker_config = Some(registry.docker_config().join("config.json"));
    }
    options
}

async fn send(contents: &Contents, target: &RepositoryRef, options: &Options) {
    push(contents, target, &Registries::new(options).unwrap()).await.unwrap();
}

/// An image of one small layer for each that the channel names, under its own name.
fn images(channel: &str) -> Contents {
    let mut contents = Contents::default();
    let references = channel.split("imageReference: \"ghcr.io/").skip(1).filter_map(|rest| rest.split('"').next());
    for reference in references {
        let mut blob = |bytes: Vec<u8>, media_type: &str| {
            let size = bytes.len();
            let digest = contents.add_blob(bytes);
            json!({"mediaType": media_type, "digest": digest.as_str(), "size": size})
        };
        let config = blob(b"{}".to_vec(), "application/vnd.oci.image.config.v1+json");
        let layer = blob(reference.as_bytes().to_vec(), "application/vnd.oci.image.layer.v1.tar");
        let media_type = "application/vnd.oci.image.manifest.v1+json";
        let manifest = json!({"schemaVersion": 2, "mediaType": media_type, "config": config, "layers": [layer]});
        let digest = contents.add_blob(manifest.to_string().into_bytes());
        let (repository, tag) = reference.rsplit_once(':').unwrap();
        contents.artifacts.push(plinth_releasechannel::ctf::IndexEntry {
            repository: repository.to_owned(),
            tag: Some(tag.to_owned()),
            digest,
            media_type: media_type.to_owned(),
        });
    }
    contents
}

/// Every image in the cluster is the mirror's, by digest, and the Repository is the mirror.
pub(crate) async fn assert_mirrored(world: &World, mirror: &Registry) {
    let client = world.client().await;
    let text = async |api: Api<DynamicObject>, name: &str, path: &str| {
        api.get(name).await.unwrap().data.pointer(path).and_then(Value::as_str).unwrap_or_default().to_owned()
    };
    let deployments = Api::default_namespaced_with(client.clone(), &resource("apps", "v1", "Deployment", "deployments"));
    let providers = Api::all_with(client.clone(), &resource("openmcp.cloud", "v1alpha1", "ClusterProvider", "clusterproviders"));
    let services =
        || Api::all_with(client.clone(), &resource("openmcp.cloud", "v1alpha1", "PlatformService", "platformservices"));
    let found = [
        text(deployments, "openmcp-operator", "/spec/template/spec/containers/0/image").await,
        text(providers, "kind", "/spec/image").await,
        text(services(), "platform-service-gateway", "/spec/image").await,
        text(services(), "platform-service-dns", "/spec/image").await,
    ];
    for (image, name) in found.iter().zip(IMAGES) {
        let start = format!("{}/{SITE}/openmcp-project/images/{name}", mirror.host());
        assert!(image.starts_with(&start) && image.contains("@sha256:"), "{image} is not {start}");
    }
    let repositories = resource("delivery.ocm.software", "v1alpha1", "Repository", "repositories");
    let repository: DynamicObject =
        Api::default_namespaced_with(client.clone(), &repositories).get("openmcp-repository").await.unwrap();
    let specification = repository.data["spec"]["repositorySpec"].to_string();
    assert!(specification.contains(&mirror.host()) && specification.contains(SITE), "{specification}");
}

/// Channel → archive → mirror with TLS and a password → cluster.
#[tokio::test(flavor = "multi_thread")]
async fn show_04_mirror() {
    let parcel = Parcel::pack().await;
    let login = Some(("ann".to_owned(), "secret".to_owned()));
    let mirror = Registry::start_with(RegistryOptions { tls: true, login }).unwrap();
    parcel.push(&mirror).await;
    let world = World::start(&parcel.distribution).await;
    let (ca, docker, place) = (mirror.ca().display().to_string(), mirror.docker_config(), place(&mirror));
    let kubeconfig = world.kubeconfig();

    // The source names a registry that does not exist: only its component counts.
    let source = format!("registry.invalid/x//{PLATFORM}:v0.0.4");
    // No kubelet runs here: on a node the controller comes from the mirror too (tests/node).
    let more = ["--mirror", &place, "--ca", &ca, "--controller", "none"];
    let plan = ["plan", &source, "--kubeconfig", &kubeconfig, "-o", "json"];
    let environment: &[(&str, &Path)] = &[("DOCKER_CONFIG", &docker)];
    let plan = Run::start_with(&[&plan[..], &more].concat(), environment).finish().await.with_code(0);
    let plan: Value = serde_json::from_str(&plan.stdout).unwrap();
    assert_eq!(plan["source"], source.as_str());

    let journal = world.journal().display().to_string();
    let up = ["up", &source, "--apply", "-o", "json", "--kubeconfig", &kubeconfig, "--journal", &journal];
    let up = Run::start_with(&[&up[..], &more].concat(), environment).finish().await.with_code(0);
    assert_eq!(up.outcome(), Outcome::Done);
    let passed = |event: &EventKind| matches!(event, EventKind::CheckFinished { id, message, .. } if id.0 == "images-in-mirror" && message.starts_with("4 images"));
    assert!(up.events().iter().any(passed), "{:?}", up.events());
    assert!(!up.stdout.contains("secret"));
    assert_mirrored(&world, &mirror).await;
    eprintln!("SHOW 04 mirror exit 0, 4 images of the mirror by digest");
}

/// A mirror that no bundle brought plinth to gets the running executable, and the controller's image is that one; a plan sends nothing.
#[tokio::test(flavor = "multi_thread")]
async fn a_mirror_without_plinth_gets_it() {
    let parcel = Parcel::pack().await;
    let mirror = Registry::start().unwrap();
    let mut partial = Contents::open(Path::new(&parcel.archive), &Options::default().limits).unwrap();
    partial.artifacts.retain(|entry| !entry.repository.contains("plinth.dev/"));
    let target = RepositoryRef::parse(&format!("{}/{SITE}", mirror.host())).unwrap();
    send(&partial, &target, &options(&mirror)).await;
    let world = World::start(&parcel.distribution).await;
    let manifest = format!("{}/v2/{SITE}/plinth.dev/plinth/manifests/v{}", mirror.url(), env!("CARGO_PKG_VERSION"));
    let accept = "application/vnd.oci.image.manifest.v1+json";
    let ask = || mirror.client().get(&manifest).header("accept", accept);
    let is_there = async || ask().send().await.unwrap().status().is_success();

    plinth(&["plan", &parcel.archive, "--kubeconfig", &world.kubeconfig(), "--mirror", &place(&mirror)]).await.with_code(0);
    assert!(!is_there().await, "a plan has sent it");
    // Nobody runs it here: the run waits for a pod until it is ended.
    let up = world.start_up(&parcel.archive, &["--mirror", &place(&mirror)]);
    let client = world.client().await;
    let kind = resource("apps", "v1", "Deployment", "deployments");
    seen(client.clone(), &kind, Some("plinth-system"), "plinth", |_| true).await.unwrap();
    assert!(is_there().await);
    up.kill();
    let deployment = Api::<DynamicObject>::namespaced_with(client, "plinth-system", &kind).get("plinth").await.unwrap();
    let image = deployment.data["spec"]["template"]["spec"]["containers"][0]["image"].as_str().unwrap().to_owned();
    let start = format!("{}/{SITE}/plinth.dev/plinth:v{}@sha256:", mirror.host(), env!("CARGO_PKG_VERSION"));
    assert!(image.starts_with(&start), "{image}");
}

/// A whole rehearsal asks the mirror for each component version once: a manifest and a descriptor.
#[tokio::test(flavor = "multi_thread")]
async fn show_04_rehearsal_budget() {
    let parcel = Parcel::pack().await;
    let mirror = Registry::start().unwrap();
    parcel.push(&mirror).await;
    let before = mirror.asked().unwrap().len();
    let source = format!("registry.invalid/x//{PLATFORM}:v0.0.4");
    plinth(&["rehearse", &source, "--mirror", &place(&mirror), "--no-cache"]).await.with_code(0);
    let asked = mirror.asked().unwrap().split_off(before);
    // Whether the Repository answers is asked each time; that is no content.
    let is_content = |line: &&String| line.contains("/component-descriptors/") && !line.contains("/tags/");
    let of_components: Vec<&String> = asked.iter().filter(is_content).collect();
    let mut once = of_components.clone();
    once.sort();
    once.dedup();
    assert!(!once.is_empty() && once.len() == of_components.len(), "{of_components:#?}");
    eprintln!("SHOW 04 rehearsal-budget {} requests, {} for components, none twice", asked.len(), of_components.len());
}

/// Images are found beside their component too, and a mirror without the channel is refused.
#[tokio::test(flavor = "multi_thread")]
async fn a_mirror_is_looked_through_before_anything_is_written() {
    let parcel = Parcel::pack().await;
    let mirror = Registry::start().unwrap();
    let mut partial = Contents::open(Path::new(&parcel.archive), &Options::default().limits).unwrap();
    partial.artifacts.retain(|entry| !entry.repository.contains("images/"));
    let target = RepositoryRef::parse(&format!("{}/{SITE}", mirror.host())).unwrap();
    send(&partial, &target, &options(&mirror)).await;
    let server = tokio::task::spawn_blocking(ApiServer::shared).await.unwrap();
    let kubeconfig = server.kubeconfig(Identity::Admin).display().to_string();
    let plan = async |mirror: &str| plinth(&["plan", &parcel.archive, "--kubeconfig", &kubeconfig, "--mirror", mirror]).await;
    plan(&place(&mirror)).await.with_code(0);
    let refused = plan(&format!("http://{}/nowhere", mirror.host())).await.with_code(4);
    assert!(refused.stderr.contains("open-control-plane-platform"), "{}", refused.stderr);
}
