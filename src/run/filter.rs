//! The one filter language, of the terminal and of the command line (ux.md section 4).
//!
//! Words are fuzzy on the name. `kind:`, `plane:`, `ns:`, `state:` and `reason:` ask for a field; `!` turns a term round. The
//! same key twice means one or the other, different keys mean both, and so do several words.

use std::fmt;

use thiserror::Error;

/// The longest filter, in characters.
pub const MAX_FILTER: usize = 500;

/// What can be asked of a row.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub struct Facts<'a> {
    /// What it is called.
    pub name: &'a str,
    /// Kind, with its group where there is one.
    pub kind: &'a str,
    /// Plane: the role of the cluster, or its key where it has none.
    pub plane: &'a str,
    /// The cluster's key: several clusters may have one role.
    pub cluster: &'a str,
    /// Namespace, empty for what has none.
    pub namespace: &'a str,
    /// State in one word.
    pub state: &'a str,
    /// Reason in one word.
    pub reason: &'a str,
}

/// A parsed filter. An empty one lets everything through.
#[derive(Clone, Debug, Default, PartialEq, Eq)]
pub struct Filter {
    terms: Vec<Term>,
}

/// One term of a filter.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Term {
    /// Which field it asks for.
    pub field: Field,
    /// Whether it is turned round.
    pub negated: bool,
    /// What is looked for, in lower case.
    pub text: String,
}

/// A field that a term asks for.
#[derive(Clone, Copy, Debug, PartialEq, Eq, PartialOrd, Ord)]
pub enum Field {
    /// A word without a key.
    Name,
    /// `kind:`
    Kind,
    /// `plane:`
    Plane,
    /// `ns:`
    Namespace,
    /// `state:`
    State,
    /// `reason:`
    Reason,
}

/// Keys as they are written, with what they ask for.
pub const KEYS: [(&str, Field); 5] = [
    ("kind", Field::Kind),
    ("plane", Field::Plane),
    ("ns", Field::Namespace),
    ("state", Field::State),
    ("reason", Field::Reason),
];

/// Why a filter is none.
#[derive(Clone, Debug, PartialEq, Eq, Error)]
pub enum FilterError {
    /// A key that nobody knows.
    #[error("{key}: is no key; there are {known}", known = KEYS.map(|(key, _)| format!("{key}:")).join(" "))]
    UnknownKey {
        /// What was written before the colon.
        key: String,
    },
    /// A key without anything to look for.
    #[error("{term} lacks what it looks for")]
    Empty {
        /// The term.
        term: String,
    },
    /// More text than a person writes.
    #[error("a filter has at most {MAX_FILTER} characters")]
    TooLong,
}

impl Filter {
    /// Reads a filter.
    pub fn parse(text: &str) -> Result<Self, FilterError> {
        if text.chars().count() > MAX_FILTER {
            return Err(FilterError::TooLong);
        }
        text.split_whitespace().map(Term::parse).collect::<Result<_, _>>().map(|terms| Self { terms })
    }

    /// Whether it lets everything through.
    pub fn is_empty(&self) -> bool {
        self.terms.is_empty()
    }

    /// Whether it lets this through.
    pub fn matches(&self, facts: &Facts<'_>) -> bool {
        Search::new(self).matches(facts)
    }
}

/// A filter that looks through many things, and remembers which of its terms found anything.
#[derive(Clone, Debug)]
pub struct Search<'a> {
    filter: &'a Filter,
    /// Whether each term found anything so far.
    active: Vec<bool>,
    /// Whether each term holds for what is looked at.
    holds: Vec<bool>,
}

impl<'a> Search<'a> {
    /// A search that has seen nothing.
    pub fn new(filter: &'a Filter) -> Self {
        Self { filter, active: vec![false; filter.terms.len()], holds: vec![false; filter.terms.len()] }
    }

    /// Whether the filter lets this through.
    pub fn matches(&mut self, facts: &Facts<'_>) -> bool {
        for (index, term) in self.filter.terms.iter().enumerate() {
            let finds = term.finds(facts);
            self.active[index] |= finds;
            self.holds[index] = finds != term.negated;
        }
        let held = || self.filter.terms.iter().zip(self.holds.iter().copied());
        // A negated term takes away whatever its brothers let through.
        let alone = held().filter(|(term, _)| term.negated || term.field == Field::Name).all(|(_, holds)| holds);
        alone
            && KEYS.iter().all(|(_, field)| {
                let mut asked = held().filter(|(term, _)| term.field == *field && !term.negated).peekable();
                asked.peek().is_none() || asked.any(|(_, holds)| holds)
            })
    }

    /// Terms that nothing so far has anything to do with: probably a misspelling, and worth showing.
    pub fn inactive(&self) -> Vec<&'a Term> {
        self.filter.terms.iter().zip(&self.active).filter(|(_, active)| !**active).map(|(term, _)| term).collect()
    }
}

impl Term {
    fn parse(text: &str) -> Result<Self, FilterError> {
        let (negated, rest) = text.strip_prefix('!').map_or((false, text), |rest| (true, rest));
        let (field, wanted) = match rest.split_once(':') {
            None => (Field::Name, rest),
            Some((key, wanted)) => {
                let known = KEYS.iter().find(|(known, _)| known.eq_ignore_ascii_case(key));
                let (_, field) = known.ok_or_else(|| FilterError::UnknownKey { key: key.to_owned() })?;
                (*field, wanted)
            }
        };
        if wanted.is_empty() {
            return Err(FilterError::Empty { term: text.to_owned() });
        }
        Ok(Self { field, negated, text: wanted.to_lowercase() })
    }

    fn finds(&self, facts: &Facts<'_>) -> bool {
        let has = |value: &str| value.to_lowercase().contains(&self.text);
        match self.field {
            Field::Name => fuzzy(&self.text, facts.name).is_some(),
            Field::Kind => has(facts.kind),
            Field::Plane => has(facts.plane) || has(facts.cluster),
            Field::Namespace => has(facts.namespace),
            Field::State => has(facts.state),
            Field::Reason => has(facts.reason),
        }
    }
}

impl fmt::Display for Term {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        if self.negated {
            f.write_str("!")?;
        }
        if let Some((key, _)) = KEYS.iter().find(|(_, field)| *field == self.field) {
            write!(f, "{key}:")?;
        }
        f.write_str(&self.text)
    }
}

/// Whether the characters of `wanted` (lower case) come in `text` in this order, and how well: higher is better, letters that
/// lie together and those at the start of a word count more.
pub fn fuzzy(wanted: &str, text: &str) -> Option<usize> {
    let mut score = 0;
    let mut run = 0;
    let mut before = ' ';
    let mut letters = wanted.chars();
    let mut next = letters.next();
    for letter in text.chars().flat_map(char::to_lowercase) {
        if next == Some(letter) {
            run += 1;
            score += 2 * run + usize::from(!before.is_alphanumeric());
            next = letters.next();
        } else {
            run = 0;
        }
        before = letter;
    }
    next.is_none().then_some(score)
}

#[cfg(test)]
mod tests;
