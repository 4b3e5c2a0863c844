//! From an API server's Status to the errors that callers decide by.
//!
//! | answer | write | read |
//! | --- | --- | --- |
//! | 404 naming no object | NotServed | NotServed |
//! | 404 naming an object | NotFound | absent, no error |
//! | 401 | Unauthenticated | Unauthenticated |
//! | 403 | Forbidden | Forbidden |
//! | 403 in the words of admission | Denied | – |
//! | 403 because the namespace or the kind goes away | Unavailable | – |
//! | 409 | Conflict | – |
//! | 400, 413, 415, 422 | Invalid | Unavailable |
//! | 500 because a value does not fit its schema | Invalid | – |
//! | the rest, and no answer | Unavailable | Unavailable |

use plinth_api::{GroupVersionKind, ObjectKey, Permission};
use plinth_engine::ports::{ReadError, WriteError};

use crate::{
    catalog::ServedKind,
    http::{ApiStatus, Fault},
    untyped::UNTYPED,
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
        401 => WriteError::Unauthenticated { key, message },
        403 if !is_authorization(&message) => WriteError::Denied { key, message },
        403 => {
            let missing = refused(&status, verb, &served.resource());
            let name = missing.name.or(Some(key.name));
            let missing = Permission { namespace: key.namespace, name, ..missing };
            WriteError::Forbidden { missing: Box::new(missing), message }
        }
        409 => WriteError::Conflict { key, message },
        400 | 413 | 415 | 422 => WriteError::Invalid { key, message },
        500 if MISFITS.iter().any(|words| message.contains(words)) => WriteError::Invalid { key, message },
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
        401 => ReadError::Unauthenticated(status.message),
        403 => {
            let missing = refused(&status, verb, resource);
            ReadError::Forbidden { missing: Box::new(missing), message: status.message }
        }
        code => ReadError::Unavailable(format!("{} ({code})", status.message)),
    }
}

/// The server's words, in an Internal Error, where what is applied or what is stored does not fit the schema: an answer, and the same
/// one for ever.
const MISFITS: [&str; 4] = ["failed to create typed patch object", "failed to convert new object", UNTYPED[0], UNTYPED[1]];

/// The server's words for a kind whose CRD is being deleted; it gives no reason of its own.
const KIND_TERMINATING: &str = "not allowed while custom resource definition is terminating";

/// Not a missing permission: what the object lives in, or its kind, is being deleted, and may come back.
fn is_terminating(status: &ApiStatus) -> bool {
    status.details.causes.iter().any(|cause| cause.reason == "NamespaceTerminating") || status.message.ends_with(KIND_TERMINATING)
}

/// The server's words where somebody would grant more than is his.
const GRANTS_MORE: &str = "attempting to grant RBAC permissions not currently held";

/// Whether a 403 says that a right is missing. Every authorizer's refusal is told in the same words by the API server; admission
/// plugins answer with 403 too, in words of their own, and no right mends those.
fn is_authorization(message: &str) -> bool {
    asked_in(message).is_some() || message.contains(GRANTS_MORE)
}

/// The verb in `User "u" cannot VERB resource "r" …`.
fn asked_in(message: &str) -> Option<&str> {
    let verb = message.split_once(" cannot ")?.1.split_whitespace().next()?;
    VERBS.contains(&verb).then_some(verb)
}

/// The verb that is missing, and on what. An apply of an absent object is refused as `create`, although the request is a patch, and
/// a request in somebody else's name as `impersonate` on a service account. Only the message says so. It says too where not the
/// write is refused but what is handed on by it.
fn refused(status: &ApiStatus, asked: &str, resource: &str) -> Permission {
    let message = status.message.as_str();
    let (plural, group) = resource.split_once('.').unwrap_or((resource, ""));
    let of = |group: &str, plural: &str, verb: &str, name: Option<String>| Permission {
        group: group.to_owned(),
        resource: plural.to_owned(),
        verb: verb.to_owned(),
        namespace: None,
        name,
    };
    if message.contains(GRANTS_MORE) {
        return of(group, plural, if plural.contains("bindings") { "bind" } else { "escalate" }, None);
    }
    match asked_in(message).unwrap_or(asked) {
        IMPERSONATE => of("", "serviceaccounts", IMPERSONATE, Some(status.details.name.clone())),
        verb => of(group, plural, verb, None),
    }
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
    fn what_an_apply_made_and_no_type_takes_is_refused_for_good() {
        let message = "failed to convert new object (/a; apps/v1, Kind=Deployment) to proper version: unable to convert unstructured \
                       object to apps/v1, Kind=Deployment: quantities must match the regular expression '^…$'";
        assert!(matches!(check(500, &json!({"kind": "Status", "message": message})), WriteError::Invalid { .. }));
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
        let misfit = "failed to create typed patch object (ns/x; /v1, Kind=ConfigMap): .data.a: expected string, got 7";
        let error = check(500, &json!({"kind": "Status", "message": misfit}));
        assert_eq!(error.to_string(), format!("Deployment.apps/ns/x is refused: {misfit}"));
        for code in [405, 429, 500, 503, 504] {
            assert!(matches!(check(code, &named), WriteError::Unavailable { .. }), "{code}");
        }
    }

    #[test]
    fn a_missing_permission_names_verb_and_resource() {
        let message =
            "deployments.apps \"x\" is forbidden: User \"u\" cannot create resource \"deployments\" in API group \"apps\"";
        let error = check(403, &json!({"message": message, "reason": "Forbidden", "details": {"name": "x"}}));
        assert_eq!(error.to_string(), "create deployments.apps x in namespace ns is not permitted");
        let message =
            "serviceaccounts \"a\" is forbidden: User \"u\" cannot impersonate resource \"serviceaccounts\" in API group \"\"";
        let error = check(403, &json!({"message": message, "reason": "Forbidden", "details": {"name": "a"}}));
        assert_eq!(error.to_string(), "impersonate serviceaccounts a in namespace ns is not permitted");
    }

    /// The live comparison with kro: pods without their service account were called a missing right.
    #[test]
    fn what_admission_refuses_is_no_missing_permission() {
        let message =
            "pods \"x\" is forbidden: error looking up service account ns/default: serviceaccount \"default\" not found";
        let error = check(403, &json!({"message": message, "reason": "Forbidden", "details": {"name": "x"}}));
        assert_eq!(error.to_string(), format!("Deployment.apps/ns/x is refused by the cluster's admission control: {message}"));
    }

    #[test]
    fn who_is_not_known_lacks_no_permission() {
        let body = json!({"message": "Unauthorized", "reason": "Unauthorized"});
        assert!(matches!(check(401, &body), WriteError::Unauthenticated { .. }));
        let status = ApiStatus::read(http::StatusCode::UNAUTHORIZED, body.to_string().as_bytes());
        let gvk = GroupVersionKind::new("", "v1", "Secret");
        let error = read_error(&gvk, "secrets", "list", Fault::Status(Box::new(status)));
        assert_eq!(error, ReadError::Unauthenticated("Unauthorized".to_owned()));
    }

    #[test]
    fn whoever_hands_on_more_than_is_his_lacks_the_right_to_hand_it_on() {
        let message =
            "rolebindings.rbac.authorization.k8s.io \"x\" is forbidden: user \"u\" (groups=[]) is attempting to grant RBAC \
                       permissions not currently held:
{APIGroups:[\"*\"], Resources:[\"*\"], Verbs:[\"*\"]}";
        let body = json!({"kind": "Status", "message": message}).to_string();
        let status = ApiStatus::read(http::StatusCode::FORBIDDEN, body.as_bytes());
        assert_eq!(refused(&status, "patch", "rolebindings.rbac.authorization.k8s.io").verb, "bind");
        assert_eq!(refused(&status, "patch", "roles.rbac.authorization.k8s.io").verb, "escalate");
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
