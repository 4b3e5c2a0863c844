//! From an API server's Status to the errors that callers decide by.
//!
//! | answer | write | read |
//! | --- | --- | --- |
//! | 404 naming no object | NotServed | NotServed |
//! | 404 naming an object | NotFound | absent, no error |
//! | 401, 403 | Forbidden | Forbidden |
//! | 403 because the namespace or the kind goes away | Unavailable | – |
//! | 409 | Conflict | – |
//! | 400, 413, 415, 422 | Invalid | Unavailable |
//! | the rest, and no answer | Unavailable | Unavailable |

use plinth_api::{GroupVersionKind, ObjectKey};
use plinth_engine::ports::{ReadError, WriteError};

use crate::{
    catalog::ServedKind,
    http::{ApiStatus, Fault},
};

/// The verbs of Kubernetes' authorization.
const VERBS: [&str; 9] = ["get", "list", "watch", "create", "update", "patch", "delete", "deletecollection", IMPERSONATE];
/// The verb of acting in somebody else's name.
const IMPERSONATE: &str = "impersonate";

/// True where the answer says that the path, so the kind, is not there, and names no object.
pub(crate) fn kind_is_missing(status: &ApiStatus) -> bool {
    status.code == 404 && status.details.name.is_empty()
}

/// True where the list must be made again, because the version asked for is too old.
pub(crate) fn is_expired(status: &ApiStatus) -> bool {
    status.code == 410 || status.reason == "Expired" || status.reason == "Gone"
}

/// Says why a write of `key` was not done; `verb` is what was asked of the server.
pub(crate) fn write_error(key: &ObjectKey, served: &ServedKind, verb: &str, fault: Fault) -> WriteError {
    let status = match fault {
        Fault::Connection(message) => return WriteError::Unavailable { key: key.clone(), message },
        Fault::Status(status) => status,
    };
    let (key, message) = (key.clone(), status.message.clone());
    match status.code {
        404 if kind_is_missing(&status) => WriteError::NotServed(key.gvk),
        404 => WriteError::NotFound { key, message },
        403 if is_terminating(&status) => WriteError::Unavailable { key, message },
        401 | 403 => {
            let (verb, resource) = refused(&message, verb, &served.resource());
            WriteError::Forbidden { verb, resource, namespace: key.namespace, message }
        }
        409 => WriteError::Conflict { key, message },
        400 | 413 | 415 | 422 => WriteError::Invalid { key, message },
        code => WriteError::Unavailable { key, message: format!("{message} ({code})") },
    }
}

/// Says why objects of `gvk` could not be read.
pub(crate) fn read_error(gvk: &GroupVersionKind, resource: &str, verb: &str, fault: Fault) -> ReadError {
    let status = match fault {
        Fault::Connection(message) => return ReadError::Unavailable(message),
        Fault::Status(status) => status,
    };
    match status.code {
        404 if kind_is_missing(&status) => ReadError::NotServed(gvk.clone()),
        401 | 403 => {
            let (verb, resource) = refused(&status.message, verb, resource);
            ReadError::Forbidden { verb, resource, message: status.message }
        }
        code => ReadError::Unavailable(format!("{} ({code})", status.message)),
    }
}

/// The server's words for a kind whose CRD is being deleted; it gives no reason of its own.
const KIND_TERMINATING: &str = "not allowed while custom resource definition is terminating";

/// Not a missing permission: what the object lives in, or its kind, is being deleted, and may come back.
fn is_terminating(status: &ApiStatus) -> bool {
    status.details.causes.iter().any(|cause| cause.reason == "NamespaceTerminating") || status.message.ends_with(KIND_TERMINATING)
}

/// The verb that is missing, and on what. An apply of an absent object is refused as `create`, although the request is a patch, and
/// a request in somebody else's name as `impersonate` on a service account. Only the message says so, and nothing but the wording of
/// an error depends on it.
fn refused(message: &str, asked: &str, resource: &str) -> (String, String) {
    let named = message.split_once(" cannot ").and_then(|(_, rest)| rest.split_whitespace().next());
    let verb = named.filter(|verb| VERBS.contains(verb)).unwrap_or(asked);
    let resource = if verb == IMPERSONATE { "serviceaccounts" } else { resource };
    (verb.to_owned(), resource.to_owned())
}

#[cfg(test)]
mod tests {
    use plinth_api::ClusterKey;
    use serde_json::json;

    use super::*;

    fn check(code: u16, body: &serde_json::Value) -> WriteError {
        let gvk = GroupVersionKind::new("apps", "v1", "Deployment");
        let served = ServedKind { gvk: gvk.clone(), plural: "deployments".into(), namespaced: true, listable: true };
        let key = ObjectKey { cluster: ClusterKey::host(), gvk, namespace: Some("ns".into()), name: "x".into() };
        let status = ApiStatus::read(http::StatusCode::from_u16(code).unwrap(), body.to_string().as_bytes());
        write_error(&key, &served, "patch", Fault::Status(Box::new(status)))
    }

    #[test]
    fn each_answer_has_its_error() {
        let named = json!({"kind": "Status", "message": "m", "details": {"name": "ns", "kind": "namespaces"}});
        assert!(matches!(check(404, &named), WriteError::NotFound { .. }));
        assert!(matches!(check(404, &json!({"kind": "Status", "message": "m", "details": {}})), WriteError::NotServed(_)));
        assert!(matches!(check(404, &json!("404 page not found")), WriteError::NotServed(_)));
        assert!(matches!(check(409, &named), WriteError::Conflict { .. }));
        for code in [400, 413, 422] {
            assert!(matches!(check(code, &named), WriteError::Invalid { .. }), "{code}");
        }
        for code in [405, 429, 500, 503, 504] {
            assert!(matches!(check(code, &named), WriteError::Unavailable { .. }), "{code}");
        }
    }

    #[test]
    fn a_missing_permission_names_verb_and_resource() {
        let message =
            "deployments.apps \"x\" is forbidden: User \"u\" cannot create resource \"deployments\" in API group \"apps\"";
        let error = check(403, &json!({"message": message, "reason": "Forbidden", "details": {"name": "x"}}));
        assert_eq!(error.to_string(), "create deployments.apps is not permitted in namespace ns");
        let message =
            "serviceaccounts \"a\" is forbidden: User \"u\" cannot impersonate resource \"serviceaccounts\" in API group \"\"";
        let error = check(403, &json!({"message": message, "reason": "Forbidden", "details": {"name": "a"}}));
        assert_eq!(error.to_string(), "impersonate serviceaccounts is not permitted in namespace ns");
        let error = check(403, &json!({"message": "no", "details": {"name": "x"}}));
        assert_eq!(error.to_string(), "patch deployments.apps is not permitted in namespace ns");
    }

    #[test]
    fn a_namespace_or_kind_that_goes_away_is_no_missing_permission() {
        let body = json!({"message": "m", "details": {"name": "x", "causes": [{"reason": "NamespaceTerminating"}]}});
        assert!(matches!(check(403, &body), WriteError::Unavailable { .. }));
        let message = "things.x.test \"x\" is forbidden: create not allowed while custom resource definition is terminating";
        let body = json!({"message": message, "reason": "Forbidden", "details": {"name": "x"}});
        assert!(matches!(check(403, &body), WriteError::Unavailable { .. }));
    }
}
