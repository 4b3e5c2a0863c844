//! A removal that has begun and not ended, in words.

use plinth_bootstrap::Access;
use plinth_run::{Outcome, RunState, Verb};

use crate::{
    journal,
    tree::Tree,
    wire::{self, Host},
};

/// What is known of it: by the journal on this machine, else by what it left on the cluster. `None` where no removal is known.
pub(super) async fn unfinished(platform: &str, tree: &Tree, host: &Host, server: &str) -> Option<String> {
    let lacks = tree.removing.as_deref().or(tree.begun.as_deref())?;
    let path = wire::journal_path(platform, server).ok()?;
    let mut state = journal::read(&path).map(|replay| RunState::replay(&replay.events)).unwrap_or_default();
    if state.cluster.is_some() && state.cluster != host.identity().await.ok() {
        // Another cluster had this address then.
        state = RunState::default();
    }
    words(&state, journal::is_being_written(&path), tree.removing.is_some(), lacks)
}

/// `state` is of the newest run on this machine, which may go on; `is_seen` is whether the cluster shows a removal.
fn words(state: &RunState, goes_on: bool, is_seen: bool, lacks: &str) -> Option<String> {
    let is_removal = state.verb == Some(Verb::Down) && state.approved.is_some();
    if goes_on {
        return is_removal.then(|| format!("plinth down is at it now ({lacks}); plinth attach follows it"));
    }
    let began = state.started.map(|at| at.strftime("%Y-%m-%dT%H:%M:%SZ").to_string()).unwrap_or_default();
    let begun = match state.finished.as_ref().map(|finished| finished.outcome) {
        None if is_removal => format!("plinth down, begun {began}, was killed"),
        Some(outcome) if is_removal && outcome != Outcome::Done => format!("plinth down, begun {began}, ended with {outcome}"),
        _ if is_seen => "a removal has begun and has not ended".to_owned(),
        _ => return None,
    };
    Some(format!("{begun} ({lacks}); plinth down --apply goes on with it, plinth up SOURCE brings the platform up again"))
}

#[cfg(test)]
mod tests {
    use plinth_run::state::Finished;

    use super::*;

    #[test]
    fn a_removal_that_did_not_end_is_said_with_the_next_step() {
        let state = |verb, outcome: Option<Outcome>| RunState {
            verb: Some(verb),
            started: Some("2026-12-01T01:02:03.9Z".parse().unwrap()),
            approved: Some("--apply".to_owned()),
            finished: outcome.map(|outcome| Finished { outcome, message: String::new(), hint: None }),
            ..RunState::default()
        };
        let (down, up) = (|outcome| state(Verb::Down, outcome), |outcome| state(Verb::Up, outcome));
        for (state, goes_on, is_seen, expect) in [
            (down(None), true, false, Some("plinth down is at it now (x); plinth attach follows it")),
            (
                down(None),
                false,
                false,
                Some("plinth down, begun 2026-12-01T01:02:03Z, was killed (x); plinth down --apply goes on"),
            ),
            (
                down(Some(Outcome::Deadline)),
                false,
                true,
                Some("plinth down, begun 2026-12-01T01:02:03Z, ended with deadline (x); "),
            ),
            (down(Some(Outcome::Done)), false, false, None),
            (down(Some(Outcome::Done)), false, true, Some("a removal has begun and has not ended (x); ")),
            (RunState { approved: None, ..down(Some(Outcome::Refused)) }, false, false, None),
            (up(None), true, true, None),
            (up(None), false, false, None),
            (up(Some(Outcome::Done)), false, true, Some("a removal has begun and has not ended (x); ")),
            (RunState::default(), false, false, None),
        ] {
            let said = words(&state, goes_on, is_seen, "x");
            assert_eq!(said.is_some(), expect.is_some(), "{said:?}");
            assert!(said.unwrap_or_default().starts_with(expect.unwrap_or_default()), "{expect:?}");
        }
    }
}
