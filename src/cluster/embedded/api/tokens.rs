//! Tokens of service accounts: asked for, and judged.

use jiff::SignedDuration;
use serde_json::{Value, json};

use super::{
    problem::{FieldFault, Problem},
    rbac::User,
    state::{Ask, Reply, State},
};

/// For whom a token is, where nobody says so.
const AUDIENCE: &str = "https://kubernetes.default.svc";
/// How long a token is good, where nobody says so, in seconds.
const HOUR: i64 = 3600;
/// The shortest that may be asked for, in seconds.
const SHORTEST: i64 = 600;

impl State {
    /// A token for a service account. It says until when it is good, and is taken until the control plane ends.
    pub(super) fn token(&mut self, ask: &Ask<'_>) -> Result<Reply, Problem> {
        let name = ask.target.name.clone().unwrap_or_default();
        self.seen(ask, &name)?;
        let namespace = ask.target.namespace.clone().unwrap_or_default();
        let wanted = if ask.call.body.is_empty() { Value::Null } else { ask.json()? };
        let seconds = wanted["spec"]["expirationSeconds"].as_i64().unwrap_or(HOUR);
        if seconds < SHORTEST {
            let message = format!("Invalid value: {seconds}: may not specify a duration less than 10 minutes");
            let fault = FieldFault { reason: "FieldValueInvalid", field: "spec.expirationSeconds".to_owned(), message };
            return Err(Problem::invalid("authentication.k8s.io", "TokenRequest", "", &[fault]));
        }
        let audiences = match wanted["spec"]["audiences"].as_array() {
            Some(audiences) if !audiences.is_empty() => json!(audiences),
            _ => json!([AUDIENCE]),
        };
        let token = format!("embedded:{}", self.uid());
        self.allow_token(&token, User::service_account(&ask.cluster, &namespace, &name));
        let expires = ask.call.now.checked_add(SignedDuration::from_secs(seconds)).unwrap_or(ask.call.now);
        let expires = jiff::Timestamp::from_second(expires.as_second()).unwrap_or(expires).to_string();
        Ok(Reply::Json(
            201,
            json!({"kind": "TokenRequest", "apiVersion": "authentication.k8s.io/v1",
                   "metadata": {"name": name, "namespace": namespace, "creationTimestamp": ask.time()},
                   "spec": {"audiences": audiences, "expirationSeconds": seconds, "boundObjectRef": null},
                   "status": {"token": token, "expirationTimestamp": expires}}),
        ))
    }

    /// Whose a token is.
    pub(super) fn token_review(&self, spec: &Value) -> Value {
        match spec["token"].as_str().and_then(|token| self.tokens.get(token)) {
            Some(user) => {
                json!({"authenticated": true, "user": {"username": user.name, "groups": user.groups}, "audiences": [AUDIENCE]})
            }
            None => json!({"user": {}, "error": "invalid bearer token"}),
        }
    }
}
