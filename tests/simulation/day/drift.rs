//! What somebody may do to a platform who should not.

use std::fmt;

use serde_json::{Value, json};

use crate::{door::Door, random::Random};

/// An object, and what becomes of one of its fields; of all of it where the value is nothing.
pub(super) struct Drift {
    pub(super) path: &'static str,
    field: &'static str,
    value: fn() -> Value,
}

const ALL: [Drift; 8] = [
    Drift { path: "/api/v1/namespaces/default/configmaps/part-a", field: "/data", value: || Value::Null },
    Drift { path: "/api/v1/namespaces/default/configmaps/part-b", field: "/data/text", value: || json!("other") },
    Drift { path: "/api/v1/namespaces/default/configmaps/main-access", field: "/data/endpoint", value: || json!("other") },
    Drift { path: "/api/v1/namespaces/default/configmaps/operator-config", field: "/data", value: || Value::Null },
    Drift { path: "/apis/apps/v1/namespaces/default/deployments/operator", field: "/spec/replicas", value: || json!(0) },
    Drift { path: "/apis/apps/v1/namespaces/default/deployments/operator", field: "/spec/replicas", value: || Value::Null },
    Drift { path: "/apis/platform.test/v1alpha1/namespaces/default/parts/parts", field: "/spec/text", value: || json!("other") },
    Drift { path: "/apis/storage.test/v1/namespaces/default/buckets/main", field: "/spec/size", value: || json!(7) },
];

impl Drift {
    pub(super) fn drawn(random: &mut Random) -> &'static Self {
        let number = usize::try_from(random.between(0, ALL.len() as u64)).unwrap();
        &ALL[number]
    }

    /// The field as it is.
    pub(super) async fn look(&self, door: &Door) -> Option<Value> {
        door.get(self.path).await?.as_value().pointer(self.field).cloned()
    }

    pub(super) async fn happen(&self, door: &Door) {
        match (self.value)() {
            Value::Null => drop(door.send("DELETE", self.path, "application/json", &Value::Null).await),
            value => {
                let names = self.field.rsplit('/').filter(|name| !name.is_empty());
                let patch = names.fold(value, |value, name| json!({name: value}));
                assert!(door.merge(self.path, &patch).await, "{self}");
            }
        }
    }
}

impl fmt::Display for Drift {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        match (self.value)() {
            Value::Null => write!(f, "all of {}", self.path),
            _ => write!(f, "{} of {}", self.field, self.path),
        }
    }
}
