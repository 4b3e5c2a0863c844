//! Where component versions are found, and how they are named.

use super::{archive, channel, corpus, plain};
use crate::bundle;
use crate::error::{RepositoryError, ResolveError};
use crate::options::Options;
use crate::registry::{Registries, push};
use crate::source::RepositoryRef;
use crate::testing::{RealRegistry, Stub, data, http, offline};

const GATEWAY: &str = "acme.example/services/gateway";

pub(super) async fn build_metadata() {
    for asked in ["2.0.0-rc.1+build.7", "2.0.0-rc.1.build-build.7", ">=2.0.0-0"] {
        let found = channel(&archive("v1", &format!("{GATEWAY}:{asked}")), &offline()).await.unwrap();
        assert_eq!(found.root.version, "2.0.0-rc.1+build.7", "{asked}");
        assert_eq!(found.lock.root.version, "2.0.0-rc.1+build.7", "{asked}");
    }
    let gone = channel(&archive("v1", &format!("{GATEWAY}:2.0.0-rc.1.build-build.8")), &offline()).await.unwrap_err();
    assert!(gone.to_string().contains("build-build.8"), "{gone}");
}

pub(super) async fn without_annotation() {
    for name in ["hand/no-annotation", "hand/wrong-annotation", "hand/cnudie"] {
        let entry = corpus(name).artifacts.into_iter().find(|entry| entry.tag.is_some()).unwrap();
        let component = entry.repository.trim_start_matches("component-descriptors/").to_owned();
        let found = channel(&archive(name, &component), &offline()).await.unwrap_or_else(|error| panic!("{name}: {error}"));
        let versions = found.repositories()[0].versions(&component).await.unwrap();
        assert_eq!(versions.join(" "), found.root.version, "{name}");
    }
}

/// The channel's archive has no services; a resolver knows where they are.
pub(super) async fn bare_name() {
    let (own, services) = (tempfile::tempdir().unwrap(), tempfile::tempdir().unwrap());
    for (folder, wanted) in [(&own, "releasechannel"), (&services, "services")] {
        let mut some = corpus("v1");
        some.artifacts.retain(|entry| entry.repository.contains(wanted));
        some.write(folder.path(), crate::Format::Folder).unwrap();
    }
    let source = |wanted: &str| format!("ctf::{}//{GATEWAY}{wanted}", own.path().display());
    assert!(matches!(channel(&source(""), &offline()).await, Err(ResolveError::NoVersion { .. })));
    for config in ["resolvers-legacy.yaml", "resolvers-glob.yaml"] {
        let text = std::fs::read_to_string(data().join("ocm/cfg").join(config)).unwrap();
        let path = own.path().join("ocmconfig");
        std::fs::write(&path, text.replace("./tmp/sv", services.path().to_str().unwrap())).unwrap();
        let options = Options { ocm_config: Some(path), ..offline() };
        for (wanted, expected) in [("", "1.3.0"), (":~1.2", "1.2.0"), (":1.3.0", "1.3.0")] {
            let found = channel(&source(wanted), &options).await.unwrap_or_else(|error| panic!("{config} {wanted}: {error}"));
            assert_eq!(found.root.version, expected, "{config} {wanted}");
        }
        let error = channel(&source(":^7"), &options).await.unwrap_err();
        assert!(matches!(&error, ResolveError::NoVersion { there, .. } if there.len() == 3), "{error}");
    }
}

/// Archives that name the registry of their maker, one that names none, and what is written ourselves: nobody is asked but the source.
pub(super) async fn repository_contexts() {
    for (name, has_contexts) in [("v1-byval", true), ("v2-byval", false)] {
        let found = channel(&archive(name, &format!("{GATEWAY}:1.3.0")), &offline()).await.unwrap();
        let document = &found.descriptor(&found.root).unwrap().document;
        assert_eq!(document["component"]["repositoryContexts"].is_array(), has_contexts, "{name}");
        assert_eq!(found.lock.repositories.len(), 1);
        assert_eq!(found.lock.repositories[0]["type"], "CommonTransportFormat");
        let folder = tempfile::tempdir().unwrap();
        bundle::create(&found, folder.path(), &bundle::Kept::default()).await.unwrap_or_else(|error| panic!("{name}: {error}"));
    }
}

pub(super) async fn everything_there() {
    let registry = RealRegistry::start().await;
    let options = plain(&registry.host);
    for (path, wanted) in [("one", "nest/"), ("many", "")] {
        let mut some = corpus("v1");
        some.artifacts.retain(|entry| entry.repository.contains(wanted) && !entry.repository.contains("broken"));
        let target = RepositoryRef::parse(&format!("{}/{path}", registry.host)).unwrap();
        push(&some, &target, &Registries::new(&options).unwrap()).await.unwrap();
    }
    let only = channel(&format!("{}/one//", registry.host), &options).await.unwrap();
    assert_eq!((only.root.name.as_str(), only.lock.components.len()), ("acme.example/nest/a", 4));
    let several = channel(&format!("{}/many//", registry.host), &options).await.unwrap_err();
    let ResolveError::Choice { choices, .. } = &several else { panic!("{several}") };
    assert!(choices.iter().any(|choice| choice.contains("//acme.example/releasechannel/stable:2026.11.0")), "{choices:?}");

    for status in ["401 Unauthorized", "403 Forbidden", "404 Not Found"] {
        let stub = Stub::start(move |_, _| http(status, &[("www-authenticate", "Basic realm=x")], b"{}")).await;
        let error = channel(&format!("{}//", stub.host), &plain(&stub.host)).await.unwrap_err();
        assert!(matches!(error, ResolveError::Source { .. }), "{status}: {error}");
        assert!(error.to_string().contains("name the component"), "{error}");
        let why = if status.starts_with("404") { "does not list" } else { "refused access to the catalogue" };
        assert!(error.to_string().contains(why), "{status}: {error}");
        let named = channel(&format!("{}//acme.example/nest/a", stub.host), &plain(&stub.host)).await.unwrap_err();
        let is_denied = matches!(named, ResolveError::Repository { source: RepositoryError::Denied { .. }, .. });
        assert_eq!(is_denied, !status.starts_with("404"), "{status}: {named}");
    }
    let listed = channel(&archive("v1", "acme.example/nest/a"), &offline()).await.unwrap();
    assert_eq!(listed.repositories()[0].components().await.unwrap().unwrap().len(), 13);
}
