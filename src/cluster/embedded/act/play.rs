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

use super::{
    Acting, Wake,
    hands::Hands,
    mishap::{Mishap, Told},
    workload,
};
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
    told: Told,
}

#[derive(Clone, Debug)]
struct Due {
    what: What,
    /// It was tried before, and may never work.
    again: bool,
}

#[derive(Clone, Debug)]
enum What {
    /// An effect of a rule, for an object where it is about one.
    Rule(usize, Effect, Option<Subject>),
    /// The API server comes back.
    Back,
}

/// The object that a rule is about, in the generation in which it matched.
#[derive(Clone, Debug)]
struct Subject {
    place: Place,
    generation: i64,
}

/// One thing that a rule does. Each is tried for itself, so that none is done twice because another one is refused.
#[derive(Clone, Copy, Debug, PartialEq, Eq, PartialOrd, Ord)]
pub(super) enum Effect {
    /// Workloads look it up themselves when their pods start.
    Available,
    Status,
    /// The object of this number.
    Register(usize),
    Expire,
    Conflicts,
    Away,
}

impl Play {
    pub(super) fn new(scenario: &Scenario) -> Self {
        let told = Told::default();
        Self { began: scenario.rules.is_empty(), seen: BTreeSet::new(), due: BTreeMap::new(), serial: 0, told }
    }

    /// Notices a change that rules are about.
    pub(super) fn look(&mut self, place: &Place, object: &Arc<Object>, now: Timestamp, acting: &Acting) {
        for (index, rule) in acting.scenario.rules.iter().enumerate() {
            let Some(when) = rule.when.as_ref().filter(|when| when.is_about(object)) else { continue };
            let matches = when.matches(object);
            self.told.met(index, matches);
            if matches && self.seen.insert((index, object.uid().unwrap_or_default().to_owned(), object.generation())) {
                self.begin(index, rule, Some(&Subject { place: place.clone(), generation: object.generation() }), now, acting);
            }
        }
    }

    /// Does the next thing that is due; false where there is none.
    pub(super) fn act(&mut self, hands: &mut Hands<'_>) -> bool {
        if !std::mem::replace(&mut self.began, true) {
            for (index, rule) in hands.acting.scenario.rules.iter().enumerate().filter(|(_, rule)| rule.when.is_none()) {
                self.begin(index, rule, None, hands.now, hands.acting);
            }
        }
        let Some(entry) = self.due.first_entry().filter(|entry| entry.key().0 <= hands.now) else { return false };
        match entry.remove().what {
            What::Back => hands.state.faults.set_away(false),
            What::Rule(index, effect, subject) => self.try_out(hands, index, effect, subject),
        }
        true
    }

    /// When something is due next.
    pub(super) fn next(&self) -> impl Iterator<Item = Wake> + '_ {
        self.due.iter().map(|((at, _), due)| Wake { at: *at, moves: !due.again })
    }

    /// What the scenario's rules did not get.
    pub(super) fn mishaps(&self, scenario: &Scenario, is_over: bool) -> Vec<Mishap> {
        self.told.mishaps(scenario, is_over)
    }

    fn begin(&mut self, index: usize, rule: &Rule, subject: Option<&Subject>, now: Timestamp, acting: &Acting) {
        if let Some(subject) = subject.filter(|subject| rule.available && !workload::runs(&subject.place)) {
            let why = "no pods come of it here; say what it reports in `status`";
            self.told.tried(index, Effect::Available, Some(&subject.place), Err(why.to_owned()));
        }
        for effect in effects(rule) {
            self.put(now, acting, rule.after, What::Rule(index, effect, subject.cloned()), false);
        }
    }

    fn put(&mut self, now: Timestamp, acting: &Acting, after: Duration, what: What, again: bool) {
        // What is tried again waits for others, whose pace may be none.
        let left = if again { jiff::SignedDuration::try_from(after).unwrap_or_default() } else { acting.time(after) };
        let at = now.checked_add(left).unwrap_or(Timestamp::MAX);
        self.serial += 1;
        self.due.insert((at, self.serial), Due { what, again });
    }

    fn try_out(&mut self, hands: &mut Hands<'_>, index: usize, effect: Effect, subject: Option<Subject>) {
        let done = self.carry_out(hands, &hands.acting.scenario.rules[index], effect, subject.as_ref());
        let refused = done.is_err();
        self.told.tried(index, effect, subject.as_ref().map(|subject| &subject.place), done);
        if refused {
            self.put(hands.now, hands.acting, AGAIN, What::Rule(index, effect, subject), true);
        }
    }

    fn carry_out(&mut self, hands: &mut Hands<'_>, rule: &Rule, effect: Effect, subject: Option<&Subject>) -> Result<(), String> {
        let cluster = subject.map_or_else(ClusterKey::host, |subject| subject.place.cluster.clone());
        match effect {
            Effect::Available => {}
            Effect::Status => return subject.map_or(Ok(()), |subject| report(hands, subject, rule)),
            Effect::Register(number) => return register(hands, &cluster, &rule.register[number]),
            Effect::Expire => return rule.expire.as_ref().map_or(Ok(()), |kind| expire(hands, &cluster, kind)),
            Effect::Conflicts => {
                rule.conflicts.iter().for_each(|made| hands.state.faults.conflict_every(made.every, made.times));
            }
            Effect::Away => {
                hands.state.faults.set_away(true);
                self.put(hands.now, hands.acting, rule.away.unwrap_or_default(), What::Back, false);
            }
        }
        Ok(())
    }
}

/// What a rule does by this player's hand.
fn effects(rule: &Rule) -> impl Iterator<Item = Effect> {
    let has = |there: bool, effect: Effect| there.then_some(effect).into_iter();
    has(!rule.status.is_empty(), Effect::Status)
        .chain((0..rule.register.len()).map(Effect::Register))
        .chain(has(rule.expire.is_some(), Effect::Expire))
        .chain(has(rule.conflicts.is_some(), Effect::Conflicts))
        .chain(has(rule.away.is_some(), Effect::Away))
}

fn report(hands: &mut Hands<'_>, subject: &Subject, rule: &Rule) -> Result<(), String> {
    let mut status = rule.status.clone();
    status.insert("observedGeneration".to_owned(), json!(subject.generation));
    let written = hands.merge_part(MANAGER, &subject.place, Some("status"), &json!({"status": Value::Object(status)}));
    // An object that is gone needs no status.
    if hands.get(&subject.place).is_none() { Ok(()) } else { written }
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
