//! Files by URL, and charts of Helm repositories (ocm.md section 5). The server is no registry: it gets no registry's
//! credentials, but those that are kept for files or charts there.

use futures::stream::StreamExt;
use serde_json::Value;
use url::Url;

use crate::config::WebConsumer;
use crate::digest::Digest;
use crate::error::RepositoryError;
use crate::options::Limits;
use crate::registry::{Asked, Pace, Web};
use crate::repository::BlobStream;

/// Media type of a packaged chart.
pub(super) const CHART: &str = "application/vnd.cncf.helm.chart.content.v1.tar+gzip";

/// Opens a URL. What it has to be is only known from the resource's digest, so nothing is checked here but its size.
pub(super) async fn open(
    web: &Web,
    url: &str,
    asked: &Asked,
    what: &str,
    limits: &Limits,
) -> Result<BlobStream, RepositoryError> {
    let url = parse(url, what)?;
    let response = web.get(&url, asked, what).await?;
    let size = response.content_length();
    let (name, place) = (what.to_owned(), url.host_str().unwrap_or_default().to_owned());
    let broken = move |cause| RepositoryError::Unavailable { what: name.clone(), place: place.clone(), attempts: 1, cause };
    let chunks = futures::stream::try_unfold((response, Pace::new(limits), broken), |(mut response, mut pace, broken)| async {
        let chunk = pace.wait(response.chunk()).await.map_err(&broken)?;
        let chunk = chunk.map_err(|error| broken(crate::registry::chain(&error)))?;
        Ok(chunk.map(|chunk| (chunk, (response, pace, broken))))
    });
    Ok(BlobStream::unchecked(what, size, chunks.boxed(), limits.blob_bytes))
}

/// Opens a chart: `index.yaml` says where it is, and where it says so, its digest.
pub(super) async fn open_chart(
    web: &Web,
    repository: &str,
    chart: &str,
    what: &str,
    limits: &Limits,
) -> Result<BlobStream, RepositoryError> {
    let base = parse(&format!("{}/", repository.trim_end_matches('/')), what)?;
    let index = base.join("index.yaml").map_err(|error| RepositoryError::malformed(what, error))?;
    let asked = Asked { consumer: WebConsumer::Helm, headers: Vec::new(), redirects: true };
    let bytes =
        open(web, index.as_str(), &asked, &format!("{index} for {what}"), limits).await?.read(limits.document_bytes).await?;
    let index_document: Value =
        crate::text::document(&bytes).map_err(|error| RepositoryError::malformed(index.as_str(), error))?;
    let (name, version) = chart.rsplit_once(':').unwrap_or((chart, ""));
    let found = entry(&index_document, name, version);
    let found = found.ok_or_else(|| RepositoryError::NotFound { what: format!("chart {chart}"), place: index.to_string() })?;
    let location = found.get("urls").and_then(|urls| urls.get(0)).and_then(Value::as_str).unwrap_or_default();
    let url = base.join(location).map_err(|error| RepositoryError::malformed(index.as_str(), error))?;
    let digest = found
        .get("digest")
        .and_then(Value::as_str)
        .and_then(|hex| format!("sha256:{}", hex.trim_start_matches("sha256:")).parse::<Digest>().ok());
    Ok(open(web, url.as_str(), &asked, what, limits).await?.also(what, digest.as_ref()))
}

fn entry<'a>(index: &'a Value, name: &str, version: &str) -> Option<&'a Value> {
    let versions = index.get("entries")?.get(name)?.as_array()?;
    let bare = |text: &str| text.trim_start_matches('v').to_owned();
    let is_it = |entry: &&Value| {
        entry.get("version").and_then(Value::as_str).is_some_and(|there| there == version || bare(there) == bare(version))
    };
    versions.iter().find(is_it)
}

fn parse(url: &str, what: &str) -> Result<Url, RepositoryError> {
    let parsed = Url::parse(url).map_err(|error| RepositoryError::malformed(what, format!("`{url}` is no URL: {error}")))?;
    if matches!(parsed.scheme(), "http" | "https") && parsed.host_str().is_some() {
        return Ok(parsed);
    }
    Err(RepositoryError::Unsupported {
        what: what.to_owned(),
        reason: format!("only http and https are fetched, not {}", parsed.scheme()),
    })
}
