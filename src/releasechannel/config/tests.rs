use super::*;

pub(crate) fn configuration(config: &str) -> Configuration {
    let folder = crate::testing::data().join("ocm/cfg");
    let text = std::fs::read_to_string(folder.join(config)).unwrap();
    // The corpus has its docker configurations elsewhere: write the one that the file means.
    let temporary = tempfile::tempdir().unwrap();
    let dc = temporary.path().join("tmp/dc");
    std::fs::create_dir_all(&dc).unwrap();
    for (name, key) in [
        ("config.json", "127.0.0.1:25001"),
        ("config-scheme.json", "http://127.0.0.1:25001"),
        ("config-noport.json", "127.0.0.1"),
    ] {
        std::fs::write(dc.join(name), format!(r#"{{"auths": {{"{key}": {{"auth": "YWNtZS11c2VyOmFjbWUtcGFzcw=="}}}}}}"#))
            .unwrap();
    }
    std::fs::write(dc.join("config-helper.json"), r#"{"credHelpers": {"127.0.0.1:25001": "plinth-test-missing"}}"#).unwrap();
    std::fs::write(dc.join("config-store.json"), r#"{"credsStore": "plinth-test-missing"}"#).unwrap();
    let path = temporary.path().join("config.yaml");
    std::fs::write(&path, text).unwrap();
    Configuration::load(&Options { ocm_config: Some(path), no_user_config: true, ..Options::default() }).unwrap()
}

fn wanted() -> RequestedRepository {
    RequestedRepository::new("127.0.0.1:25001", false, "acme/component-descriptors/acme.example/services/notifier")
}

/// Whether the registry of the corpus would let us in.
pub(crate) fn opens(config: &str) -> Result<bool, HelperError> {
    let right = Credential::Basic { user: "acme-user".into(), password: "acme-pass".into() };
    Ok(configuration(config).credential(&wanted())?.as_ref() == Some(&right))
}

/// Every row of the matrix: we let in where one of the two tools does. One exception is deliberate.
#[test]
fn show_04_credentials() {
    let matrix = std::fs::read_to_string(crate::testing::data().join("ocm/golden/creds/matrix.tsv")).unwrap();
    let mut rows = 0;
    let mut wrong = Vec::new();
    for row in matrix.lines().skip(1) {
        let fields: Vec<&str> = row.split('\t').collect();
        let tools_let_in = fields[1] == "0" || fields[2] == "0";
        let ours = match opens(&format!("{}.yaml", fields[0])) {
            Ok(opened) => opened,
            // The helper is not installed here. That it is asked, and named when it is missing, is what counts.
            Err(error) => error.helper == "docker-credential-plinth-test-missing",
        };
        // differences.md: an entry for https is not sent in the clear.
        let expected = tools_let_in && fields[0] != "auth-scheme-https";
        rows += 1;
        if ours != expected {
            wrong.push(format!("{}: ours {ours}, expected {expected}", fields[0]));
        }
    }
    eprintln!("SHOW 04 credentials {}/{rows}", rows - wrong.len());
    assert!(wrong.is_empty(), "{}", wrong.join("\n"));
    assert!(rows >= 18);
}

#[test]
fn a_wrong_consumer_is_not_followed_by_docker() {
    assert!(!opens("auth-prec.yaml").unwrap());
}

#[test]
fn tells_two_paths_on_one_host_apart() {
    let text = r#"
type: generic.config.ocm.software/v1
configurations:
- type: credentials.config.ocm.software
  consumers:
  - identity: {type: OCIRegistry, hostname: h.example, path: "team-a/*"}
    credentials: [{type: Credentials, properties: {username: a, password: a}}]
  - identity: {type: OCIRegistry, hostname: h.example, path: "team-b/*"}
    credentials: [{type: Credentials, properties: {username: b, password: b}}]
  - identity: {type: OCIRegistry, hostname: h.example}
    credentials: [{type: Credentials, properties: {username: c, password: c}}]
"#;
    let configuration =
        Configuration::load(&Options { ocm_config_texts: vec![text.into()], no_user_config: true, ..Options::default() })
            .unwrap();
    for (path, user) in [("team-a/x/component-descriptors/y", "a"), ("team-b/x", "b"), ("team-c/x", "c"), ("team-a", "c")] {
        let found = configuration.credential(&RequestedRepository::new("h.example", true, path)).unwrap();
        assert_eq!(found, Some(Credential::Basic { user: user.into(), password: user.into() }), "{path}");
    }
    assert_eq!(configuration.credential(&RequestedRepository::new("other.example", true, "team-a/x")).unwrap(), None);
}

#[test]
fn reads_resolvers_and_trust() {
    let configuration = configuration("resolvers-legacy.yaml");
    assert!(configuration.resolvers[0].matches("acme.example/services/gateway", "1.0.0"));
    assert!(!configuration.resolvers[0].matches("acme.example/servicesx", "1.0.0"));
    assert!(super::tests::configuration("resolvers-glob.yaml").resolvers[0].matches("acme.example/services/a/b", "1"));
    assert_eq!(super::tests::configuration("tls-ca-v1.yaml").ca_pem.len(), 1);
    assert_eq!(super::tests::configuration("tls-v2.yaml").ca_files.len(), 1);
    assert_eq!(super::tests::configuration("pkcs1.yaml").keys[0].0, "acme-sig");
}

#[test]
fn every_file_of_the_corpus_is_read() {
    let mut read = 0;
    for entry in std::fs::read_dir(crate::testing::data().join("ocm/cfg")).unwrap() {
        configuration(entry.unwrap().file_name().to_str().unwrap());
        read += 1;
    }
    assert!(read >= 30);
}

#[test]
fn secrets_do_not_show() {
    let shown = format!("{:?}", configuration("auth-consumer.yaml"));
    assert!(!shown.contains("acme-pass"), "{shown}");
}

/// Keys as docker has written them over the years; one that says `https` is not used without TLS.
#[test]
fn docker_knows_a_registry_by_many_keys() {
    let with = |key: &str, host: &str, tls: bool, path: &str| {
        let text = format!(r#"{{"auths": {{"{key}": {{"username": "u", "password": "p"}}}}}}"#);
        let options = Options { docker_config_texts: vec![text], no_user_config: true, ..Options::default() };
        let wanted = RequestedRepository::new(host, tls, path);
        Configuration::load(&options).unwrap().credential(&wanted).unwrap().is_some()
    };
    for key in
        ["https://r.example/v1/", "https://r.example/v2/", "https://r.example", "r.example/v1/", "http://r.example/", "r.example"]
    {
        assert!(with(key, "r.example", true, "a/b"), "{key}");
        assert_eq!(with(key, "r.example", false, "a/b"), !key.starts_with("https"), "{key}");
        assert!(!with(key, "other.example", true, "a/b") && !with(key, "x.r.example", true, "a/b"), "{key}");
    }
    assert!(with("https://index.docker.io/v1/", "docker.io", true, "library/nginx"));
    assert!(with("r.example:5000", "r.example:5000", true, "a") && !with("r.example:5000", "r.example:5001", true, "a"));
    assert!(with("r.example/team-a", "r.example", true, "team-a/x") && !with("r.example/team-a", "r.example", true, "team-ab/x"));
}
