use proptest::prelude::*;

use super::*;

fn oci(host: &str, sub_path: &str, plain_http: bool) -> RepositoryRef {
    RepositoryRef::Oci { host: host.into(), sub_path: sub_path.into(), plain_http }
}

fn check(text: &str, repository: RepositoryRef, component: &str, version: Option<&str>) {
    let expected = SourceRef::Component {
        repositories: vec![repository],
        component: component.to_owned(),
        version: version.map(str::to_owned),
    };
    assert_eq!(SourceRef::parse(text).unwrap(), expected, "{text}");
}

#[test]
fn reads_every_spelling_of_a_component_in_a_repository() {
    let name = "acme.example/platform";
    check("ghcr.io/org//acme.example/platform:1.0.0", oci("ghcr.io", "org", false), name, Some("1.0.0"));
    check("ghcr.io/a/b//acme.example/platform", oci("ghcr.io", "a/b", false), name, None);
    check("http://127.0.0.1:25000//acme.example/platform:>=1.0.0 <2", oci("127.0.0.1:25000", "", true), name, Some(">=1.0.0 <2"));
    check("OCIRegistry::https://h.example/x//acme.example/platform:v1", oci("h.example", "x", false), name, Some("v1"));
    check("oci::http://h.example//acme.example/platform", oci("h.example", "", true), name, None);
    check("oci://h.example/x//acme.example/platform", oci("h.example", "x", false), name, None);
    check("h.example/x/component-descriptors/acme.example/platform:1.0.0", oci("h.example", "x", false), name, Some("1.0.0"));
    check(
        "127.0.0.1:25000/x//acme.example/platform:2.0.0-rc.1+build.7",
        oci("127.0.0.1:25000", "x", false),
        name,
        Some("2.0.0-rc.1+build.7"),
    );
    check("ctf::dir/x//acme.example/platform:1", RepositoryRef::Ctf("dir/x".into()), name, Some("1"));
    check("./a.tgz//acme.example/platform", RepositoryRef::Ctf("./a.tgz".into()), name, None);
    check("a.tar//acme.example/platform", RepositoryRef::Ctf("a.tar".into()), name, None);
    check("CommonTransportFormat::/abs//acme.example/platform", RepositoryRef::Ctf("/abs".into()), name, None);
    check("ctf+tgz::./a.tgz//acme.example/platform", RepositoryRef::Ctf("./a.tgz".into()), name, None);
    check("http://[::1]:5000/x//acme.example/platform:1.0.0", oci("[::1]:5000", "x", true), name, Some("1.0.0"));
    check("localhost:8080//acme.example/platform", oci("localhost:8080", "", false), name, None);
    check("localhost/x//acme.example/platform", oci("localhost", "x", false), name, None);
    check("OCIRepository/v1::h.example/x//acme.example/platform", oci("h.example", "x", false), name, None);
    check(
        r#"{"type":"OCIRegistry","baseUrl":"http://h.example:5000","subPath":"x"}//acme.example/platform:1.0.0"#,
        oci("h.example:5000", "x", true),
        name,
        Some("1.0.0"),
    );
    check(r#"oci::{"baseUrl":"https://h.example/x"}//acme.example/platform"#, oci("h.example", "x", false), name, None);
    check(r#"{"type":"ctf","filePath":"a//b"}//acme.example/platform"#, RepositoryRef::Ctf("a//b".into()), name, None);
    check("h.example/x//acme.example/platform: ~1.2 ", oci("h.example", "x", false), name, Some("~1.2"));
}

#[test]
fn takes_everything_else_for_a_path() {
    for text in ["distributions/open-control-plane-kind", "channel.tgz", "./platform.yaml", "ctf::x.tgz"] {
        let path = text.trim_start_matches("ctf::");
        assert_eq!(SourceRef::parse(text).unwrap(), SourceRef::Path(path.into()));
    }
}

#[test]
fn a_registry_without_a_component_means_the_only_channel_there() {
    for (text, repository) in
        [("h.example/x//", oci("h.example", "x", false)), ("http://h.example//", oci("h.example", "", true))]
    {
        let read = SourceRef::parse(text).unwrap();
        assert_eq!(read, SourceRef::Registry(repository));
        assert_eq!(read.to_string(), text);
    }
    assert_eq!(SourceRef::parse("./x.tgz//").unwrap(), SourceRef::Path("./x.tgz".into()));
}

#[test]
fn refuses_what_is_no_source() {
    for text in [
        "",
        " ",
        "http://h.example/x",
        "ghcr.io//nodomain",
        "ftp://h//acme.example/x",
        "s3::b//acme.example/x",
        "a b//acme.example/x",
        "h:99999//acme.example/x",
        "h.example//Acme.example/x",
        "h.example/../x//acme.example/x",
        "h\n//acme.example/x",
        "{\"type\":\"s3\"}//acme.example/x",
        "{\"type\":\"oci\"}//acme.example/x",
        "{//acme.example/x",
    ] {
        assert!(SourceRef::parse(text).is_err(), "{text:?} was accepted");
    }
}

#[test]
fn logins_are_refused_and_not_said() {
    for text in [
        "u:SRCPW@h.example//acme.example/x",
        "u:SRCPW@h.example/x",
        "https://u:SRCPW@h.example/x//acme.example/x",
        "oci::u:SRC/PW@h.example//acme.example/x",
        "u:SRCPW@h.example//Acme.example/x",
    ] {
        let error = SourceRef::parse(text).unwrap_err().to_string();
        assert!(!error.contains("PW") && error.contains("…@h.example"), "{error}");
    }
    let error =
        RepositoryRef::from_value(&json!({"type": "oci", "baseUrl": "https://u:SRCPW@h.example"})).unwrap_err().to_string();
    assert!(!error.contains("PW") && error.contains("…@h.example"), "{error}");
    assert_eq!(SourceRef::parse("a@b/c").unwrap(), SourceRef::Path("a@b/c".into()));
}

#[test]
fn specifications_go_both_ways() {
    for text in ["h.example", "http://h.example:5000/a/b", "ctf::x.tgz"] {
        let repository = RepositoryRef::parse(text).unwrap();
        assert_eq!(RepositoryRef::from_value(&repository.specification()).unwrap(), repository);
        assert_eq!(RepositoryRef::parse(&repository.to_string()).unwrap(), repository);
    }
    let with_path = json!({"type": "ociRegistry/v1", "baseUrl": "https://h.example/a", "subPath": "/b"});
    assert_eq!(RepositoryRef::from_value(&with_path).unwrap(), oci("h.example", "a/b", false));
    for bad in [
        json!({"type": "S3"}),
        json!({"type": "OCIRegistry"}),
        json!(7),
        json!({"type": "ctf"}),
        json!({"type": "OCIRegistry", "baseUrl": "h", "componentNameMapping": "sha256-digest"}),
    ] {
        assert!(RepositoryRef::from_value(&bad).is_err(), "{bad}");
    }
}

#[test]
fn a_platform_names_its_source_relative_to_its_file() {
    let platform = |channel: &str, version: Option<&str>, repositories: Vec<Value>| PlatformSource {
        channel: channel.into(),
        version: version.map(str::to_owned),
        repositories,
        ..PlatformSource::default()
    };
    let base = Path::new("/base");
    assert_eq!(SourceRef::from_platform(&platform("x.tgz", None, vec![]), base).unwrap(), SourceRef::Path("/base/x.tgz".into()));
    let several = platform("acme.example/c", Some("1.x"), vec![json!("h.example"), json!("ctf::x")]);
    let SourceRef::Component { repositories, version, .. } = SourceRef::from_platform(&several, base).unwrap() else { panic!() };
    assert_eq!(repositories, vec![oci("h.example", "", false), RepositoryRef::Ctf("/base/x".into())]);
    assert_eq!(version.as_deref(), Some("1.x"));
    assert!(SourceRef::from_platform(&platform("x.tgz", None, vec![json!("h.example")]), base).is_err());
}

proptest! {
    #[test]
    fn never_panics(text in "\\PC{0,60}") {
        let _ = SourceRef::parse(&text);
        let _ = RepositoryRef::parse(&text);
    }

    #[test]
    fn never_panics_near_the_grammar(text in "(ctf|oci|http|https)?(::|://)?[a-z./:]{0,12}(//)?[a-z./:\\-+]{0,20}") {
        if let Ok(source) = SourceRef::parse(&text) {
            let _ = SourceRef::parse(&source.to_string());
        }
    }
}
