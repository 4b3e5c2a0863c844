//! Logins, trust and requests.

use super::{channel, corpus, plain, serving};
use crate::constructor::pack;
use crate::error::ErrorKind;
use crate::options::{Credential, Limits, Options};
use crate::registry::{Registries, push};
use crate::source::RepositoryRef;
use crate::testing::{RealRegistry, Stub, offline};

const CHANNEL: &str = "acme.example/releasechannel/stable:2026.11.0";
/// `acme-user:acme-pass`.
const AUTH: &str = "YWNtZS11c2VyOmFjbWUtcGFzcw==";

fn login(host: &str) -> Options {
    let credential = Credential::Basic { user: "acme-user".into(), password: "acme-pass".into() };
    Options { credentials: [(host.to_owned(), credential)].into(), ..plain(host) }
}

fn consumer(more: &str) -> String {
    format!(
        "  - identity: {{type: OCIRegistry, hostname: 127.0.0.1{more}}}\n    credentials:\n    - type: Credentials\n      properties: {{username: acme-user, password: acme-pass}}\n"
    )
}

fn ocm_config(consumers: &str) -> String {
    format!(
        "type: generic.config.ocm.software/v1\nconfigurations:\n- type: credentials.config.ocm.software\n  consumers:\n{consumers}"
    )
}

pub(super) async fn credentials() {
    let registry = RealRegistry::with_password().await;
    let (host, port) = (registry.host.clone(), registry.host.rsplit_once(':').unwrap().1.to_owned());
    let target = RepositoryRef::parse(&host).unwrap();
    push(&corpus("v1"), &target, &Registries::new(&login(&host)).unwrap()).await.unwrap();
    let docker = |key: &str| Options {
        docker_config_texts: vec![format!(r#"{{"auths": {{"{key}": {{"auth": "{AUTH}"}}}}}}"#)],
        ..plain(&host)
    };
    let ocm = |more: &str| Options { ocm_config_texts: vec![ocm_config(&consumer(more))], ..plain(&host) };
    let source = format!("{host}//{CHANNEL}");
    for (spelling, options) in [
        ("docker host:port", docker(&host)),
        ("docker http://host:port", docker(&format!("http://{host}"))),
        ("docker host", docker("127.0.0.1")),
        ("ocm with port", ocm(&format!(", port: \"{port}\""))),
        ("ocm with a port that is a number", ocm(&format!(", port: {port}"))),
        ("ocm without port", ocm("")),
    ] {
        channel(&source, &options).await.unwrap_or_else(|error| panic!("{spelling}: {error}"));
    }
    for options in [plain(&host), ocm(", port: \"1\""), docker("127.0.0.2")] {
        assert_eq!(channel(&source, &options).await.unwrap_err().kind(), ErrorKind::Refused);
    }
}

pub(super) async fn thirty_versions() {
    let component = |n: usize| format!("- {{name: acme.example/many, version: 1.{n}.0, provider: {{name: acme}}}}\n");
    let folder = super::folder(&format!("components:\n{}", (0..30).map(component).collect::<String>()));
    let stub = Stub::start(serving(pack(folder.path(), &Limits::default()).unwrap())).await;
    let options = plain(&stub.host);
    let found = channel(&format!("{}//acme.example/many", stub.host), &options).await.unwrap();
    assert_eq!(found.root.version, "1.29.0");
    assert_eq!(stub.seen().len(), 3, "one list, one manifest, one descriptor");
    assert_eq!(found.repositories()[0].versions("acme.example/many").await.unwrap().len(), 30);
    assert_eq!(stub.seen().len(), 3, "a list is asked for once within a run");
}

/// The umbrella is in a public registry; its parts are in one that wants a login.
pub(super) async fn private_children() {
    let (public, private) = (RealRegistry::start().await, RealRegistry::with_password().await);
    for (registry, wanted, options) in
        [(&public, "releasechannel", plain(&public.host)), (&private, "services", login(&private.host))]
    {
        let mut some = corpus("v1");
        some.artifacts.retain(|entry| entry.repository.contains(wanted));
        let target = RepositoryRef::parse(&format!("{}/parts", registry.host)).unwrap();
        push(&some, &target, &Registries::new(&options).unwrap()).await.unwrap();
    }
    let port = private.host.rsplit_once(':').unwrap().1;
    let text = ocm_config(&consumer(&format!(", port: \"{port}\"")))
        + &format!(
            "- type: resolvers.config.ocm.software/v1alpha1\n  resolvers:\n  - repository: {{type: OCIRegistry, baseUrl: \"http://{}\", subPath: parts}}\n    componentNamePattern: \"acme.example/services/*\"\n",
            private.host
        );
    let source = format!("{}/parts//{CHANNEL}", public.host);
    // As a Secret of a cluster has it: the same text, no file.
    let found = channel(&source, &Options { ocm_config_texts: vec![text], ..plain(&public.host) }).await.unwrap();
    assert_eq!((found.lock.components.len(), found.lock.repositories.len()), (6, 2));
    let error = channel(&source, &plain(&public.host)).await.unwrap_err();
    assert!(error.to_string().contains("services"), "{error}");
}

pub(super) async fn untrusted() {
    let registry = RealRegistry::with_tls().await;
    let by_authority = Options { ca_files: vec![registry.folder.path().join("ca.pem")], ..offline() };
    let target = RepositoryRef::parse(&registry.host).unwrap();
    push(&corpus("v1"), &target, &Registries::new(&by_authority).unwrap()).await.unwrap();
    let source = format!("{}//{CHANNEL}", registry.host);
    channel(&source, &by_authority).await.unwrap();
    let refused = channel(&source, &offline()).await.unwrap_err();
    assert!(refused.kind() == ErrorKind::Refused && refused.to_string().contains("certificate"), "{refused}");

    let config = format!(
        "type: generic.config.ocm.software/v1\nconfigurations:\n- type: http.config.ocm.software/v1alpha1\n  hosts:\n    \"{}\": {{insecureSkipVerify: true}}\n",
        registry.host
    );
    let path = registry.folder.path().join("ocmconfig");
    std::fs::write(&path, &config).unwrap();
    let by_host = Options { insecure_tls: [registry.host.clone()].into(), ..offline() };
    let by_file = Options { ocm_config: Some(path), ..offline() };
    for options in [by_host, by_file] {
        let found = channel(&source, &options).await.unwrap();
        assert!(found.remarks.iter().any(|remark| remark.contains(&registry.host)), "{:?}", found.remarks);
    }
    // Another host's switch, and one that a cluster's configuration holds, change nothing.
    let other = Options { insecure_tls: ["127.0.0.2".to_owned()].into(), ..offline() };
    let cluster = Options { ocm_config_texts: vec![config], ..offline() };
    for options in [other, cluster] {
        assert_eq!(channel(&source, &options).await.unwrap_err().kind(), ErrorKind::Refused);
    }
}
