//! What the rules of a scenario wanted and did not get: a scenario that is not carried out must not look like a platform that
//! does not come up.

use std::{
    collections::{BTreeMap, BTreeSet},
    fmt,
};

use plinth_api::{
    Scenario,
    scenario::{Rule, TriggerState},
};

use super::play::Effect;
use crate::embedded::store::Place;

/// A rule that did not do what it says.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Mishap {
    /// Its place in `spec.rules`.
    pub rule: usize,
    /// What it wanted, and why that was not done.
    pub message: String,
}

impl fmt::Display for Mishap {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        write!(f, "spec.rules[{}]: {}", self.rule, self.message)
    }
}

/// What became of each rule so far.
#[derive(Clone, Debug, Default)]
pub(super) struct Told {
    /// Rules whose object was there, as it must be or not.
    near: BTreeSet<usize>,
    matched: BTreeSet<usize>,
    /// The words with which an effect was refused last, until it is done.
    refused: BTreeMap<(usize, Effect), BTreeMap<Option<Place>, String>>,
}

impl Told {
    /// An object is there that a rule is about.
    pub(super) fn met(&mut self, rule: usize, matches: bool) {
        self.near.insert(rule);
        if matches {
            self.matched.insert(rule);
        }
    }

    /// An effect was tried for an object.
    pub(super) fn tried(&mut self, rule: usize, effect: Effect, place: Option<&Place>, done: Result<(), String>) {
        let refused = self.refused.entry((rule, effect)).or_default();
        let _before = match done {
            Err(words) => refused.insert(place.cloned(), words),
            Ok(()) => refused.remove(&place.cloned()),
        };
    }

    /// In the order of the rules; those that never matched only where nothing is to come that they could match.
    pub(super) fn mishaps(&self, scenario: &Scenario, is_over: bool) -> Vec<Mishap> {
        let rules = scenario.rules.iter().enumerate();
        rules
            .flat_map(|(index, rule)| self.refusals(index, rule).chain(self.unmatched(index, rule).filter(|_| is_over)))
            .collect()
    }

    fn refusals(&self, index: usize, rule: &Rule) -> impl Iterator<Item = Mishap> {
        let of_rule = self.refused.range((index, Effect::Available)..(index + 1, Effect::Available));
        of_rule.filter_map(move |((_, effect), refused)| {
            let (place, words) = refused.first_key_value()?;
            let more = match refused.len() - 1 {
                0 => String::new(),
                more => format!("; the same for {more} more"),
            };
            let what = wanted(rule, *effect, place.as_ref());
            Some(Mishap { rule: index, message: format!("{what} is refused: {words}{more}") })
        })
    }

    fn unmatched(&self, index: usize, rule: &Rule) -> Option<Mishap> {
        let when = rule.when.as_ref().filter(|_| !self.matched.contains(&index))?;
        let message = match when.state {
            _ if !self.near.contains(&index) => format!("never matched, as {when} was never there: are kind and name right?"),
            TriggerState::Exists => return None,
            state => format!("never matched, as {when} was there and never {state:?}"),
        };
        Some(Mishap { rule: index, message })
    }
}

/// What an effect is called in a message.
fn wanted(rule: &Rule, effect: Effect, place: Option<&Place>) -> String {
    let subject = place.map(name).unwrap_or_default();
    match effect {
        Effect::Available => format!("making {subject} available"),
        Effect::Status => format!("the status of {subject}"),
        Effect::Register(number) => {
            let object = &rule.register[number];
            let kind = object.gvk().map(|gvk| gvk.to_string()).unwrap_or_default();
            format!("register[{number}] ({kind} {})", object.name())
        }
        Effect::Expire => format!("expire of {}", rule.expire.as_ref().map(ToString::to_string).unwrap_or_default()),
        Effect::Conflicts => "conflicts".to_owned(),
        Effect::Away => "away".to_owned(),
    }
}

fn name(place: &Place) -> String {
    let group = if place.resource.group.is_empty() { String::new() } else { format!(".{}", place.resource.group) };
    let namespace = place.namespace.as_ref().map(|namespace| format!("{namespace}/")).unwrap_or_default();
    format!("{}{group} {namespace}{}", place.resource.plural, place.name)
}
