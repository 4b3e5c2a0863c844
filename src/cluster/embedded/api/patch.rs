//! Merge patch (RFC 7386) and JSON patch (RFC 6902).

use serde_json::Value;

use super::problem::Problem;

/// Most operations of a JSON patch, as in Kubernetes.
const MAX_OPERATIONS: usize = 10_000;

/// The forms in which patches come.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Form {
    /// `application/json-patch+json`.
    Json,
    /// `application/merge-patch+json`.
    Merge,
    /// `application/apply-patch+yaml`.
    Apply,
}

impl Form {
    /// By the content type.
    pub fn of(content_type: &str) -> Option<Self> {
        match content_type.split(';').next()?.trim() {
            "application/json-patch+json" => Some(Self::Json),
            "application/merge-patch+json" => Some(Self::Merge),
            "application/apply-patch+yaml" => Some(Self::Apply),
            _ => None,
        }
    }

    /// What is said to a content type that is none of them.
    pub fn unknown() -> Problem {
        Problem::media_type("application/json-patch+json, application/merge-patch+json, application/apply-patch+yaml")
    }
}

/// The patched value.
pub fn patched(mut value: Value, patch: &Value, form: Form) -> Result<Value, Problem> {
    match form {
        Form::Merge if patch.is_object() => json_patch::merge(&mut value, patch),
        Form::Merge | Form::Apply => return Err(Problem::bad_request("the patch is no JSON object")),
        Form::Json => operations(&mut value, patch)?,
    }
    Ok(value)
}

fn operations(value: &mut Value, patch: &Value) -> Result<(), Problem> {
    let patch: json_patch::Patch =
        serde_json::from_value(patch.clone()).map_err(|error| Problem::bad_request(format!("error decoding patch: {error}")))?;
    if patch.len() > MAX_OPERATIONS {
        return Err(Problem::too_large(MAX_OPERATIONS));
    }
    json_patch::patch(value, &patch).map_err(|error| Problem {
        code: 422,
        reason: "Invalid",
        message: format!("the server rejected our request due to an error in our request: {error}"),
        details: serde_json::json!({}),
    })
}
