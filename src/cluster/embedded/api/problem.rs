//! What is answered instead of an object: `Status` with the codes, reasons and words of Kubernetes.

use serde_json::{Value, json};

/// A refused request.
#[derive(Clone, Debug, PartialEq)]
pub struct Problem {
    /// HTTP status.
    pub code: u16,
    /// Machine-readable reason, empty for none.
    pub reason: &'static str,
    /// For people.
    pub message: String,
    /// `details`; `null` for none.
    pub details: Value,
}

/// One cause of an `Invalid`.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct FieldFault {
    /// Such as `FieldValueRequired`.
    pub reason: &'static str,
    /// Path.
    pub field: String,
    /// What is wrong there.
    pub message: String,
}

/// Group and plural in messages: `configmaps`, `deployments.apps`.
pub fn qualified(group: &str, name: &str) -> String {
    if group.is_empty() { name.to_owned() } else { format!("{name}.{group}") }
}

fn about(group: &str, kind: &str, name: &str) -> Value {
    let mut details = json!({});
    for (field, text) in [("kind", kind), ("group", group), ("name", name)] {
        if !text.is_empty() {
            details[field] = json!(text);
        }
    }
    details
}

impl Problem {
    fn new(code: u16, reason: &'static str, message: impl Into<String>, details: Value) -> Self {
        Self { code, reason, message: message.into(), details }
    }

    /// 400.
    pub fn bad_request(message: impl Into<String>) -> Self {
        Self::new(400, "BadRequest", message, Value::Null)
    }

    /// 404 for an object.
    pub fn not_found(group: &str, plural: &str, name: &str) -> Self {
        let message = format!("{} {name:?} not found", qualified(group, plural));
        Self::new(404, "NotFound", message, about(group, plural, name))
    }

    /// 404 for a resource that is not served.
    pub fn no_resource() -> Self {
        Self::new(404, "NotFound", "the server could not find the requested resource", json!({}))
    }

    /// 404 over all logical clusters, for what is only done in one.
    pub fn no_resource_across() -> Self {
        let cause = json!({"reason": "UnexpectedServerResponse", "message": "404 page not found"});
        Self { details: json!({"causes": [cause]}), ..Self::no_resource() }
    }

    /// 400 without a reason: one namespace over all logical clusters.
    pub fn one_namespace_across(namespace: &str) -> Self {
        let rule = "cross-cluster LIST and WATCH are required to be cross-namespace, not scoped to namespace";
        Self::new(400, "", format!("{rule} {namespace}"), Value::Null)
    }

    /// 405.
    pub fn no_method() -> Self {
        Self::new(405, "MethodNotAllowed", "the server does not allow this method on the requested resource", json!({}))
    }

    /// 409 for a name that is taken.
    pub fn exists(group: &str, plural: &str, name: &str) -> Self {
        let message = format!("{} {name:?} already exists", qualified(group, plural));
        Self::new(409, "AlreadyExists", message, about(group, plural, name))
    }

    /// 409 for an object that is not in the state that was expected.
    pub fn conflict(group: &str, plural: &str, name: &str, why: &str) -> Self {
        let message = format!("Operation cannot be fulfilled on {} {name:?}: {why}", qualified(group, plural));
        Self::new(409, "Conflict", message, about(group, plural, name))
    }

    /// 409 for fields that others manage; `causes` are manager and field.
    pub fn apply_conflict(message: String, causes: &[(String, String)]) -> Self {
        let causes: Vec<Value> = causes
            .iter()
            .map(|(manager, field)| {
                json!({"reason": "FieldManagerConflict", "message": format!("conflict with {manager}"), "field": field})
            })
            .collect();
        Self::new(409, "Conflict", message, json!({"causes": causes}))
    }

    /// 422.
    pub fn invalid(group: &str, kind: &str, name: &str, faults: &[FieldFault]) -> Self {
        let mut lines: Vec<String> = Vec::new();
        for line in faults.iter().map(|fault| format!("{}: {}", fault.field, fault.message)) {
            // The text says once what the causes may say twice.
            if !lines.contains(&line) {
                lines.push(line);
            }
        }
        let text = if let [one] = lines.as_slice() { one.clone() } else { format!("[{}]", lines.join(", ")) };
        let mut details = about(group, kind, name);
        details["causes"] =
            faults.iter().map(|fault| json!({"reason": fault.reason, "message": fault.message, "field": fault.field})).collect();
        Self::new(422, "Invalid", format!("{} {name:?} is invalid: {text}", qualified(group, kind)), details)
    }

    /// 403.
    pub fn forbidden(group: &str, plural: &str, name: &str, why: &str) -> Self {
        let named = if name.is_empty() { String::new() } else { format!(" {name:?}") };
        let message = format!("{}{named} is forbidden: {why}", qualified(group, plural));
        Self::new(403, "Forbidden", message, about(group, plural, name))
    }

    /// 401.
    pub fn unauthorized() -> Self {
        Self::new(401, "Unauthorized", "Unauthorized", Value::Null)
    }

    /// 406: JSON is not among the media types that are wanted.
    pub fn not_acceptable() -> Self {
        let message = "only the following media types are accepted: application/json";
        Self::new(406, "NotAcceptable", message, Value::Null)
    }

    /// 410 for a version that is forgotten.
    pub fn expired(message: impl Into<String>) -> Self {
        Self::new(410, "Expired", message, Value::Null)
    }

    /// 413.
    pub fn too_large(limit: usize) -> Self {
        let message = format!("Request entity too large: limit is {limit}");
        Self::new(413, "RequestEntityTooLarge", message, Value::Null)
    }

    /// 415.
    pub fn media_type(accepted: &str) -> Self {
        let message = format!("the body of the request was in an unknown format - accepted media types include: {accepted}");
        Self::new(415, "UnsupportedMediaType", message, Value::Null)
    }

    /// 500 without a reason: what cannot be merged.
    pub fn unmergeable(message: impl Into<String>) -> Self {
        Self::new(500, "", message, Value::Null)
    }

    /// 500 for what the API server did not expect.
    pub fn internal(why: &str) -> Self {
        let details = json!({"causes": [{"message": why}]});
        Self::new(500, "InternalError", format!("Internal error occurred: {why}"), details)
    }

    /// As `Status`.
    pub fn status(&self) -> Value {
        let mut status = json!({
            "kind": "Status", "apiVersion": "v1", "metadata": {}, "status": "Failure", "message": self.message, "code": self.code,
        });
        if !self.reason.is_empty() {
            status["reason"] = json!(self.reason);
        }
        if !self.details.is_null() {
            status["details"] = self.details.clone();
        }
        status
    }
}
