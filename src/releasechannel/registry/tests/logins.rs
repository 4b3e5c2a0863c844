//! Logins that programs know, and what becomes of a run when a program fails.

use std::os::unix::fs::PermissionsExt;
use std::path::Path;
use std::process::Command;
use std::time::{Duration, Instant};

use super::*;
use crate::digest::Digest;
use crate::image::ImageReference;

async fn login_wanted() -> Stub {
    Stub::start(|_, _| http("401 Unauthorized", &[("www-authenticate", "Basic realm=x")], b"")).await
}

fn with_config(stub: &Stub, folder: &Path, config: &str) -> Options {
    let path = folder.join("config.json");
    std::fs::write(&path, config.replace("HOST", &stub.host)).unwrap();
    Options { docker_config: Some(path), ..plain(&stub.host) }
}

async fn refused(stub: &Stub, options: Options) -> RepositoryError {
    refused_in("x", stub, &Registries::new(&options).unwrap()).await
}

async fn refused_in(repository: &str, stub: &Stub, registries: &Registries) -> RepositoryError {
    let image = ImageReference::parse(&format!("{}/{repository}", stub.host)).unwrap();
    let store = registries.locate(&image).unwrap().0;
    store.blob(repository, &Digest::of(b"x")).await.unwrap_err()
}

#[tokio::test]
async fn a_missing_helper_is_not_a_missing_component() {
    let (stub, folder) = (login_wanted().await, tempfile::tempdir().unwrap());
    let options = with_config(&stub, folder.path(), r#"{"credHelpers": {"HOST": "doesnotexist"}}"#);
    let error = refused(&stub, options).await;
    assert!(error.to_string().contains("docker-credential-doesnotexist"), "{error}");
    assert_eq!(error.kind(), ErrorKind::Refused);
}

const ME: &str = "registry::tests::logins::asks_helpers_that_hang";

/// Helpers are found by PATH, which belongs to the process.
#[tokio::test]
#[ignore = "runs in the process that a_helper_that_hangs_is_ended starts"]
async fn asks_helpers_that_hang() {
    let (stub, folder) = (login_wanted().await, tempfile::tempdir().unwrap());
    for (helper, config) in [
        ("silent", r#"{"credHelpers": {"HOST": "silent"}}"#),
        ("silent", r#"{"credsStore": "silent"}"#),
        ("closed", r#"{"credsStore": "closed"}"#),
        ("child", r#"{"credsStore": "child"}"#),
    ] {
        let mut options = with_config(&stub, folder.path(), config);
        options.limits.helper_time = Duration::from_millis(300);
        let begun = Instant::now();
        let registries = Registries::new(&options).unwrap();
        let error = refused_in("x", &stub, &registries).await;
        // Another repository of the host is another question of ours, and none for the helper.
        let again = refused_in("y", &stub, &registries).await;
        assert_eq!(again.to_string().replace(" y:", " x:"), error.to_string());
        let said =
            format!("docker-credential-{helper} could not be used: asked for {}, it did not answer within 0.3 s", stub.host);
        assert!(error.to_string().contains(&said), "{error}");
        assert_eq!(error.kind(), ErrorKind::Refused);
        assert!(begun.elapsed() < Duration::from_secs(20), "{helper}: {:?}", begun.elapsed());
    }
}

#[test]
fn a_helper_that_hangs_is_ended() {
    let folder = tempfile::tempdir().unwrap();
    let ids = folder.path().join("ids");
    let say = format!("#!/bin/sh\necho $$ >> {}\n", ids.display());
    for (name, body) in [
        ("silent", "exec sleep 60"),
        ("closed", "exec >&-\nexec sleep 60"),
        // What it has started keeps its output open.
        ("child", "sleep 5 &\nexit 0"),
    ] {
        let path = folder.path().join(format!("docker-credential-{name}"));
        std::fs::write(&path, format!("{say}{body}\n")).unwrap();
        std::fs::set_permissions(&path, std::fs::Permissions::from_mode(0o755)).unwrap();
    }
    let path = format!("{}:{}", folder.path().display(), std::env::var("PATH").unwrap());
    let mut command = Command::new(std::env::current_exe().unwrap());
    let output = command.args(["--exact", ME, "--ignored"]).env("PATH", path).output().unwrap();
    let said = String::from_utf8_lossy(&output.stdout);
    assert!(output.status.success() && said.contains("running 1 test"), "{said}");
    let ids = std::fs::read_to_string(ids).unwrap();
    assert_eq!(ids.lines().count(), 4, "{ids}");
    for id in ids.lines() {
        assert!(!Path::new("/proc").join(id).exists(), "the helper {id} goes on");
    }
}
