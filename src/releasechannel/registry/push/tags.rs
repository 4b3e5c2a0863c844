//! Where the tags of a mirror lead before anything is sent.

use reqwest::Method;
use reqwest::header::HeaderValue;
use url::Url;

use super::super::client::{MANIFESTS, Request, said_digest};
use super::Push;
use crate::bundle::LOCK_REPOSITORY;
use crate::ctf::IndexEntry;
use crate::digest::Digest;
use crate::error::{ErrorKind, RepositoryError};
use crate::repository::{ArtifactStore, Pointer};
use crate::source::RepositoryRef;

/// Where a tag of the registry leads.
pub(super) enum Tagged {
    Nowhere,
    /// To what the archive has.
    Here,
    /// To this digest.
    Elsewhere(String),
}

impl Push<'_> {
    /// Where each tag of the archive leads now. Tags are names that others pull by: one that leads elsewhere is not moved unasked.
    pub(super) async fn tags<'e>(
        &self,
        entries: &'e [IndexEntry],
        target: &RepositoryRef,
    ) -> Result<Vec<(&'e IndexEntry, Tagged)>, RepositoryError> {
        let (mut tags, mut taken) = (Vec::new(), Vec::new());
        for entry in entries {
            let Some(tag) = &entry.tag else { continue };
            let tagged = self.tagged(&self.repository(entry), tag, &entry.digest).await?;
            // The lock says what the bundle was made from: another one for the same content is no other content.
            let is_lock = entry.repository.starts_with(LOCK_REPOSITORY);
            if let Tagged::Elsewhere(there) = &tagged
                && !is_lock
            {
                taken.push(format!("{}:{tag} is {there}, and {} in the archive", self.repository(entry), entry.digest));
            }
            tags.push((entry, tagged));
        }
        if taken.is_empty() || self.rules.move_tags {
            return Ok(tags);
        }
        Err(RepositoryError::Taken { place: target.to_string(), tags: taken })
    }

    async fn tagged(&self, repository: &str, tag: &str, digest: &Digest) -> Result<Tagged, RepositoryError> {
        let what = format!("tag {tag} of {repository}");
        let url = self.registry.url(repository, &format!("manifests/{tag}"))?;
        match self.said(&url, repository, &what).await? {
            None => Ok(Tagged::Nowhere),
            Some(said) if said == digest.as_str() => Ok(Tagged::Here),
            Some(said) if !said.is_empty() => Ok(Tagged::Elsewhere(said)),
            // It does not say where, so that its bytes must.
            Some(_) => match self.registry.manifest(repository, &Pointer::Tag(tag.to_owned())).await {
                Ok(found) if found.digest == *digest => Ok(Tagged::Here),
                Ok(found) => Ok(Tagged::Elsewhere(found.digest.to_string())),
                Err(error) if error.kind() == ErrorKind::Unavailable => Err(error),
                Err(_) => Ok(Tagged::Nowhere),
            },
        }
    }

    pub(super) async fn tag(&mut self, entry: &IndexEntry, tagged: &Tagged) -> Result<(), RepositoryError> {
        let (Some(tag), repository) = (&entry.tag, self.repository(entry)) else { return Ok(()) };
        match tagged {
            Tagged::Here => {
                self.pushed.tags_unchanged += 1;
                return Ok(());
            }
            Tagged::Elsewhere(there) => {
                self.pushed.moved.push(format!("{repository}:{tag} was {there}, and is {} now", entry.digest));
            }
            Tagged::Nowhere => {}
        }
        let manifest = self.read(&entry.digest, &entry.media_type).await?;
        self.send(&repository, tag, &manifest).await?;
        self.pushed.tags += 1;
        Ok(())
    }

    /// The digest that the registry says a name leads to; empty where it does not say, `None` where the name leads nowhere.
    pub(super) async fn said(&self, url: &Url, repository: &str, what: &str) -> Result<Option<String>, RepositoryError> {
        let mut request = Request { method: Method::HEAD, ..Request::get(url.clone(), repository, what) };
        request.headers.insert("accept", HeaderValue::from_static(MANIFESTS));
        match self.registry.send(&request).await {
            Ok(response) => Ok(Some(said_digest(response.headers()).unwrap_or_default().to_owned())),
            Err(error) if error.kind() == ErrorKind::Unavailable => Err(error),
            // Whatever it says to a question: what is pushed is pushed.
            Err(_) => Ok(None),
        }
    }
}
