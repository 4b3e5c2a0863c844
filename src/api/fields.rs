//! The fields of an object, shared until somebody changes them.

use std::{
    fmt,
    ops::{Deref, DerefMut},
    sync::Arc,
};

use serde::{Deserialize, Deserializer, Serialize, Serializer};
use serde_json::{Map, Value};

/// Fields of a JSON object by name. A clone costs nothing: whoever changes it first makes a copy of its own, because most of those
/// who hold an object (an index, a history, a pass, an answer) only ever read it.
///
/// Invariant: the value is a JSON object.
#[derive(Clone)]
pub struct Fields(Arc<Value>);

const IS_OBJECT: &str = "fields are made of JSON objects alone";

impl Fields {
    /// Takes a value; `None` where it is no JSON object.
    pub(crate) fn of(value: Arc<Value>) -> Option<Self> {
        value.is_object().then_some(Self(value))
    }

    pub(crate) fn as_value(&self) -> &Value {
        &self.0
    }

    pub(crate) fn into_shared(self) -> Arc<Value> {
        self.0
    }
}

impl Deref for Fields {
    type Target = Map<String, Value>;

    fn deref(&self) -> &Self::Target {
        self.0.as_object().expect(IS_OBJECT)
    }
}

impl DerefMut for Fields {
    fn deref_mut(&mut self) -> &mut Self::Target {
        Arc::make_mut(&mut self.0).as_object_mut().expect(IS_OBJECT)
    }
}

impl From<Map<String, Value>> for Fields {
    fn from(fields: Map<String, Value>) -> Self {
        Self(Arc::new(Value::Object(fields)))
    }
}

impl FromIterator<(String, Value)> for Fields {
    fn from_iter<T: IntoIterator<Item = (String, Value)>>(fields: T) -> Self {
        Map::from_iter(fields).into()
    }
}

impl Default for Fields {
    fn default() -> Self {
        Map::new().into()
    }
}

impl PartialEq for Fields {
    fn eq(&self, other: &Self) -> bool {
        Arc::ptr_eq(&self.0, &other.0) || self.0 == other.0
    }
}

impl fmt::Debug for Fields {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        (**self).fmt(f)
    }
}

impl Serialize for Fields {
    fn serialize<S: Serializer>(&self, serializer: S) -> Result<S::Ok, S::Error> {
        self.0.serialize(serializer)
    }
}

impl<'de> Deserialize<'de> for Fields {
    fn deserialize<D: Deserializer<'de>>(deserializer: D) -> Result<Self, D::Error> {
        Map::deserialize(deserializer).map(Self::from)
    }
}

#[cfg(test)]
mod tests {
    use serde_json::json;

    use crate::Object;

    #[test]
    fn a_clone_shares_until_it_is_changed() {
        let object = Object::from_value(json!({"kind": "A", "metadata": {"name": "a"}})).unwrap();
        let mut other = object.clone();
        assert!(std::ptr::eq(object.as_value(), other.as_value()));
        other.metadata_mut().insert("name".to_owned(), json!("b"));
        assert_eq!((object.name(), other.name()), ("a", "b"));
        assert_ne!(object, other);
    }

    #[test]
    fn what_nobody_else_holds_is_taken_and_not_copied() {
        let object = Object::from_value(json!({"kind": "A"})).unwrap();
        let kind = std::ptr::from_ref(object.as_value().pointer("/kind").unwrap().as_str().unwrap());
        let value = object.into_value();
        assert_eq!(kind, std::ptr::from_ref(value["kind"].as_str().unwrap()));
    }

    #[test]
    fn only_json_objects_are_objects() {
        assert_eq!(Object::from_value(json!([1])), None);
        assert!(serde_json::from_str::<Object>("[1]").is_err());
        let object: Object = serde_json::from_str(r#"{"kind":"A"}"#).unwrap();
        assert_eq!(serde_json::to_string(&object).unwrap(), r#"{"kind":"A"}"#);
    }
}
