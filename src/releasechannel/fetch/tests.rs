use serde_json::json;

use super::*;
use crate::descriptor::Descriptor;
use crate::testing::{Stub, http, offline};

/// A component version in memory with one resource of this access.
async fn fetch(access: serde_json::Value, digest: Option<&[u8]>) -> Result<Bytes, ResolveError> {
    let mut resource = json!({"name": "thing", "version": "1", "type": "blob", "relation": "external", "access": access});
    if let Some(content) = digest {
        resource["digest"] = json!({"hashAlgorithm": "SHA-256", "normalisationAlgorithm": "genericBlobDigest/v1", "value": Digest::of(content).hex()});
    }
    let document = json!({"meta": {"schemaVersion": "v2"}, "component": {"name": "acme.example/x", "version": "1.0.0", "provider": "x", "resources": [resource]}});
    let descriptor = Descriptor::from_value(document).unwrap();
    let store = crate::Contents::default().into_store(Limits::default());
    let repository = crate::repository::OciRepository::new(store, "", serde_json::Value::Null, Limits::default());
    read_resource(&repository, &descriptor, &descriptor.resources[0], &offline()).await
}

#[tokio::test]
async fn fetches_files_by_url_and_proves_them() {
    let stub = Stub::start(|seen, _| match seen.path.as_str() {
        "/moved" => http("302 Found", &[("location", "/file")], b""),
        "/file" => http("200 OK", &[], b"content"),
        _ => http("404 Not Found", &[], b""),
    })
    .await;
    let access = |path: &str| json!({"type": "wget", "url": format!("http://{}{path}", stub.host)});
    assert_eq!(&fetch(access("/moved"), Some(b"content")).await.unwrap()[..], b"content");
    assert_eq!(&fetch(access("/file"), None).await.unwrap()[..], b"content");
    let error = fetch(access("/file"), Some(b"other")).await.unwrap_err();
    assert!(matches!(&error, ResolveError::Repository { source: RepositoryError::Digest { .. }, .. }), "{error}");
    assert_eq!(fetch(access("/none"), None).await.unwrap_err().kind(), crate::ErrorKind::NotFound);
    for url in ["file:///etc/passwd", "ftp://x/y", "not a url"] {
        assert!(fetch(json!({"type": "wget", "url": url}), None).await.is_err(), "{url}");
    }
}

#[tokio::test]
async fn fetches_charts_by_the_index_of_their_repository() {
    let chart = b"chart bytes";
    let digest = Digest::of(chart).hex().to_owned();
    let index = format!(
        "apiVersion: v1\nentries:\n  gateway:\n  - {{version: 1.2.0, urls: [other.tgz]}}\n  - {{version: 1.3.0, digest: {digest}, urls: [charts/gateway-1.3.0.tgz]}}\n  wrong:\n  - {{version: 1.0.0, digest: {digest}, urls: [wrong.tgz]}}\n"
    );
    let stub = Stub::start(move |seen, _| match seen.path.as_str() {
        "/repo/index.yaml" => http("200 OK", &[], index.as_bytes()),
        "/repo/charts/gateway-1.3.0.tgz" => http("200 OK", &[], chart),
        "/repo/wrong.tgz" => http("200 OK", &[], b"<html>"),
        _ => http("404 Not Found", &[], b""),
    })
    .await;
    let access =
        |chart: &str| json!({"type": "helm", "helmRepository": format!("http://{}/repo", stub.host), "helmChart": chart});
    assert_eq!(&fetch(access("gateway:1.3.0"), Some(chart)).await.unwrap()[..], chart);
    assert_eq!(&fetch(access("gateway:v1.3.0"), None).await.unwrap()[..], chart);
    assert!(matches!(
        fetch(access("wrong:1.0.0"), None).await,
        Err(ResolveError::Repository { source: RepositoryError::Digest { .. }, .. })
    ));
    assert_eq!(fetch(access("gateway:9.9.9"), None).await.unwrap_err().kind(), crate::ErrorKind::NotFound);
}
