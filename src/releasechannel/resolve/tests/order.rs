//! Several repositories, channels in channels, and umbrellas that hold more than references.

use super::*;
use crate::ctf::{Contents, Format};
use crate::registry::{Registries, push};
use crate::testing::{RealRegistry, Stub, http};

fn part(wanted: &[&str]) -> Contents {
    let mut some = Contents::open(&ctf("v1"), &Limits::default()).unwrap();
    some.artifacts.retain(|entry| wanted.iter().any(|wanted| entry.repository.contains(wanted)));
    some
}

/// A Platform file with repositories in this order.
fn platform(folder: &Path, repositories: &[String]) -> SourceRef {
    let path = folder.join("platform.yaml");
    let list: Vec<String> = repositories.iter().map(|place| format!("'{place}'")).collect();
    let text = format!(
        "apiVersion: plinth.dev/v1alpha1\nkind: Platform\nspec:\n  source: {{channel: acme.example/releasechannel/stable, repositories: [{}]}}\n",
        list.join(", ")
    );
    std::fs::write(&path, text).unwrap();
    SourceRef::Path(path)
}

/// An artifact's versions and places may be spread over registries and archives: the first that has a component version gives it.
#[tokio::test]
async fn repositories_are_asked_in_order() {
    let registry = RealRegistry::start().await;
    let options = Options { plain_http: [registry.host.clone()].into(), ..offline() };
    let registries = Registries::new(&options).unwrap();
    push(&part(&["gateway", "notifier"]), &RepositoryRef::parse(&format!("{}/a", registry.host)).unwrap(), &registries)
        .await
        .unwrap();
    let folder = tempfile::tempdir().unwrap();
    for (name, wanted) in [("channel", &["releasechannel"][..]), ("rest", &["services"])] {
        part(wanted).write(&folder.path().join(name), Format::Folder).unwrap();
    }
    let place = |name: &str| format!("ctf::{}", folder.path().join(name).display());
    let source = platform(folder.path(), &[place("channel"), format!("{}/a", registry.host), place("rest")]);
    let channel = inspect(&source, &Selection::default(), &options).await.unwrap();
    let found = |name: &str| -> Vec<usize> {
        channel
            .lock
            .components
            .iter()
            .filter(|component| component.name.ends_with(name))
            .map(|component| component.repository)
            .collect()
    };
    assert_eq!(
        (found("stable"), found("gateway"), found("notifier"), found("ledger")),
        (vec![0], vec![1, 1], vec![1], vec![2, 2])
    );
    assert_eq!(channel.lock.repositories.len(), 3);

    let turned = platform(folder.path(), &[place("channel"), place("rest"), format!("{}/a", registry.host)]);
    let channel = inspect(&turned, &Selection::default(), &options).await.unwrap();
    assert!(channel.lock.components.iter().all(|component| component.repository < 2));
    let without = platform(folder.path(), &[place("channel"), format!("{}/a", registry.host)]);
    let error = inspect(&without, &Selection::default(), &options).await.unwrap_err();
    assert!(matches!(&error, ResolveError::BrokenReference { searched, .. } if searched.len() == 2), "{error}");
}

/// What does not answer is not taken for what does not have it: the next place could have something else under that name.
#[tokio::test]
async fn a_repository_that_is_down_is_not_passed_over() {
    let down = Stub::start(|_, _| http("503 Service Unavailable", &[], b"")).await;
    let options = Options { plain_http: [down.host.clone()].into(), ..offline() };
    let folder = tempfile::tempdir().unwrap();
    part(&["services", "releasechannel"]).write(&folder.path().join("all"), Format::Folder).unwrap();
    let source = platform(folder.path(), &[down.host.clone(), format!("ctf::{}", folder.path().join("all").display())]);
    let error = inspect(&source, &Selection::default(), &options).await.unwrap_err();
    assert_eq!(error.kind(), ErrorKind::Unavailable);
}

const NESTED: &str = "
components:
  - {name: acme.example/app, version: 1.0.0, provider: {name: acme}}
  - {name: acme.example/app, version: 2.0.0, provider: {name: acme}}
  - name: acme.example/channel/inner
    version: 2026.1.0
    provider: {name: acme}
    componentReferences:
      - {name: app-old, componentName: acme.example/app, version: 1.0.0}
      - {name: app, componentName: acme.example/app, version: 2.0.0}
  - name: acme.example/channel/outer
    version: 2026.2.0
    provider: {name: acme}
    componentReferences:
      - {name: inner, componentName: acme.example/channel/inner, version: 2026.1.0}
      - {name: app, componentName: acme.example/app, version: 2.0.0}
    resources:
      - {name: notes, type: text, version: 1.0.0, relation: local, input: {type: utf8, text: read me}}
";

fn nested() -> tempfile::TempDir {
    let folder = tempfile::tempdir().unwrap();
    std::fs::write(folder.path().join("channel.yaml"), NESTED).unwrap();
    folder
}

#[tokio::test]
async fn channels_lie_in_channels_and_selections_reach_down() {
    let folder = nested();
    let source = SourceRef::parse(folder.path().to_str().unwrap()).unwrap();
    let channel = inspect(&source, &Selection::default(), &offline()).await.unwrap();
    assert_eq!(channel.root.name, "acme.example/channel/outer");
    assert_eq!(channel.lock.components.len(), 4);
    let inner = ComponentVersion::new("acme.example/channel/inner", "2026.1.0");
    assert_eq!(channel.reachable(&inner).len(), 3);
    let selection = Selection { select: [("acme.example/app".to_owned(), "1.x".to_owned())].into(), ..Selection::default() };
    let error = inspect(&source, &selection, &offline()).await.unwrap_err();
    assert!(matches!(&error, ResolveError::NoVersion { there, .. } if there == &["2.0.0"]), "{error}");
    let selection = Selection { select: [("acme.example/app".to_owned(), ">=2".to_owned())].into(), ..Selection::default() };
    assert_eq!(inspect(&source, &selection, &offline()).await.unwrap().lock.components.len(), 3);
}

/// Accepted, and said.
#[tokio::test]
async fn an_umbrella_may_have_resources_of_its_own() {
    let folder = nested();
    let source = SourceRef::parse(folder.path().to_str().unwrap()).unwrap();
    let channel = inspect(&source, &Selection::default(), &offline()).await.unwrap();
    assert_eq!(
        channel.remarks,
        ["acme.example/channel/outer:2026.2.0 has 1 resources of its own beside its 2 component references"]
    );
    assert_eq!(&channel.fetch(&channel.root, "notes").await.unwrap()[..], b"read me");
    let blobs = tempfile::tempdir().unwrap();
    assert_eq!(crate::bundle::create(&channel, blobs.path(), &crate::bundle::Kept::default()).await.unwrap().resources, 1);
    let plain = from(&ctf("v1"), "acme.example/releasechannel/stable").await.unwrap();
    assert_eq!(plain.remarks, [""; 0]);
}

/// A Platform brings the authority that its registry needs; without it nothing is read.
#[tokio::test]
async fn a_platform_brings_the_authority_of_its_source() {
    let registry = RealRegistry::with_tls().await;
    let authority = std::fs::read_to_string(registry.folder.path().join("ca.pem")).unwrap();
    let options = Options { ca_pem: vec![authority.clone()], ..offline() };
    let target = RepositoryRef::parse(&registry.host).unwrap();
    push(&part(&["nest"]), &target, &Registries::new(&options).unwrap()).await.unwrap();
    let folder = tempfile::tempdir().unwrap();
    let path = folder.path().join("platform.yaml");
    let resolved = async |source: Value| {
        let document = serde_json::json!({"apiVersion": "plinth.dev/v1alpha1", "kind": "Platform", "spec": {"source": source}});
        std::fs::write(&path, document.to_string()).unwrap();
        inspect(&SourceRef::Path(path.clone()), &Selection::default(), &offline()).await
    };
    let channel = format!("{}//acme.example/nest/a", registry.host);
    let found = resolved(serde_json::json!({"channel": channel, "ca": authority})).await.unwrap();
    assert_eq!(found.lock.components.len(), 4);
    let error = resolved(serde_json::json!({"channel": channel})).await.unwrap_err();
    assert!(error.to_string().contains("certificate"), "{error}");
    let error = resolved(serde_json::json!({"channel": channel, "ca": "no certificate"})).await.unwrap_err();
    assert!(matches!(error, ResolveError::Option { .. }), "{error}");
}

/// `.build-` in a prerelease may be a `+` or itself: the descriptor says which (ocm.md 3.1).
#[tokio::test]
async fn a_prerelease_that_looks_like_build_metadata_is_found() {
    let folder = tempfile::tempdir().unwrap();
    let mut contents = Contents::default();
    for version in ["1.0.0-x.build-3", "1.0.0-rc.1+build.7", "1.0.0+a"] {
        crate::testing::add(&mut contents, "acme.example/app", version, serde_json::json!({}));
    }
    let path = folder.path().join("app.tar");
    contents.write(&path, Format::Tar).unwrap();
    for (wanted, expected) in [
        (">=1.0.0-s", "1.0.0+a"),
        (">=1.0.0-s <1.0.0", "1.0.0-x.build-3"),
        ("1.0.0-x.build-3", "1.0.0-x.build-3"),
        ("<1.0.0-s", "1.0.0-rc.1+build.7"),
        ("1.0.0-rc.1.build-build.7", "1.0.0-rc.1+build.7"),
    ] {
        let found = from(&path, &format!("acme.example/app:{wanted}")).await;
        assert_eq!(found.unwrap_or_else(|error| panic!("{wanted}: {error}")).root.version, expected, "{wanted}");
    }
    let only = inspect(&SourceRef::Path(path), &Selection::default(), &offline()).await.unwrap();
    assert_eq!(only.root.version, "1.0.0+a");
}

/// A component version with 100 000 references is refused by their number, before any of them is asked for.
#[tokio::test]
async fn more_references_than_anybody_has_are_refused_unasked() {
    let mut contents = crate::ctf::Contents::default();
    let reference = |at: usize| serde_json::json!({"name": format!("r{at}"), "componentName": "acme.example/leaf", "version": format!("1.0.{at}")});
    let references: Vec<_> = (0..100_000).map(reference).collect();
    crate::testing::add(&mut contents, "acme.example/top", "1.0.0", serde_json::json!({"componentReferences": references}));
    let stub = crate::testing::Stub::start(crate::testing::serving(contents)).await;
    let options = crate::Options { plain_http: [stub.host.clone()].into(), ..offline() };
    let source = SourceRef::parse(&format!("{}//acme.example/top:1.0.0", stub.host)).unwrap();
    let error = inspect(&source, &Selection::default(), &options).await.unwrap_err();
    assert_eq!(error.kind(), ErrorKind::Refused);
    assert!(error.to_string().contains("references") && error.to_string().contains("10000"), "{error}");
    assert!(stub.seen().len() <= 3, "{} requests", stub.seen().len());
}
