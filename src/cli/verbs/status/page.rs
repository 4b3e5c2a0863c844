//! `plinth why PAGE`: what a hint points at, without a network. The same tables make `docs/why`.

use plinth_bootstrap::preflight::PAGES;
use plinth_engine::health::CATALOGUE;
use serde_json::{Value, json};

/// One page.
pub(super) struct Page {
    id: &'static str,
    title: String,
    means: &'static str,
    next: String,
}

impl Page {
    /// The page of this name, in any case of letters; no object's name has its form, because that has a kind before a slash.
    pub(super) fn find(name: &str) -> Option<Self> {
        let is_it = |id: &str| id.eq_ignore_ascii_case(name);
        let check = || PAGES.iter().find(|page| is_it(page.id));
        let check = || {
            check().map(|page| Self {
                id: page.id,
                title: format!("{}?", page.asks),
                means: page.fails,
                next: page.next.to_owned(),
            })
        };
        let reason = CATALOGUE.iter().find(|row| is_it(row.id));
        let reason =
            reason.map(|row| Self { id: row.id, title: row.title.to_owned(), means: row.means, next: format!("{}.", row.next) });
        reason.or_else(check)
    }

    /// For people.
    pub(super) fn lines(&self) -> Vec<String> {
        vec![format!("{}: {}", self.id, self.title), self.means.to_owned(), format!("next: {}", self.next)]
    }

    /// For machines.
    pub(super) fn document(&self) -> Value {
        json!({"page": self.id, "title": self.title, "means": self.means, "next": self.next})
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn every_page_that_a_hint_names_is_found() {
        for id in PAGES.iter().map(|page| page.id).chain(CATALOGUE.iter().map(|row| row.id)) {
            let lines = Page::find(&id.to_lowercase()).unwrap().lines();
            assert!(lines[0].starts_with(id) && lines[2].starts_with("next: "), "{lines:?}");
        }
        assert!(Page::find("Deployment/x").is_none());
    }
}
