//! Following a scenario's rules.

use std::{
    collections::{BTreeMap, BTreeSet},
    sync::Arc,
    time::Duration,
};

use jiff::Timestamp;
use plinth_api::{
    ClusterKey, Object, Scenario,
    scenario::{KindRef, Rule},
};
use serde_json::{Value, json};

use super::{Acting, Wake, hands::Hands};
use crate::embedded::store::Place;

/// Field manager of what a scenario writes.
const MANAGER: &str = "scenario";
/// When something that could not be done is tried again.
const AGAIN: Duration = Duration::from_millis(200);

/// What of a scenario is still to be done.
pub(super) struct Play {
    began: bool,
    /// Rule, object's UID and generation: what was noticed already.
    seen: BTreeSet<(usize, String, i64)>,
    due: BTreeMap<(Timestamp, u64), Due>,
    serial: u64,
}

#[derive(Clone, Debug)]
struct Due {
    what: What,
    /// It was tried before, and may never work.
    again: bool,
}

#[derive(Clone, Debug)]
enum What {
    /// A rule, for an object where it is about one.
    Rule(usize, Option<(Place, i64)>),
    /// The API server comes back.
    Back,
}

impl Play {
    pub(super) fn new(scenario: &Scenario) -> Self {
        Self { began: scenario.rules.is_empty(), seen: BTreeSet::new(), due: BTreeMap::new(), serial: 0 }
    }

    /// Notices a change that rules are about.
    pub(super) fn look(&mut self, place: &Place, object: &Arc<Object>, now: Timestamp, acting: &Acting) {
        for (index, rule) in acting.scenario.rules.iter().enumerate() {
            if !rule.when.as_ref().is_some_and(|when| when.matches(object)) || is_only_available(rule) {
                continue;
            }
            if self.seen.insert((index, object.uid().unwrap_or_default().to_owned(), object.generation())) {
                let subject = Some((place.clone(), object.generation()));
                self.put(now, acting, rule.after, What::Rule(index, subject), false);
            }
        }
    }

    /// Does the next thing that is due; false where there is none.
    pub(super) fn act(&mut self, hands: &mut Hands<'_>) -> bool {
        if !std::mem::replace(&mut self.began, true) {
            for (index, rule) in hands.acting.scenario.rules.iter().enumerate().filter(|(_, rule)| rule.when.is_none()) {
                self.put(hands.now, hands.acting, rule.after, What::Rule(index, None), false);
            }
        }
        let Some(entry) = self.due.first_entry().filter(|entry| entry.key().0 <= hands.now) else { return false };
        let due = entry.remove();
        match &due.what {
            What::Back => hands.state.faults.set_away(false),
            What::Rule(index, subject) => {
                let rule = &hands.acting.scenario.rules[*index];
                if self.carry_out(hands, rule, subject.as_ref()).is_err() {
                    self.put(hands.now, hands.acting, AGAIN, due.what, true);
                }
            }
        }
        true
    }

    /// When something is due next.
    pub(super) fn next(&self) -> impl Iterator<Item = Wake> + '_ {
        self.due.iter().map(|((at, _), due)| Wake { at: *at, moves: !due.again })
    }

    fn put(&mut self, now: Timestamp, acting: &Acting, after: Duration, what: What, again: bool) {
        // What is tried again waits for others, whose pace may be none.
        let left = if again { jiff::SignedDuration::try_from(after).unwrap_or_default() } else { acting.time(after) };
        let at = now.checked_add(left).unwrap_or(Timestamp::MAX);
        self.serial += 1;
        self.due.insert((at, self.serial), Due { what, again });
    }

    fn carry_out(&mut self, hands: &mut Hands<'_>, rule: &Rule, subject: Option<&(Place, i64)>) -> Result<(), String> {
        if let Some((place, generation)) = subject.filter(|_| !rule.status.is_empty()) {
            let mut status = rule.status.clone();
            status.insert("observedGeneration".to_owned(), json!(generation));
            // An object that is gone needs no status.
            hands.merge(MANAGER, place, Some("status"), &json!({"status": Value::Object(status)}));
        }
        let cluster = subject.map_or_else(ClusterKey::host, |(place, _)| place.cluster.clone());
        for object in &rule.register {
            register(hands, &cluster, object)?;
        }
        if let Some(kind) = &rule.expire {
            expire(hands, &cluster, kind)?;
        }
        if let Some(conflicts) = rule.conflicts {
            hands.state.faults.conflict_every(conflicts.every, conflicts.times);
        }
        if let Some(away) = rule.away {
            hands.state.faults.set_away(true);
            self.put(hands.now, hands.acting, away, What::Back, false);
        }
        Ok(())
    }
}

/// Workloads look such a rule up themselves when their pods start.
fn is_only_available(rule: &Rule) -> bool {
    rule.available && *rule == Rule { when: rule.when.clone(), after: rule.after, available: true, ..Rule::default() }
}

fn register(hands: &mut Hands<'_>, cluster: &ClusterKey, object: &Object) -> Result<(), String> {
    let kind = object.gvk().ok_or("it has no type")?;
    let served =
        hands.state.registry.of_kind(cluster, &kind.api_version(), &kind.kind).ok_or_else(|| format!("{kind} is not served"))?;
    let namespace = served.namespaced.then(|| object.namespace().unwrap_or("default").to_owned());
    let place = Place { resource: served.resource(), cluster: cluster.clone(), namespace, name: object.name().to_owned() };
    hands.apply(MANAGER, &place, object.as_value())
}

fn expire(hands: &mut Hands<'_>, cluster: &ClusterKey, kind: &KindRef) -> Result<(), String> {
    let served =
        hands.state.registry.of_kind(cluster, &kind.api_version, &kind.kind).ok_or_else(|| format!("{kind} is not served"))?;
    hands.state.store.expire(&served.resource(), cluster);
    Ok(())
}
