//! What the cluster has of what is wanted.

use std::collections::{BTreeMap, VecDeque};

use futures::{StreamExt, TryStreamExt, stream};
use plinth_api::{Object, ObjectKey};
use plinth_engine::{
    naming::keys,
    ports::{ReadError, Reader},
};
use plinth_run::Action;
use serde_json::Value;

use super::{
    Draft,
    expand::Place,
    owner::{Owner, foreign_owner},
};
use crate::{
    adopt, compare,
    error::Error,
    held::{held, held_by},
    preflight::AT_ONCE,
    settings::{Purpose, Settings},
    wanted::{Step, Wanted},
};

/// What the cluster has, by object.
pub type Found = BTreeMap<ObjectKey, Standing>;

/// How a wanted object stands.
#[derive(Clone, Debug, PartialEq)]
pub struct Standing {
    /// What applying it will do.
    pub action: Action,
    /// What differs, as paths.
    pub fields: Vec<String>,
    /// `metadata.resourceVersion` that was compared with.
    pub resource_version: Option<String>,
    /// Anything that a reviewer should know.
    pub note: Option<String>,
}

/// Reads every object whose name is known and compares.
pub(super) async fn look(draft: &Draft, settings: &Settings, reader: &dyn Reader) -> Result<Found, Error> {
    let places: Vec<_> = draft.places.iter().filter(|place| place.is_named() && place.waits_for.is_empty()).collect();
    let keys = draft.wanted.iter().map(|wanted| &wanted.key).chain(places.iter().map(|place| &place.subject.key));
    // Two steps, so that the requests are made here and only awaited in the stream.
    let reads: Vec<_> = keys.map(|key| read(reader, key)).collect();
    let mut live: VecDeque<Option<Object>> = stream::iter(reads).buffered(AT_ONCE).try_collect().await?;
    let mut next = || live.pop_front().expect("there is an answer for every key");
    let mut found = Found::new();
    for wanted in &draft.wanted {
        found.insert(wanted.key.clone(), standing(wanted, next().as_ref(), settings)?);
    }
    for place in places {
        found.insert(place.subject.key.clone(), of_child(place, next().as_ref(), settings)?);
    }
    Ok(found)
}

/// One object; a kind that is not served has no objects.
pub(crate) async fn read(reader: &dyn Reader, key: &ObjectKey) -> Result<Option<Object>, Error> {
    match reader.get(key).await {
        Ok(live) => Ok(live),
        Err(ReadError::NotServed(_)) => Ok(None),
        Err(error) => Err(error.into()),
    }
}

/// How an object stands that the run writes itself. One that somebody else made is not taken without `--take-over`.
pub(crate) fn standing(wanted: &Wanted, live: Option<&Object>, settings: &Settings) -> Result<Standing, Error> {
    let Some(live) = live else { return Ok(Standing::new(Action::Create, None)) };
    if live.is_terminating() {
        return Ok(Standing::again());
    }
    let object = wanted.object.as_value();
    let mut fields = compare::differences(object, live.as_value());
    fields.extend(compare::given_up(object, live, keys::MANAGER));
    // What only the server has is not ours, but for what an earlier run said of itself.
    let unverified = plinth_engine::yaml::field("metadata.annotations", keys::UNVERIFIED);
    let is_given_up = live.annotation(keys::UNVERIFIED).is_some() && wanted.object.annotation(keys::UNVERIFIED).is_none();
    if is_given_up && !fields.iter().any(|field| unverified.starts_with(field.as_str())) {
        fields.push(unverified);
    }
    // `--take-over` is for what other tools have, not for another platform; a comparison asks for it only to see what others hold.
    let is_shared = wanted.step == Step::Foundation && settings.purpose == Purpose::Compare;
    let stays = |owner: &Owner| !settings.take_over || owner.platform.is_some() || is_shared;
    let Some(owner) = foreign_owner(live, settings).filter(stays) else {
        let held = if settings.take_over { Vec::new() } else { held(object, live, keys::MANAGER) };
        if !held.is_empty() {
            return Err(Error::Held { object: wanted.key.to_string(), fields: held });
        }
        let lost = if wanted.step > Step::Controller { lost(object, live, keys::MANAGER, settings) } else { Vec::new() };
        return Ok(Standing::differing(fields, None, live).losing(&lost));
    };
    // CRDs and the namespace are shared by nature; anything else is only left alone where it already is as wanted.
    let label = plinth_engine::yaml::field("metadata.labels", keys::PLATFORM);
    let as_wanted = fields.iter().all(|field| *field == label);
    if wanted.step == Step::Foundation || as_wanted {
        let note = Some(format!("belongs to {} and is left as it is", owner.name));
        return Ok(Standing { note, ..Standing::new(Action::Skip, Some(live)) });
    }
    Err(Error::foreign(&wanted.key, &owner, &settings.platform, true))
}

/// How a child stands, by the fields that are known. One that somebody else made is not taken without `--take-over`, as its graph
/// would write over it and its removal would delete it.
pub(crate) fn of_child(place: &Place, live: Option<&Object>, settings: &Settings) -> Result<Standing, Error> {
    let Some(live) = live else { return Ok(Standing::new(Action::Create, None)) };
    if live.is_terminating() {
        return Ok(Standing::again());
    }
    let owner = foreign_owner(live, settings);
    if let Some(owner) = owner.as_ref().filter(|owner| !settings.take_over || owner.is_controller) {
        return Err(Error::foreign(&place.subject.key, owner, &settings.platform, !owner.is_controller));
    }
    let mut fields = compare::differences(place.object.as_value(), live.as_value());
    fields.retain(|field| !place.unresolved.iter().any(|open| open == field || open.starts_with(&format!("{field}."))));
    fields.extend(taken(place, live));
    let mut lost = lost(place.object.as_value(), live, keys::MANAGER_APPLYSET, settings);
    lost.retain(|field| {
        !place.unresolved.iter().any(|open| field.starts_with(open.as_str()) || open.starts_with(field.as_str()))
    });
    let note = owner.map(|owner| format!("belongs to {} and is taken over", owner.name));
    Ok(Standing::differing(fields, note, live).losing(&lost))
}

/// Fields that another tool set and that go with taking the object over: they are ours then, and we do not want them. What tools write
/// for themselves is not told.
fn lost(wanted: &Value, live: &Object, heir: &str, settings: &Settings) -> Vec<String> {
    let taken = if settings.take_over && settings.purpose == Purpose::Write { adopt::adopted(live, heir) } else { None };
    let ours = compare::given_up(wanted, live, heir);
    let given_up = taken.map(|taken| compare::given_up(wanted, &taken, heir)).unwrap_or_default();
    given_up.into_iter().filter(|field| !ours.contains(field) && !is_bookkeeping(field)).collect()
}

/// Whether a field is what a tool, or our own loop, marks objects with.
fn is_bookkeeping(field: &str) -> bool {
    let marks = ["kro.run/", "plinth.dev/", "applyset.kubernetes.io/", "app.kubernetes.io/managed-by", "kubectl.kubernetes.io/"];
    let is_mark = |path: &str| marks.iter().any(|mark| path.contains(mark));
    ["metadata.ownerReferences", "metadata.finalizers"].iter().any(|own| field.starts_with(own))
        || field.starts_with("metadata.") && is_mark(field)
}

/// Fields whose value the graph knows only at run time, and which somebody else has set since the loop did: it will set them again.
fn taken(place: &Place, live: &Object) -> Vec<String> {
    let wanted = place.object.as_value();
    let of = |is_ours: bool| {
        let fields = held_by(wanted, live, |manager| (manager == keys::MANAGER_APPLYSET) == is_ours);
        fields.into_iter().map(|held| held.field).collect::<Vec<_>>()
    };
    let ours = of(true);
    of(false).into_iter().filter(|field| place.unresolved.contains(field) && !ours.contains(field)).collect()
}

impl Standing {
    /// One that somebody deleted.
    fn again() -> Self {
        let note = Some("is being deleted, and is made again once it is gone".to_owned());
        Self { note, ..Self::new(Action::Create, None) }
    }

    /// One that is there.
    fn differing(fields: Vec<String>, note: Option<String>, live: &Object) -> Self {
        let action = if fields.is_empty() && note.is_none() { Action::Unchanged } else { Action::Configure };
        Self { fields, note, ..Self::new(action, Some(live)) }
    }

    /// The same, where taking it over takes these fields away.
    fn losing(mut self, lost: &[String]) -> Self {
        if !lost.is_empty() {
            let goes = format!("loses {}", lost.join(", "));
            self.note = Some(self.note.map_or_else(|| goes.clone(), |note| format!("{note}; {goes}")));
            self.action = Action::Configure;
        }
        self
    }

    fn new(action: Action, live: Option<&Object>) -> Self {
        let resource_version = live.and_then(|live| live.resource_version()).map(str::to_owned);
        Self { action, fields: Vec::new(), resource_version, note: None }
    }
}
