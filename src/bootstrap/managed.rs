//! Who manages an object's fields, as the API server records it in `metadata.managedFields` (Kubernetes: server-side apply).

use plinth_api::Object;
use serde_json::Value;

/// The records of an object itself, without those of its subresources: a status is its controller's.
pub(crate) fn records(live: &Object) -> impl Iterator<Item = &Value> {
    let records = live.at(&["metadata", "managedFields"]).and_then(Value::as_array);
    records.into_iter().flatten().filter(|record| is_of_object(record))
}

/// Whether a record is about the object itself.
pub(crate) fn is_of_object(record: &Value) -> bool {
    record["subresource"].as_str().is_none_or(str::is_empty)
}

/// The records of what a manager has applied.
pub(crate) fn applied_by<'a>(live: &'a Object, manager: &'a str) -> impl Iterator<Item = &'a Value> {
    records(live).filter(move |record| record["manager"] == manager && record["operation"] == "Apply")
}
