//! One run of a verb that writes: journal, log, ports, and what a signal does.

use std::{
    collections::BTreeMap,
    io::IsTerminal,
    path::{Path, PathBuf},
    sync::Arc,
};

use jiff::Timestamp;
use plinth_bootstrap::{Alone, Error, Lead, Loop, Ports};
use plinth_controller::{Options, Reach, delivery::sources::LiveSources};
use plinth_engine::ports::Applier;
use plinth_manager::{Gated, Lease, Shutdown, SystemClock};
use plinth_run::{EventKind, Journal, Log, Outcome, Recorder, RunId, RunState, Sink, Verb, feed::Feed};
use tokio_util::sync::CancellationToken;

use super::{
    handing::Handing,
    host::Host,
    lead::{self, ByLease},
    looped::{Delivery, InProcess, Turn},
};
use crate::{
    exit::Failure,
    journal::{FileJournal, make_folder},
    out::Out,
};

/// Everything that a run of a verb holds.
pub(crate) struct Session {
    /// What bootstrap talks to.
    pub(crate) ports: Ports,
    /// Events.
    pub(crate) log: Arc<Log>,
    /// The earlier run that this one goes on with.
    pub(crate) resumed: Option<RunId>,
    /// What asks it to end.
    pub(crate) signals: Shutdown,
}

impl Session {
    /// Opens the journal and puts the adapters behind the ports. Contacts nothing.
    pub(crate) fn open(
        host: Host,
        journal: Arc<dyn Journal>,
        mut sinks: Vec<Arc<dyn Sink>>,
        platform: &str,
        delivery: Delivery,
        signals: Shutdown,
    ) -> Result<Self, Failure> {
        let feed = Arc::new(Feed::default());
        sinks.push(feed.clone());
        let run = RunId(format!("{}-{}", Timestamp::now().strftime("%Y%m%dT%H%M%SZ"), std::process::id()));
        let log = Log::open(run.clone(), journal, Arc::new(SystemClock), sinks)
            .map_err(|error| Failure::refused(error.to_string()).hint("--journal FILE chooses another one"))?;
        let log = Arc::new(log);
        let resumed = log.read(unfinished(if delivery.removing { Verb::Down } else { Verb::Up }));
        let before = log.read(|state| state.run.clone());
        let lease = matches!(delivery.turn, Turn::Lease { .. })
            .then(|| lead::lease(&host, lead::holder(&run, before.as_ref()), Arc::new(SystemClock)));
        let options = Options {
            lease: lease.clone(),
            platform: Some(platform.to_owned()),
            reach: Reach::Platform,
            removing: delivery.removing,
            delivery: !delivery.leaves,
            sources: Arc::new(LiveSources::new(delivery.repositories)),
            images: delivery.images,
            ..Options::default()
        };
        let applier = applier(&host, lease.as_ref());
        let lead = the_lead(&host, &log, lease, delivery.turn);
        let control = InProcess::new(host.clone(), Arc::clone(&log), feed, options);
        let control: Arc<dyn Loop> = if delivery.hands_over {
            let doors = (Arc::clone(&lead), Arc::clone(&applier));
            Arc::new(Handing::new(control, host.clone(), Arc::clone(&log), doors, platform))
        } else {
            Arc::new(control)
        };
        let ports = Ports {
            applier,
            lead,
            reader: host.0.clone(),
            access: Arc::new(host.clone()),
            schemas: Arc::new(host),
            control,
            log: Arc::clone(&log),
        };
        Ok(Self { ports, log, resumed, signals })
    }

    /// Says on standard error why a run did not end well: whoever reads standard output as data must not look for it there.
    /// On a terminal the run's own last line has said it already, unless it takes several.
    pub(crate) fn tell(&self, outcome: Outcome, out: Out) {
        let Some(finished) = self.log.read(|state| state.finished.clone()) else { return };
        let is_said = std::io::stdout().is_terminal() && !finished.message.contains('\n');
        if matches!(outcome, Outcome::Done | Outcome::Changes) || is_said {
            return;
        }
        out.error(&format!("{outcome}: {}", finished.message));
        if let Some(hint) = finished.hint {
            out.error(&format!("hint: {hint}"));
        }
    }
}

/// What the run itself writes with: nothing goes out without the Lease.
fn applier(host: &Host, lease: Option<&Arc<Lease>>) -> Arc<dyn Applier> {
    match lease {
        Some(lease) => Arc::new(Gated { inner: Arc::clone(&host.0), lease: Arc::clone(lease) }),
        None => host.0.clone(),
    }
}

fn the_lead(host: &Host, log: &Arc<Log>, lease: Option<Arc<Lease>>, turn: Turn) -> Arc<dyn Lead> {
    match (lease, turn) {
        (Some(lease), Turn::Lease { break_lock, platform }) => {
            Arc::new(ByLease::new(host.clone(), Arc::clone(log), lease, break_lock, platform))
        }
        _ => Arc::new(Alone),
    }
}

/// The last run of the journal, where this verb goes on with it: one that had begun to write, and that was killed, interrupted or
/// out of time.
pub fn unfinished(verb: Verb) -> impl Fn(&RunState) -> Option<RunId> {
    move |state| {
        let is_open = match state.finished.as_ref().map(|finished| finished.outcome) {
            None | Some(Outcome::Deadline | Outcome::Interrupted) => true,
            Some(_) => false,
        };
        let has_begun = state.verb.is_some_and(|began| verb.goes_on_with(began)) && state.approved.is_some();
        state.run.clone().filter(|_| is_open && has_begun)
    }
}

/// The journal of a platform on a server, under the user's state folder.
pub(crate) fn journal(asked: Option<&Path>, platform: &str, server: &str) -> Result<Arc<dyn Journal>, Failure> {
    let path = match asked {
        Some(path) => path.to_owned(),
        None => made_path(platform, server)?,
    };
    let journal = FileJournal::open(&path).map_err(|error| {
        Failure::refused(error.to_string()).hint("--journal FILE, in a folder that is there, chooses another one")
    })?;
    Ok(Arc::new(journal))
}

fn made_path(platform: &str, server: &str) -> Result<PathBuf, Failure> {
    let path = journal_path(platform, server)?;
    if let Some(folder) = path.parent() {
        let refuse = |error| Failure::refused(format!("make the folder {}: {error}", folder.display()));
        make_folder(folder).map_err(|error| refuse(error).hint("--journal FILE says where the run is recorded"))?;
    }
    Ok(path)
}

/// Where the journal of a platform on a server is, unless somebody chose another place.
pub(crate) fn journal_path(platform: &str, server: &str) -> Result<PathBuf, Failure> {
    Ok(state_folder()?.join(format!("{platform}@{}.jsonl", file_name(server))))
}

/// The journals of this server that this machine has, by their platforms.
pub(crate) fn journals(server: &str) -> Result<BTreeMap<String, PathBuf>, Failure> {
    let end = format!("@{}.jsonl", file_name(server));
    let Ok(entries) = std::fs::read_dir(state_folder()?) else { return Ok(BTreeMap::new()) };
    let journal = |path: PathBuf| {
        let name = path.file_name()?.to_str()?.strip_suffix(&end)?.to_owned();
        Some((name, path))
    };
    Ok(entries.filter_map(|entry| journal(entry.ok()?.path())).collect())
}

fn state_folder() -> Result<PathBuf, Failure> {
    let set = |name| std::env::var_os(name).filter(|value| !value.is_empty()).map(PathBuf::from);
    set("XDG_STATE_HOME").or_else(|| Some(set("HOME")?.join(".local/state"))).map(|folder| folder.join("plinth")).ok_or_else(
        || Failure::refused("neither XDG_STATE_HOME nor HOME is set").hint("--journal FILE says where the run is recorded"),
    )
}

fn file_name(server: &str) -> String {
    let host = server.split_once("://").map_or(server, |(_, rest)| rest).trim_end_matches('/');
    host.chars().map(|c| if c.is_ascii_alphanumeric() || "-.".contains(c) { c } else { '_' }).collect()
}

/// Starts to listen for signals, once for the whole life of a verb: between two listeners a signal would be lost.
pub(crate) fn listen() -> Result<Shutdown, Failure> {
    Shutdown::on_signals().map_err(|error| Failure::new(Outcome::Internal, format!("listen for signals: {error}")))
}

/// Does something until a signal asks to stop: for what only looks, that is a good end.
pub(crate) async fn stopped(act: impl Future<Output = Result<(), Failure>>) -> Result<(), Failure> {
    let signals = listen()?;
    tokio::select! {
        biased;
        () = signals.token().cancelled_owned() => Ok(()),
        ended = act => ended,
    }
}

/// Waits for what comes before a run, unless a signal ends it.
pub(crate) async fn before_the_run<T>(signals: &Shutdown, work: impl Future<Output = Result<T, Failure>>) -> Result<T, Failure> {
    tokio::select! {
        biased;
        () = signals.token().cancelled_owned() => Err(Failure::new(Outcome::Interrupted, "interrupted before anything was written")),
        done = work => done,
    }
}

/// Drives a run until it ends, or a signal or `stop` asks it to; an interrupted run says so in its journal and can be resumed. A
/// second signal does not wait for what is in flight.
pub(crate) async fn interrupted(session: &Session, stop: CancellationToken, run: impl Future<Output = Outcome>) -> Outcome {
    tokio::select! {
        biased;
        () = session.signals.token().cancelled_owned() => {}
        () = stop.cancelled() => {}
        outcome = run => return outcome,
    }
    tokio::select! {
        biased;
        () = session.signals.again().cancelled_owned() => {}
        () = ended(session) => {}
    }
    let hint = Some("run the same command again to go on".to_owned());
    session.log.record(EventKind::RunFinished { outcome: Outcome::Interrupted, message: "interrupted".to_owned(), hint });
    Outcome::Interrupted
}

/// Ends what is in flight, and then the turn to write.
async fn ended(session: &Session) {
    session.ports.control.stop().await;
    session.ports.lead.release().await;
}

/// An error of bootstrap that came before there was a log to tell it.
pub(crate) fn refused(error: &Error) -> Failure {
    Failure { outcome: error.outcome(), message: plinth_cluster::chain(error), hint: error.hint() }
}

#[cfg(test)]
mod tests {
    use plinth_run::state::Finished;

    use super::*;

    #[test]
    fn only_what_was_begun_and_not_ended_goes_on() {
        let state = |approved: bool, outcome: Option<Outcome>| RunState {
            run: Some(RunId("r".into())),
            verb: Some(Verb::Up),
            approved: approved.then(|| "--apply".to_owned()),
            finished: outcome.map(|outcome| Finished { outcome, message: String::new(), hint: None }),
            ..RunState::default()
        };
        for outcome in [None, Some(Outcome::Deadline), Some(Outcome::Interrupted)] {
            assert!(unfinished(Verb::Up)(&state(true, outcome)).is_some(), "{outcome:?}");
            assert_eq!(unfinished(Verb::Down)(&state(true, outcome)), None, "{outcome:?}");
            assert_eq!(unfinished(Verb::Up)(&state(false, outcome)), None, "{outcome:?}");
        }
        for outcome in [Outcome::Done, Outcome::Failed, Outcome::Refused] {
            assert_eq!(unfinished(Verb::Up)(&state(true, Some(outcome))), None, "{outcome:?}");
        }
    }
}
