//! The requests that an embedded control plane was sent, and which of them somebody is about to send again.

use std::{
    collections::BTreeMap,
    sync::{
        Mutex, MutexGuard, PoisonError,
        atomic::{AtomicU64, Ordering},
    },
    time::Duration,
};

use jiff::{SignedDuration, Timestamp};
use plinth_cluster::embedded::{Witness, api::state::Call};

/// Longer than any pause before something is asked again, that after ten failures in a row of [`plinth_manager::queue::FAILURES`]
/// too. What was not asked again by then is not wanted any more.
const GIVEN_UP: Duration = Duration::from_secs(150);

/// Counts requests, and knows those whose failure passes: a conflict, a server that was away or too busy. Whoever sent one sends
/// it again, after a pause that may be long.
#[derive(Default)]
pub(crate) struct Requests {
    count: AtomicU64,
    /// When each failed last, until it has another answer.
    failed: Mutex<BTreeMap<(String, String), Timestamp>>,
}

impl Requests {
    /// How many had an answer.
    pub(crate) fn count(&self) -> u64 {
        self.count.load(Ordering::Relaxed)
    }

    /// Whether one is still to be sent again.
    pub(crate) fn is_one_open(&self, now: Timestamp) -> bool {
        let given_up = SignedDuration::try_from(GIVEN_UP).expect("minutes fit");
        let mut failed = self.failed();
        failed.retain(|_, at| now.duration_since(*at) < given_up);
        !failed.is_empty()
    }

    fn failed(&self) -> MutexGuard<'_, BTreeMap<(String, String), Timestamp>> {
        // Each entry is whole in itself.
        self.failed.lock().unwrap_or_else(PoisonError::into_inner)
    }

    fn note(&self, call: &Call, passes: bool) {
        let request = (call.method.to_string(), call.path.clone());
        let mut failed = self.failed();
        if passes {
            failed.insert(request, call.now);
        } else {
            failed.remove(&request);
        }
    }
}

impl Witness for Requests {
    fn saw(&self, call: &Call, code: u16) {
        self.count.fetch_add(1, Ordering::Relaxed);
        self.note(call, passes(call.method.as_str(), code));
    }

    fn missed(&self, call: &Call) {
        self.note(call, true);
    }
}

/// Whether the same request may have another answer soon. A POST is in conflict with an object that is there, and stays so.
fn passes(method: &str, code: u16) -> bool {
    match code {
        409 => method != "POST",
        429 | 503 | 504 => true,
        _ => false,
    }
}

#[cfg(test)]
mod tests {
    use plinth_cluster::embedded::api::{rbac::User, route::QueryText};

    use super::*;

    fn call(method: &str, path: &str, second: i64) -> Call {
        Call {
            method: method.parse().unwrap(),
            path: path.to_owned(),
            query: QueryText::default(),
            content_type: String::new(),
            acceptable: true,
            agent: String::new(),
            user: User::admin(),
            acting: None,
            token: None,
            body: Vec::new().into(),
            now: at(second),
        }
    }

    fn at(second: i64) -> Timestamp {
        Timestamp::from_second(second).unwrap()
    }

    #[test]
    fn a_conflict_is_open_until_it_is_written() {
        let requests = Requests::default();
        requests.saw(&call("PATCH", "/a", 0), 409);
        requests.saw(&call("PATCH", "/b", 1), 200);
        requests.saw(&call("GET", "/a", 1), 200);
        assert!(requests.is_one_open(at(30)), "neither another object's answer nor another question's is this one's");
        requests.saw(&call("PATCH", "/a", 31), 409);
        assert!(requests.is_one_open(at(180)), "it goes on as long as it fails");
        requests.saw(&call("PATCH", "/a", 181), 200);
        assert!(!requests.is_one_open(at(181)));
        assert_eq!(requests.count(), 5);
    }

    #[test]
    fn a_server_that_was_away_is_asked_again() {
        let requests = Requests::default();
        requests.missed(&call("GET", "/a", 0));
        assert!(requests.is_one_open(at(149)));
        assert!(!requests.is_one_open(at(150)), "whoever asked does not want to know any more");
    }

    #[test]
    fn what_is_refused_for_good_is_not_open() {
        for (method, code) in [("PATCH", 422), ("PATCH", 403), ("GET", 404), ("POST", 409), ("PATCH", 500)] {
            let requests = Requests::default();
            requests.saw(&call(method, "/a", 0), 409);
            requests.saw(&call(method, "/a", 0), code);
            assert!(!requests.is_one_open(at(0)), "{method} {code}");
        }
    }
}
