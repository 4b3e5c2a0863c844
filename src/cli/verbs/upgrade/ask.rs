//! Asking the controller: the rights that the other release takes are granted by the identity of whoever asks, then the Platform says the
//! version, and its status says how far the controller is. Nothing else is written here, so that the two never write the same.

use std::time::Duration;

use plinth_api::{ClusterKey, Object, ObjectKey, lock::LockedRef};
use plinth_bootstrap::{Approval, Approver, Error, grant, install, preflight::Deadline};
use plinth_engine::{
    naming::keys,
    ports::{Applier, Apply, ReadError, Reader},
};
use plinth_manager::SystemClock;
use plinth_run::Outcome;
use serde_json::{Value, json};

use super::{Goal, planned};
use crate::{
    exit::Failure,
    out::Out,
    verbs::{grant as granting, told, unreadable, up::Loaded},
    wire::{self, Host, Session},
};

/// How often the Platform is looked at.
const LOOK: Duration = Duration::from_millis(300);
/// Reasons of Ready that end by themselves, or that only time can decide.
const UNDER_WAY: [&str; 4] = ["NotReady", "Waiting", "NotMoved", "ApplyFailed"];

/// Plans, asks, grants, writes the version, and follows the move.
pub(super) async fn move_it(
    host: &Host,
    session: &Session,
    goal: &Goal,
    loaded: &Loaded,
    (approver, timeout): (&dyn Approver, Duration),
    out: Out,
) -> Result<Outcome, Failure> {
    let (outcome, planned) = planned(session, loaded).await;
    let Some(planned) = planned else {
        session.tell(outcome, out);
        return Ok(outcome);
    };
    // Who asks in text shows the plan too.
    if approver.approve(&planned.plan).await == Approval::Declined {
        return Err(wire::refused(&Error::Declined));
    }
    told(&planned.plan).iter().for_each(|(_, line)| out.talk(line));
    let rights = planned.plan.rights.clone().unwrap_or_default();
    let lacking = grant::lacking(&rights, host.0.as_ref()).await.map_err(|error| wire::refused(&error))?;
    if !lacking.is_empty() {
        granting::apply(host, &lacking).await?;
        out.talk("granted to the controller what the release takes");
    }
    let generation = write(host, goal, loaded.settings.allow_breaking).await?;
    out.talk(&format!("asked the controller for {}", loaded.content.lock.root.version));
    let following = follow(host, goal, (&loaded.content.lock.root, generation), timeout, out);
    let outcome = wire::before_the_run(&session.signals, following).await?;
    // What was permitted for this move is not permitted for good.
    if outcome == Outcome::Done && loaded.settings.allow_breaking {
        write(host, goal, false).await?;
    }
    Ok(outcome)
}

/// Writes the Platform as a whole, as `up` does; gives its generation.
async fn write(host: &Host, goal: &Goal, allow_breaking: bool) -> Result<i64, Failure> {
    let mut document = goal.document();
    let labels = goal.object.as_ref().map(Object::labels).unwrap_or_default();
    document["metadata"]["labels"] = json!(labels);
    let marks = [(keys::ALLOW_BREAKING_CHANGES, allow_breaking), (keys::ROLLBACK, goal.is_back)];
    for (mark, _) in marks.into_iter().filter(|(_, is_so)| *is_so) {
        document["metadata"]["annotations"][mark] = "true".into();
    }
    let object = Object::from_value(document).expect("a JSON object was just written");
    let apply = Apply { key: key(goal), object, manager: keys::MANAGER.to_owned(), force: true, subresource: None };
    let written = host.0.apply(&apply).await.map_err(|error| wire::refused(&Error::from(error)))?;
    Ok(written.generation())
}

/// Until the release runs and is ready, or will not be without a person.
async fn follow(
    host: &Host,
    goal: &Goal,
    (to, generation): (&LockedRef, i64),
    timeout: Duration,
    out: Out,
) -> Result<Outcome, Failure> {
    let deadline = Deadline::after(&SystemClock, timeout);
    let mut last = String::new();
    loop {
        let said = match host.0.get(&key(goal)).await {
            Ok(Some(platform)) => Said::of(&platform, to, generation),
            Ok(None) => return Err(Failure::failed(format!("the Platform {} is gone", goal.platform))),
            Err(ReadError::Unavailable(message)) => Said::Moving(message),
            Err(error) => return Err(unreadable(&error, &host.1)),
        };
        let message = match said {
            Said::Ready => {
                out.talk(&format!("{} runs {} and is ready", goal.platform, to.version));
                return Ok(Outcome::Done);
            }
            Said::Refused(message) => {
                let text = format!("the controller does not move {} to {}: {message}", goal.platform, to.version);
                return Err(Failure::failed(text).hint("plinth rollback asks for the release before"));
            }
            Said::Moving(message) => message,
        };
        if message != last {
            out.talk(&format!("waits: {message}"));
            last = message;
        }
        if deadline.left(&SystemClock).is_zero() {
            let text = format!("{} does not run {} within {}: {last}", goal.platform, to.version, deadline.total());
            let hint = "the controller goes on; plinth rollback asks for the release before";
            return Err(Failure::new(Outcome::Deadline, text).hint(hint));
        }
        tokio::time::sleep(LOOK).await;
    }
}

/// What a Platform says of a move.
#[derive(Debug, PartialEq)]
enum Said {
    Ready,
    Moving(String),
    Refused(String),
}

impl Said {
    fn of(platform: &Object, to: &LockedRef, generation: i64) -> Self {
        let status = platform.status();
        if status["observedGeneration"].as_i64().unwrap_or_default() < generation {
            return Self::Moving("the controller has not looked at the Platform yet".to_owned());
        }
        let conditions = status["conditions"].as_array().cloned().unwrap_or_default();
        let ready = conditions.into_iter().find(|condition| condition["type"] == "Ready").unwrap_or_default();
        let text = |field: &str| ready[field].as_str().unwrap_or_default().to_owned();
        let runs = status["release"]["version"] == Value::String(to.version.clone());
        match text("status").as_str() {
            "True" if runs => Self::Ready,
            "False" if !UNDER_WAY.contains(&text("reason").as_str()) => Self::Refused(text("message")),
            _ => Self::Moving(text("message")),
        }
    }
}

fn key(goal: &Goal) -> ObjectKey {
    let gvk = install::platform_kind();
    ObjectKey { cluster: ClusterKey::host(), gvk, namespace: None, name: goal.platform.clone() }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_platform_says_how_far_it_is() {
        let to = LockedRef { name: "a.test/p".into(), version: "v2".into() };
        let said = |status: Value| Said::of(&Object::from_value(json!({"status": status})).unwrap(), &to, 3);
        let ready = |status: &str, reason: &str| json!([{"type": "Ready", "status": status, "reason": reason, "message": "m"}]);
        let at = |generation: i64, version: &str, status: &str, reason: &str| {
            said(json!({"observedGeneration": generation, "release": {"version": version}, "conditions": ready(status, reason)}))
        };
        assert!(matches!(at(2, "v2", "True", "Ready"), Said::Moving(_)));
        assert_eq!(at(3, "v2", "True", "Ready"), Said::Ready);
        assert_eq!(at(3, "v1", "False", "NotMoved"), Said::Moving("m".into()));
        assert_eq!(at(3, "v1", "False", "PlanRefused"), Said::Refused("m".into()));
    }
}
