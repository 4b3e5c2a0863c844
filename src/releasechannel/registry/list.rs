//! A list that comes in pages, each of which may say where the next one is: registries that never come to an end are found out.

use std::collections::{BTreeMap, BTreeSet};

use url::Url;

use crate::error::RepositoryError;

/// Pages of one list that are asked for.
const PAGES: usize = 1_000;
/// Pages that may bring nothing that was not there before.
const EMPTY: usize = 10;

/// What was read of a list so far.
pub(super) struct List {
    /// The texts, in their order, each once.
    pub(super) texts: Vec<String>,
    known: BTreeSet<String>,
    pages: BTreeSet<Url>,
    empty: usize,
    most: usize,
    /// The field that has the texts, which is what they are called.
    field: &'static str,
    place: String,
}

impl List {
    /// `place` names the list in errors.
    pub(super) fn new(most: usize, field: &'static str, place: String) -> Self {
        Self { texts: Vec::new(), known: BTreeSet::new(), pages: BTreeSet::new(), empty: 0, most, field, place }
    }

    /// Whether a page was read already.
    pub(super) fn is_begun(&self) -> bool {
        !self.pages.is_empty()
    }

    /// Takes a page in, and refuses a next one that leads nowhere.
    pub(super) fn add(&mut self, page: Url, bytes: &[u8], next: Option<&Url>) -> Result<(), RepositoryError> {
        let before = self.texts.len();
        let texts = self.read(bytes)?;
        self.texts.extend(texts.into_iter().filter(|text| self.known.insert(text.clone())));
        self.pages.insert(page);
        self.empty += usize::from(self.texts.len() == before);
        match next {
            Some(next) if self.pages.contains(next) => {
                Err(self.malformed("the link to its next page leads to a page that was read already"))
            }
            Some(_) if self.empty > EMPTY => Err(self.malformed("its pages go on without bringing anything new")),
            _ => self.bounded(next),
        }
    }

    fn read(&self, bytes: &[u8]) -> Result<Vec<String>, RepositoryError> {
        let mut document: BTreeMap<String, serde_json::Value> =
            crate::text::json(bytes).map_err(|error| self.malformed(error))?;
        let texts = document.remove(self.field).unwrap_or_default();
        let texts: Option<Vec<String>> = serde_json::from_value(texts).map_err(|error| self.malformed(error))?;
        Ok(texts.unwrap_or_default())
    }

    fn malformed(&self, reason: impl std::fmt::Display) -> RepositoryError {
        RepositoryError::malformed(&self.place, reason)
    }

    fn bounded(&self, next: Option<&Url>) -> Result<(), RepositoryError> {
        let over = |limit: usize, unit| RepositoryError::Limit { what: self.place.clone(), limit: limit as u64, unit };
        if self.texts.len() > self.most {
            return Err(over(self.most, self.field));
        }
        if next.is_some() && self.pages.len() >= PAGES {
            return Err(over(PAGES, "pages"));
        }
        Ok(())
    }
}
