//! Which objects a list or a watch is about: clusters, namespace, labels, fields.

use std::sync::LazyLock;

use plinth_api::{ClusterKey, Object};
use serde_json::Value;

use super::store::Place;
use crate::selector::Selector;

/// Which clusters a request or a watch is about.
#[derive(Clone, Debug, PartialEq, Eq)]
pub enum Reach {
    /// One: the default cluster or a logical one.
    One(ClusterKey),
    /// All logical clusters, also those that come later. The default cluster is not one of them: it is an API server of its
    /// own, as a host cluster is beside kcp.
    Logical,
}

/// A selection of objects of one resource.
#[derive(Clone, Debug, Default, PartialEq)]
pub struct Filter {
    /// Clusters.
    pub reach: Reach,
    /// One namespace, or all of them.
    pub namespace: Option<String>,
    /// Labels.
    pub labels: Selector,
    /// Fields; all must hold.
    pub fields: Vec<FieldTest>,
}

/// One requirement of a field selector.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct FieldTest {
    /// Field names from the root, such as `metadata`, `name`.
    pub path: Vec<String>,
    /// The value; an absent field is the empty text.
    pub value: String,
    /// `=` where true, `!=` where false.
    pub equal: bool,
}

impl Default for Reach {
    fn default() -> Self {
        Self::One(ClusterKey::host())
    }
}

impl Reach {
    /// Whether it is about a cluster.
    pub fn covers(&self, cluster: &ClusterKey) -> bool {
        match self {
            Self::One(one) => one == cluster,
            Self::Logical => is_logical(cluster),
        }
    }
}

/// Whether a cluster is a logical one, not the default cluster.
pub fn is_logical(cluster: &ClusterKey) -> bool {
    static DEFAULT: LazyLock<ClusterKey> = LazyLock::new(ClusterKey::host);
    *cluster != *DEFAULT
}

impl Filter {
    /// Everything of a resource in one cluster.
    pub fn of(cluster: &ClusterKey) -> Self {
        Self { reach: Reach::One(cluster.clone()), ..Self::default() }
    }

    /// Whether an object at a place is selected.
    pub fn selects(&self, place: &Place, object: &Object) -> bool {
        self.covers(place) && self.labels.matches(object) && self.fields.iter().all(|test| test.holds(object))
    }

    /// Whether a place can hold selected objects at all.
    pub fn covers(&self, place: &Place) -> bool {
        self.reach.covers(&place.cluster)
            && self.namespace.as_ref().is_none_or(|namespace| place.namespace.as_ref() == Some(namespace))
    }

    /// Whether a place of the same resource comes after all that are selected, in the order of places.
    pub fn is_behind(&self, place: &Place) -> bool {
        match &self.reach {
            Reach::One(cluster) if place.cluster == *cluster => self.namespace.is_some() && place.namespace > self.namespace,
            Reach::One(cluster) => place.cluster > *cluster,
            Reach::Logical => false,
        }
    }
}

impl FieldTest {
    /// Parses `a.b=c,d!=e`; `None` where it is no field selector. Which paths a kind allows is the caller's affair.
    pub fn parse_all(text: &str) -> Option<Vec<Self>> {
        text.split(',').map(str::trim).filter(|part| !part.is_empty()).map(Self::parse).collect()
    }

    fn parse(part: &str) -> Option<Self> {
        let (path, value, equal) = if let Some((path, value)) = part.split_once("!=") {
            (path, value, false)
        } else {
            let (path, value) = part.split_once("==").or_else(|| part.split_once('='))?;
            (path, value, true)
        };
        let path: Vec<String> = path.trim().split('.').map(str::to_owned).collect();
        let named = path.iter().all(|name| !name.is_empty());
        named.then(|| Self { path, value: value.trim().to_owned(), equal })
    }

    fn holds(&self, object: &Object) -> bool {
        let path: Vec<&str> = self.path.iter().map(String::as_str).collect();
        let text = match object.at(&path) {
            Some(Value::String(text)) => text.clone(),
            Some(value @ (Value::Bool(_) | Value::Number(_))) => value.to_string(),
            _ => String::new(),
        };
        (text == self.value) == self.equal
    }
}

#[cfg(test)]
mod tests {
    use serde_json::json;

    use super::*;

    #[test]
    fn field_selectors_compare_text() {
        let object = Object::from_value(json!({"metadata": {"name": "a"}, "spec": {"size": 3, "on": true}})).unwrap();
        for (text, holds) in [
            ("metadata.name=a", true),
            ("metadata.name==a,spec.size=3", true),
            ("metadata.name!=a", false),
            ("spec.on=true", true),
            ("spec.absent=", true),
            ("spec.absent!=x", true),
            ("metadata.name=a,spec.size=4", false),
            ("", true),
        ] {
            let tests = FieldTest::parse_all(text).unwrap();
            assert_eq!(tests.iter().all(|test| test.holds(&object)), holds, "{text}");
        }
        for text in ["metadata.name", ".a=b", "a..b=c", "=x"] {
            assert_eq!(FieldTest::parse_all(text), None, "{text}");
        }
    }
}
