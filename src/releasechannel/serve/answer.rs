//! Answers of the registry: status, headers and error bodies as the specification has them.

use std::collections::BTreeSet;

use axum::body::Body;
use axum::http::{HeaderMap, Method, StatusCode, Uri, header};
use axum::response::Response;
use futures::stream::StreamExt;
use serde_json::{Value, json};

use super::path::{self, Wanted};
use super::range::{self, Part};
use crate::assembly::{INDEX, MANIFEST};
use crate::ctf::{ContentStore, open_part};
use crate::digest::Digest;
use crate::error::{ErrorKind, RepositoryError};
use crate::repository::{ArtifactStore, Manifest, Pointer};

/// Entries of a page where the request does not say.
const PAGE: usize = 1000;

/// An error of the specification.
struct Refusal(StatusCode, &'static str, String);

/// Answers a request.
pub(super) async fn to(store: &ContentStore, method: &Method, uri: &Uri, headers: &HeaderMap) -> Response {
    let answered = match (path::read(uri.path()), method) {
        (Wanted::Nothing, _) => Err(Refusal(StatusCode::NOT_FOUND, "UNSUPPORTED", format!("{} is nothing here", uri.path()))),
        (_, method) if !matches!(*method, Method::GET | Method::HEAD) => {
            Err(Refusal(StatusCode::METHOD_NOT_ALLOWED, "UNSUPPORTED", "this registry is only read from".to_owned()))
        }
        (wanted, _) => found(store, wanted, headers, uri).await,
    };
    let response = answered.unwrap_or_else(refused);
    if *method == Method::HEAD { without_body(response) } else { response }
}

async fn found(store: &ContentStore, wanted: Wanted<'_>, headers: &HeaderMap, uri: &Uri) -> Result<Response, Refusal> {
    match wanted {
        // Without a line end, as its peers answer.
        Wanted::Base => Ok(text("{}".to_owned())),
        Wanted::Catalog => {
            let names: BTreeSet<&str> = store.contents().artifacts.iter().map(|entry| entry.repository.as_str()).collect();
            Ok(page(&Query::of(uri)?, names, uri.path(), |names| json!({"repositories": names})))
        }
        Wanted::Tags(name) => {
            known(store, name, "NAME_UNKNOWN")?;
            let entries = store.contents().artifacts.iter().filter(|entry| entry.repository == name);
            let tags: BTreeSet<&str> = entries.filter_map(|entry| entry.tag.as_deref()).collect();
            Ok(page(&Query::of(uri)?, tags, uri.path(), |tags| json!({"name": name, "tags": tags})))
        }
        Wanted::Manifest(name, pointer) => manifest(store, name, &pointer).await,
        Wanted::Blob(name, digest) => blob(store, name, digest, headers).await,
        Wanted::Referrers(name, digest) => referrers(store, name, digest, uri).await,
        Wanted::BadReference(text) => {
            Err(Refusal(StatusCode::NOT_FOUND, "MANIFEST_UNKNOWN", format!("`{text}` is neither a tag nor a digest")))
        }
        Wanted::Upload => Err(Refusal(StatusCode::METHOD_NOT_ALLOWED, "UNSUPPORTED", "nothing is uploaded here".to_owned())),
        Wanted::Nothing => unreachable!("answered before"),
    }
}

fn known(store: &ContentStore, name: &str, code: &'static str) -> Result<(), Refusal> {
    if store.contents().artifacts.iter().any(|entry| entry.repository == name) {
        return Ok(());
    }
    Err(Refusal(StatusCode::NOT_FOUND, code, format!("there is no repository {name}")))
}

async fn manifest(store: &ContentStore, name: &str, pointer: &Pointer) -> Result<Response, Refusal> {
    known(store, name, "MANIFEST_UNKNOWN")?;
    let read = store.manifest(name, pointer).await;
    let manifest = read.map_err(|error| refusal(&error, "MANIFEST_UNKNOWN"))?;
    let kind = media_type(&manifest).to_owned();
    let response = content(&manifest.digest, &kind, manifest.bytes.len() as u64, Body::from(manifest.bytes.clone()));
    Ok(response)
}

fn media_type(manifest: &Manifest) -> &str {
    match manifest.media_type.as_str() {
        "" if manifest.is_index() => INDEX,
        "" => MANIFEST,
        given => given,
    }
}

async fn blob(store: &ContentStore, name: &str, digest: &str, headers: &HeaderMap) -> Result<Response, Refusal> {
    known(store, name, "BLOB_UNKNOWN")?;
    let digest: Digest =
        digest.parse().map_err(|_| Refusal(StatusCode::BAD_REQUEST, "DIGEST_INVALID", format!("`{digest}` is not a digest")))?;
    let payload = store.contents().blobs.get(&digest);
    let payload = payload.ok_or_else(|| Refusal(StatusCode::NOT_FOUND, "BLOB_UNKNOWN", format!("there is no blob {digest}")))?;
    let size = payload.size().map_err(|error| refusal(&error, "BLOB_UNKNOWN"))?;
    let wanted = headers.get(header::RANGE).and_then(|value| value.to_str().ok());
    match range::read(wanted, size) {
        Part::Outside => {
            let refusal = Refusal(StatusCode::RANGE_NOT_SATISFIABLE, "SIZE_INVALID", format!("the blob has {size} bytes"));
            Ok(with(refused(refusal), "content-range", &format!("bytes */{size}")))
        }
        Part::Whole => {
            let stream = store.blob(name, &digest).await.map_err(|error| refusal(&error, "BLOB_UNKNOWN"))?;
            let chunks = futures::stream::try_unfold(stream, |mut stream| async move {
                Ok::<_, RepositoryError>(stream.next().await?.map(|chunk| (chunk, stream)))
            });
            let response = content(&digest, OCTETS, size, Body::from_stream(chunks));
            Ok(with(response, "accept-ranges", "bytes"))
        }
        Part::From(first, last) => {
            let opened = open_part(payload, first, last - first + 1).await;
            let chunks = opened.map_err(|error| refusal(&error, "BLOB_UNKNOWN"))?;
            let mut response = content(&digest, OCTETS, last - first + 1, Body::from_stream(chunks.boxed()));
            *response.status_mut() = StatusCode::PARTIAL_CONTENT;
            Ok(with(response, "content-range", &format!("bytes {first}-{last}/{size}")))
        }
    }
}

/// Manifests of the repository that name this one as their subject, as an index; it may be empty.
async fn referrers(store: &ContentStore, name: &str, digest: &str, uri: &Uri) -> Result<Response, Refusal> {
    let digest: Digest =
        digest.parse().map_err(|_| Refusal(StatusCode::BAD_REQUEST, "DIGEST_INVALID", format!("`{digest}` is not a digest")))?;
    let query = Query::of(uri)?;
    let listed = store.contents().artifacts.iter().filter(|entry| entry.repository == name);
    let digests: BTreeSet<&Digest> = listed.map(|entry| &entry.digest).collect();
    let mut found = Vec::new();
    for listed in digests {
        let Ok(manifest) = store.manifest(name, &Pointer::Digest(listed.clone())).await else { continue };
        let subject = manifest.document.pointer("/subject/digest").and_then(Value::as_str);
        let kind = artifact_type(&manifest.document);
        if subject == Some(digest.as_str()) && query.artifact_type.as_deref().is_none_or(|wanted| wanted == kind) {
            found.push(json!({"mediaType": media_type(&manifest), "digest": listed.as_str(), "size": manifest.bytes.len(),
                "artifactType": kind, "annotations": manifest.document.get("annotations").cloned().unwrap_or_default()}));
        }
    }
    let index = json!({"schemaVersion": 2, "mediaType": INDEX, "manifests": found});
    let mut response = with(document(&index), "content-type", INDEX);
    if query.artifact_type.is_some() {
        response = with(response, "oci-filters-applied", "artifactType");
    }
    Ok(response)
}

fn artifact_type(document: &Value) -> &str {
    let own = document.get("artifactType").and_then(Value::as_str);
    own.or_else(|| document.pointer("/config/mediaType").and_then(Value::as_str)).unwrap_or_default()
}

/// `n`, `last` and `artifactType` of a query.
#[derive(Default)]
struct Query {
    count: Option<usize>,
    last: String,
    artifact_type: Option<String>,
}

impl Query {
    fn of(uri: &Uri) -> Result<Self, Refusal> {
        let mut query = Self::default();
        for (key, value) in url::form_urlencoded::parse(uri.query().unwrap_or_default().as_bytes()) {
            match key.as_ref() {
                "n" => {
                    let refuse =
                        |_| Refusal(StatusCode::BAD_REQUEST, "PAGINATION_NUMBER_INVALID", format!("n={value} is no number"));
                    query.count = Some(value.parse().map_err(refuse)?);
                }
                "last" => query.last = value.into_owned(),
                "artifactType" => query.artifact_type = Some(value.into_owned()),
                _ => {}
            }
        }
        Ok(query)
    }
}

/// One page of a sorted list, with a link to the next one where there is more.
fn page(query: &Query, names: BTreeSet<&str>, path: &str, form: impl Fn(&[&str]) -> Value) -> Response {
    let count = query.count.unwrap_or(PAGE);
    let mut left = names.into_iter().filter(|name| *name > query.last.as_str());
    let shown: Vec<&str> = left.by_ref().take(count).collect();
    let response = document(&form(&shown));
    match (shown.last(), left.next()) {
        (Some(last), Some(_)) => {
            let next: String = url::form_urlencoded::Serializer::new(String::new())
                .append_pair("last", last)
                .append_pair("n", &count.to_string())
                .finish();
            with(response, "link", &format!("<{path}?{next}>; rel=\"next\""))
        }
        _ => response,
    }
}

const OCTETS: &str = "application/octet-stream";

fn content(digest: &Digest, kind: &str, size: u64, body: Body) -> Response {
    let response = with(with(Response::new(body), "content-type", kind), "content-length", &size.to_string());
    let response = with(response, "docker-content-digest", digest.as_str());
    with(with(response, "etag", &format!("\"{digest}\"")), "docker-distribution-api-version", "registry/2.0")
}

fn document(document: &Value) -> Response {
    text(format!("{document}\n"))
}

fn text(json: String) -> Response {
    let length = json.len().to_string();
    let response = with(Response::new(Body::from(json)), "content-type", "application/json; charset=utf-8");
    let response = with(response, "content-length", &length);
    with(response, "docker-distribution-api-version", "registry/2.0")
}

fn with(mut response: Response, name: &'static str, value: &str) -> Response {
    // A media type from an archive that no header can carry is left out.
    if let Ok(value) = value.parse() {
        response.headers_mut().insert(name, value);
    }
    response
}

fn without_body(response: Response) -> Response {
    let (parts, _body) = response.into_parts();
    Response::from_parts(parts, Body::empty())
}

fn refused(Refusal(status, code, message): Refusal) -> Response {
    let mut response = document(&json!({"errors": [{"code": code, "message": message}]}));
    *response.status_mut() = status;
    response
}

/// What is not there is unknown; what is there and wrong is a fault of this side.
fn refusal(error: &RepositoryError, unknown: &'static str) -> Refusal {
    match error.kind() {
        ErrorKind::NotFound => Refusal(StatusCode::NOT_FOUND, unknown, error.to_string()),
        ErrorKind::Refused | ErrorKind::Unavailable => Refusal(StatusCode::INTERNAL_SERVER_ERROR, "UNKNOWN", error.to_string()),
    }
}
