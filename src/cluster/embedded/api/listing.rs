//! Lists, as they are answered.

use plinth_api::Object;
use serde::{Serialize, Serializer, ser::SerializeMap};
use serde_json::{Map, Value};

use super::kinds::Served;

/// A list of objects. Who is asked for it as text writes the objects of built-in kinds without their type, as API servers do.
#[derive(Clone, Debug)]
pub struct Listing {
    kind: String,
    api_version: String,
    /// `metadata`: the version, and where the next page begins.
    pub metadata: Map<String, Value>,
    /// The objects, shared with the store where they are shown as they are stored.
    pub items: Vec<Object>,
    is_builtin: bool,
}

impl Listing {
    /// A list of a served kind.
    pub(super) fn of(served: &Served, metadata: Map<String, Value>, items: Vec<Object>) -> Self {
        let (kind, api_version) = (served.list_kind.clone(), served.api_version());
        Self { kind, api_version, metadata, items, is_builtin: served.builtin }
    }
}

impl Serialize for Listing {
    fn serialize<S: Serializer>(&self, serializer: S) -> Result<S::Ok, S::Error> {
        let mut list = serializer.serialize_map(Some(4))?;
        list.serialize_entry("apiVersion", &self.api_version)?;
        let items: Vec<Item<'_>> = self.items.iter().map(|object| Item { object, is_typed: !self.is_builtin }).collect();
        list.serialize_entry("items", &items)?;
        list.serialize_entry("kind", &self.kind)?;
        list.serialize_entry("metadata", &self.metadata)?;
        list.end()
    }
}

struct Item<'a> {
    object: &'a Object,
    is_typed: bool,
}

impl Serialize for Item<'_> {
    fn serialize<S: Serializer>(&self, serializer: S) -> Result<S::Ok, S::Error> {
        let is_shown = |name: &String| self.is_typed || !["apiVersion", "kind"].contains(&name.as_str());
        serializer.collect_map(self.object.0.iter().filter(|(name, _)| is_shown(name)))
    }
}
