//! What is sent is hashed on its way, and a registry's word on what it has got is read.

use super::*;
use crate::assembly::MANIFEST;
use crate::ctf::{IndexEntry, Payload};
use crate::digest::Digest;
use crate::error::RepositoryError;

/// Takes everything, as a registry that compares nothing.
async fn taking(said: Option<&'static str>) -> Stub {
    Stub::start(move |seen, _| {
        let method = seen.headers.split(' ').next().unwrap_or_default();
        match method {
            "POST" => http("202 Accepted", &[("location", "/v2/x/blobs/uploads/1")], b""),
            "PUT" if seen.path.contains("/manifests/") => {
                http("201 Created", &said.map(|said| ("docker-content-digest", said)).into_iter().collect::<Vec<_>>(), b"")
            }
            "PUT" => http("201 Created", &[], b""),
            _ => http("404 Not Found", &[], b"{}"),
        }
    })
    .await
}

/// An image with one layer.
fn image(layer: Vec<u8>) -> (Contents, Digest) {
    let mut contents = Contents { place: "bundle.tgz".into(), ..Contents::default() };
    let size = layer.len();
    let (config, layer) = (contents.add_blob(b"{}".to_vec()), contents.add_blob(layer));
    let manifest = serde_json::json!({"schemaVersion": 2, "mediaType": MANIFEST,
        "config": {"mediaType": "application/vnd.oci.empty.v1+json", "digest": config.as_str(), "size": 2},
        "layers": [{"mediaType": "application/octet-stream", "digest": layer.as_str(), "size": size}]});
    let digest = contents.add_blob(manifest.to_string().into_bytes());
    let (repository, tag, media_type) = ("team/app".to_owned(), Some("1".to_owned()), MANIFEST.to_owned());
    contents.artifacts.push(IndexEntry { repository, tag, digest, media_type });
    (contents, layer)
}

async fn pushed(contents: &Contents, stub: &Stub) -> Result<crate::Pushed, RepositoryError> {
    let target = RepositoryRef::parse(&stub.host).unwrap();
    push(contents, &target, &Registries::new(&plain(&stub.host)).unwrap()).await
}

/// Small, of several pieces, cut short and empty: the registry would have believed each.
#[tokio::test]
async fn show_04_damaged_blobs_are_not_sent() {
    let large = vec![7; 1 << 20];
    let flipped = [&large[..large.len() - 1], b"x"].concat();
    let cases = [
        (b"layer".to_vec(), b"lay3r".to_vec()),
        (large.clone(), flipped),
        (large.clone(), large[1..].to_vec()),
        (large, Vec::new()),
    ];
    for (right, wrong) in &cases {
        let stub = taking(None).await;
        let (mut contents, layer) = image(right.clone());
        assert!(pushed(&contents, &stub).await.is_ok());
        let manifests = |stub: &Stub| {
            stub.seen().iter().filter(|seen| seen.headers.starts_with("PUT") && seen.path.contains("/manifests/")).count()
        };
        assert_eq!(manifests(&stub), 2);
        contents.blobs.insert(layer.clone(), Payload::Bytes(wrong.clone().into()));
        let stub = taking(None).await;
        let error = pushed(&contents, &stub).await.unwrap_err();
        assert!(matches!(&error, RepositoryError::Digest { expected, .. } if *expected == layer), "{error}");
        assert!(error.kind() == ErrorKind::Refused && error.to_string().contains("bundle.tgz"), "{error}");
        assert_eq!(manifests(&stub), 0);
    }
    eprintln!("SHOW 04 damaged-blobs {0}/{0} refused while they are sent, 0 manifests put", cases.len());
}

#[tokio::test]
async fn a_registry_that_stored_another_manifest_is_not_believed() {
    let stub = taking(Some("sha256:0000000000000000000000000000000000000000000000000000000000000000")).await;
    let error = pushed(&image(b"layer".to_vec()).0, &stub).await.unwrap_err();
    assert!(matches!(error, RepositoryError::Digest { .. }), "{error}");
}
