//! What is known of the served kinds, without I/O.

use std::{
    collections::{BTreeMap, BTreeSet},
    sync::Arc,
};

use plinth_api::{GroupVersionKind, Object};
use plinth_engine::schema::{self, KindInfo, Schema};
use serde_json::Value;

use super::{SchemaChange, SchemaEvent, ServedKind};

/// Where a CRD stands.
#[derive(Clone, Debug, PartialEq, Eq)]
pub enum CrdState {
    /// It does not exist, as far as was seen.
    Absent,
    /// It exists, and its kinds are not served yet.
    Pending,
    /// Its kinds are served.
    Established,
    /// Another CRD has its names; the server's words.
    NamesRefused(String),
}

/// A CRD object, read once.
#[derive(Clone, Debug)]
pub(super) struct Crd {
    pub(super) name: String,
    /// Of its spec.
    generation: i64,
    established: bool,
    refused: Option<String>,
    kinds: BTreeMap<GroupVersionKind, Arc<KindInfo>>,
}

/// All that is known.
#[derive(Default)]
pub(super) struct State {
    discovered: BTreeMap<GroupVersionKind, ServedKind>,
    /// When groups and versions were asked for, as far as nothing is doubted that the server said then.
    asked: BTreeMap<(String, String), u64>,
    /// Schemas of kinds that no CRD defines.
    built_in: BTreeMap<GroupVersionKind, Arc<KindInfo>>,
    crds: BTreeMap<String, Crd>,
    /// Which established CRD serves a kind.
    served_by: BTreeMap<GroupVersionKind, String>,
    complete: bool,
}

impl Crd {
    /// Reads a CustomResourceDefinition; `None` where it has no name or no group.
    pub(super) fn read(object: &Object) -> Option<Self> {
        let name = Some(object.name()).filter(|name| !name.is_empty())?.to_owned();
        object.at(&["spec", "group"]).and_then(Value::as_str)?;
        let kinds = kinds_of(object).into_iter().map(|kind| (kind.gvk.clone(), Arc::new(kind))).collect();
        let refused =
            condition(object, "NamesAccepted").filter(|(status, _)| *status == "False").map(|(_, message)| message.to_owned());
        let established = condition(object, "Established").is_some_and(|(status, _)| status == "True");
        Some(Self { name, generation: object.generation(), established, refused, kinds })
    }

    pub(super) fn is_established(&self) -> bool {
        self.established
    }

    pub(super) fn kinds(&self) -> impl Iterator<Item = ServedKind> {
        self.kinds.values().map(|kind| served(kind))
    }

    fn state(&self) -> CrdState {
        match &self.refused {
            _ if self.established => CrdState::Established,
            Some(message) => CrdState::NamesRefused(message.clone()),
            None => CrdState::Pending,
        }
    }
}

fn condition<'a>(object: &'a Object, kind: &str) -> Option<(&'a str, &'a str)> {
    let conditions = object.at(&["status", "conditions"])?.as_array()?;
    let found = conditions.iter().find(|condition| condition.get("type").and_then(Value::as_str) == Some(kind))?;
    let text = |field: &str| found.get(field).and_then(Value::as_str).unwrap_or_default();
    Some((text("status"), text("message")))
}

/// The kinds of a CRD; with open schemas where its schemas cannot be used, because the kinds are served all the same.
fn kinds_of(object: &Object) -> Vec<KindInfo> {
    match schema::crd::kinds(object) {
        Ok(kinds) => kinds,
        Err(error) => {
            tracing::warn!(crd = object.name(), %error, "a CRD's schema cannot be used; its objects go unchecked");
            open_kinds(object).unwrap_or_default()
        }
    }
}

fn open_kinds(object: &Object) -> Option<Vec<KindInfo>> {
    let text = |path: &[&str]| object.at(path).and_then(Value::as_str).map(str::to_owned);
    let (group, kind) = (text(&["spec", "group"])?, text(&["spec", "names", "kind"])?);
    let plural = text(&["spec", "names", "plural"])?;
    let namespaced = text(&["spec", "scope"]).as_deref() == Some("Namespaced");
    let versions = object.at(&["spec", "versions"])?.as_array()?.iter();
    let served = versions.filter(|version| version.get("served").and_then(Value::as_bool) == Some(true));
    let names = served.filter_map(|version| version.get("name")?.as_str());
    let open = Arc::new(Schema::open_object());
    let info = |version: &str| KindInfo {
        gvk: GroupVersionKind::new(&group, version, &kind),
        plural: plural.clone(),
        namespaced,
        schema: Arc::clone(&open),
    };
    Some(names.map(info).collect())
}

fn served(kind: &KindInfo) -> ServedKind {
    ServedKind { gvk: kind.gvk.clone(), plural: kind.plural.clone(), namespaced: kind.namespaced, listable: true }
}

impl State {
    pub(super) fn find(&self, gvk: &GroupVersionKind) -> Option<ServedKind> {
        match self.served_by.get(gvk).and_then(|name| self.crds.get(name)?.kinds.get(gvk)) {
            Some(kind) => Some(served(kind)),
            None => self.discovered.get(gvk).cloned(),
        }
    }

    pub(super) fn schema(&self, gvk: &GroupVersionKind) -> Option<Arc<KindInfo>> {
        let of_crd = self.served_by.get(gvk).and_then(|name| self.crds.get(name)?.kinds.get(gvk));
        of_crd.or_else(|| self.built_in.get(gvk)).cloned()
    }

    pub(super) fn all(&self) -> Vec<ServedKind> {
        let mut all = self.discovered.clone();
        all.extend(self.served_by.keys().filter_map(|gvk| Some((gvk.clone(), self.find(gvk)?))));
        all.into_values().collect()
    }

    pub(super) fn crd(&self, name: &str) -> CrdState {
        self.crds.get(name).map_or(CrdState::Absent, Crd::state)
    }

    pub(super) fn has_seen(&self, name: &str, generation: i64) -> bool {
        self.crds.get(name).is_none_or(|crd| crd.generation >= generation)
    }

    pub(super) fn has_crd(&self, name: &str) -> bool {
        self.crds.contains_key(name)
    }

    pub(super) fn is_complete(&self) -> bool {
        self.complete
    }

    /// Discovery's answer for one group and version replaces what it said before.
    pub(super) fn discovered(&mut self, group: &str, version: &str, kinds: Vec<ServedKind>) {
        self.discovered.retain(|gvk, _| gvk.group != group || gvk.version != version);
        self.discovered.extend(kinds.into_iter().map(|kind| (kind.gvk.clone(), kind)));
    }

    /// The same, of what was asked for at this moment.
    pub(super) fn answered(&mut self, gvk: &GroupVersionKind, asked: u64, kinds: Vec<ServedKind>) {
        self.discovered(&gvk.group, &gvk.version, kinds);
        self.asked.insert((gvk.group.clone(), gvk.version.clone()), asked);
    }

    /// Whether the server was asked for a kind's group and version after a moment.
    pub(super) fn was_asked_after(&self, gvk: &GroupVersionKind, moment: u64) -> bool {
        self.asked.get(&(gvk.group.clone(), gvk.version.clone())).is_some_and(|asked| *asked > moment)
    }

    pub(super) fn described(&mut self, kinds: impl IntoIterator<Item = Arc<KindInfo>>) {
        self.built_in.extend(kinds.into_iter().map(|kind| (kind.gvk.clone(), kind)));
    }

    pub(super) fn doubt(&mut self, gvk: &GroupVersionKind) {
        self.discovered.remove(gvk);
        self.asked.remove(&(gvk.group.clone(), gvk.version.clone()));
    }

    /// The server was away and may be another version now.
    pub(super) fn forget_built_in(&mut self) {
        self.discovered.clear();
        self.asked.clear();
        self.built_in.clear();
    }

    /// These are all CRDs there are.
    pub(super) fn reset(&mut self, crds: Vec<Crd>) -> Vec<SchemaChange> {
        let there: BTreeSet<&str> = crds.iter().map(|crd| crd.name.as_str()).collect();
        let missing: Vec<String> = self.crds.keys().filter(|name| !there.contains(name.as_str())).cloned().collect();
        let mut changes: Vec<SchemaChange> = missing.iter().flat_map(|name| self.remove(name)).collect();
        changes.extend(crds.into_iter().flat_map(|crd| self.put(crd)));
        self.complete = true;
        changes
    }

    /// A CRD as it is now.
    pub(super) fn put(&mut self, crd: Crd) -> Vec<SchemaChange> {
        let before = self.kinds_served_by(&crd.name);
        let after = if crd.established { crd.kinds.clone() } else { BTreeMap::new() };
        let mut changes = Vec::new();
        for gvk in before.keys().filter(|gvk| !after.contains_key(*gvk)) {
            self.retire(gvk, &mut changes);
        }
        for (gvk, kind) in &after {
            let event = match before.get(gvk) {
                None => SchemaEvent::Served,
                Some(old) if old != kind => SchemaEvent::Changed,
                Some(_) => continue,
            };
            self.served_by.insert(gvk.clone(), crd.name.clone());
            changes.push(SchemaChange { gvk: gvk.clone(), event });
        }
        self.crds.insert(crd.name.clone(), crd);
        changes
    }

    /// A CRD is gone.
    pub(super) fn remove(&mut self, name: &str) -> Vec<SchemaChange> {
        let mut changes = Vec::new();
        for gvk in self.kinds_served_by(name).into_keys() {
            self.retire(&gvk, &mut changes);
        }
        self.crds.remove(name);
        changes
    }

    fn retire(&mut self, gvk: &GroupVersionKind, changes: &mut Vec<SchemaChange>) {
        self.served_by.remove(gvk);
        // Discovery said so too, and is now wrong.
        self.doubt(gvk);
        changes.push(SchemaChange { gvk: gvk.clone(), event: SchemaEvent::Gone });
    }

    fn kinds_served_by(&self, name: &str) -> BTreeMap<GroupVersionKind, Arc<KindInfo>> {
        match self.crds.get(name) {
            Some(crd) if crd.established => crd.kinds.clone(),
            _ => BTreeMap::new(),
        }
    }
}
