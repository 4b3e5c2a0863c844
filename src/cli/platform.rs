//! Which platform a verb of day 2 is about: the one that `--platform` names, else the only one on the cluster.

use std::{collections::BTreeSet, time::Duration};

use plinth_bootstrap::{platforms, preflight::Deadline};
use plinth_engine::{
    naming,
    ports::{ReadError, Reader},
};
use plinth_manager::SystemClock;
use plinth_run::Sink;

use crate::{exit::Failure, present::Attempts, verbs::unreadable, wire::Host};

/// How often a server that does not answer is asked again.
const AGAIN: Duration = Duration::from_secs(1);
/// The flag that chooses.
const FLAG: &str = "--platform NAME";
/// Longest name: it is a label's value.
const LONGEST: usize = 63;
/// What a platform may be called: a DNS label (RFC 1123).
pub(crate) const NAME_RULE: &str =
    "it takes lower-case letters, digits and -, a letter or digit at both ends, at most 63 of them";

/// Whether a platform may be called so.
pub(crate) fn is_name(text: &str) -> bool {
    naming::is_label(text) && text.len() <= LONGEST
}

/// Why it is not known which platform is meant.
#[derive(Clone, Debug, PartialEq)]
pub(crate) enum Unclear {
    /// There are several, and none was named.
    Several(BTreeSet<String>),
    /// The cluster does not say.
    Read(ReadError),
}

impl Unclear {
    /// The same for people; `called` is what they call the server.
    pub(crate) fn failure(&self, called: &str) -> Failure {
        match self {
            Self::Several(names) => several(names, called),
            Self::Read(error) => unreadable(error, called),
        }
    }

    /// Whether asking again may help.
    pub(crate) fn may_pass(&self) -> bool {
        matches!(self, Self::Read(error) if may_pass(error))
    }
}

/// Whether a read that failed may succeed when it is tried again.
pub(crate) fn may_pass(error: &ReadError) -> bool {
    matches!(error, ReadError::Unavailable(_))
}

impl From<ReadError> for Unclear {
    fn from(error: ReadError) -> Self {
        Self::Read(error)
    }
}

/// Several platforms, and nobody said which one.
pub(crate) fn several(names: &BTreeSet<String>, place: &str) -> Failure {
    let names: Vec<&str> = names.iter().map(String::as_str).collect();
    Failure::refused(format!("{place} has {} platforms: {}", names.len(), names.join(", "))).hint(format!("{FLAG} chooses one"))
}

/// There is none, or none of this name.
pub(crate) fn none(name: Option<&str>, called: &str) -> Failure {
    let named = name.map(|name| format!(" {name}")).unwrap_or_default();
    Failure::refused(format!("there is no platform{named} on {called}")).hint("plinth up SOURCE brings one up")
}

/// The platform that was asked for, else the only one that the cluster has; `None` where it has none.
pub(crate) async fn find(asked: Option<&str>, reader: &dyn Reader) -> Result<Option<String>, Unclear> {
    if let Some(name) = asked {
        return Ok(Some(name.to_owned()));
    }
    let mut names = platforms(reader).await?;
    if names.len() > 1 { Err(Unclear::Several(names)) } else { Ok(names.pop_first()) }
}

/// The same for a verb that has time: a server that does not answer is asked again until then, and each attempt
/// is told.
pub(crate) async fn await_it(
    asked: Option<&str>,
    host: &Host,
    timeout: Duration,
    sink: &dyn Sink,
) -> Result<Option<String>, Failure> {
    let deadline = Deadline::after(&SystemClock, timeout);
    let mut attempts = Attempts::new("find the platform", sink);
    loop {
        let unclear = match find(asked, host.0.as_ref()).await {
            Ok(name) => return Ok(name),
            Err(unclear) => unclear,
        };
        let failure = unclear.failure(&host.1);
        if !unclear.may_pass() || deadline.left(&SystemClock).is_zero() {
            return Err(failure);
        }
        let next = AGAIN.min(deadline.left(&SystemClock));
        attempts.vain(failure.message, next);
        tokio::time::sleep(next).await;
    }
}

#[cfg(test)]
mod tests {
    use plinth_api::Object;
    use plinth_bootstrap::memory::FakeCluster;
    use plinth_run::Outcome;
    use serde_json::json;

    use super::*;

    fn with(names: &[&str]) -> std::sync::Arc<FakeCluster> {
        let cluster = FakeCluster::new("c", []);
        for name in names {
            let metadata = json!({"name": name, "labels": {"plinth.dev/platform": name}});
            cluster.put(&Object::from_value(json!({"apiVersion": "v1", "kind": "Namespace", "metadata": metadata})).unwrap());
        }
        cluster
    }

    #[tokio::test]
    async fn the_only_platform_is_meant_and_several_are_listed() {
        assert_eq!(find(None, with(&[]).as_ref()).await, Ok(None));
        assert_eq!(find(None, with(&["sample"]).as_ref()).await, Ok(Some("sample".to_owned())));
        assert_eq!(find(Some("b"), with(&["a", "b"]).as_ref()).await, Ok(Some("b".to_owned())));
        let failure = find(None, with(&["b", "a"]).as_ref()).await.unwrap_err().failure("https://c.test");
        assert_eq!(failure.outcome, Outcome::Refused);
        assert_eq!(failure.message, "https://c.test has 2 platforms: a, b");
        assert!(failure.hint.unwrap().contains("--platform NAME"));
    }
}
