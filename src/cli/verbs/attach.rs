//! `plinth attach`: follows a run of another process by its journal, a file of this machine or the controller's in the cluster.

mod in_cluster;

use std::{
    fs::File,
    io::{Read, Seek, SeekFrom},
    path::PathBuf,
    sync::{Arc, mpsc},
    time::Duration,
};

use in_cluster::InCluster;
use jiff::Timestamp;
use plinth_bootstrap::settings::DEFAULT_PLATFORM;
use plinth_run::{Event, EventKind, Outcome, RunState, Sink, journal::decode};
use plinth_tui::{Effect, Message};

use crate::{
    args::{Attach, Global},
    config::Config,
    exit::Failure,
    journal,
    out::Out,
    platform,
    present::Teller,
    screen,
    wire::{self, Fetcher, Host, Wanted, connect, listen},
};

/// How often the file is looked at. It is a local file; no server is asked.
const LOOK: Duration = Duration::from_millis(200);
/// What to do where no run goes on.
const INSTEAD: &str = "plinth dash shows the platform; plinth replay FILE shows a past run";

/// Runs `plinth attach`. Ends as the run does.
pub(crate) async fn run(global: &Global, args: &Attach, out: Out) -> Result<Outcome, Failure> {
    let config = Config::load(global);
    let (host, server) = connect(global).await?;
    let run = Elsewhere::find(args, &host, &server).await?;
    let place = format!("run on {server}");
    if let Some(teller) = screen::teller(&config, args.output, out) {
        return tell(run, &teller, out).await;
    }
    let (sender, messages) = screen::watched(run.past());
    let fetcher = Fetcher::new(host, Wanted::Run(Arc::default()), sender.clone());
    let reader = tokio::spawn(forward(run, sender));
    let model = screen::model(&config).watching(place);
    let perform = move |effect| {
        if let Effect::Fetch(ask) = effect {
            fetcher.ask(ask);
        }
    };
    let shown = screen::look(model, messages, Timestamp::now, perform).await;
    reader.abort();
    Ok(shown?.run.finished.map_or(Outcome::Done, |finished| finished.outcome))
}

/// A run of another process.
enum Elsewhere {
    /// On this machine, by its file.
    Here(Tail),
    /// In the cluster, by the controller's journal.
    Cluster(Box<InCluster>),
}

/// What is heard of it.
enum Heard {
    Events(Vec<Event>),
    /// What is no event: for people.
    Note(String),
}

impl Elsewhere {
    /// The run of this machine, where one goes on; else the controller's.
    async fn find(args: &Attach, host: &Host, server: &str) -> Result<Self, Failure> {
        let asked = args.which.platform.as_deref();
        let path = match &args.journal {
            Some(path) => path.clone(),
            None => recorded(asked, server)?,
        };
        let nowhere = match Tail::of_run(path) {
            Ok(tail) => return Ok(Self::Here(tail)),
            Err(nowhere) => nowhere,
        };
        if args.journal.is_some() {
            return Err(nowhere);
        }
        InCluster::find(asked, host, nowhere).await.map(|run| Self::Cluster(Box::new(run)))
    }

    /// What this machine knows of it and of earlier runs.
    fn past(&self) -> &[Event] {
        match self {
            Self::Here(tail) => tail.past.as_deref().unwrap_or_default(),
            Self::Cluster(_) => &[],
        }
    }

    /// Waits until something is heard of it. An error where nothing will be any more.
    async fn next(&mut self) -> Result<Heard, Failure> {
        match self {
            Self::Here(tail) => tail.next().await.map(Heard::Events),
            Self::Cluster(run) => run.next().await,
        }
    }
}

/// Where the run is recorded: of the platform that was asked for, else of the only one that a run on this machine writes. The cluster
/// knows nothing of a run that has not written yet, so that it is asked only where none goes on here.
fn recorded(asked: Option<&str>, server: &str) -> Result<PathBuf, Failure> {
    if let Some(name) = asked {
        return wire::journal_path(name, server);
    }
    let mut known = wire::journals(server)?;
    if known.len() > 1 {
        known.retain(|_, path| journal::is_being_written(path));
    }
    if known.len() > 1 {
        return Err(platform::several(&known.into_keys().collect(), server));
    }
    known.into_values().next().map_or_else(|| wire::journal_path(DEFAULT_PLATFORM, server), Ok)
}

/// Whole lines of a file that another process appends to.
struct Tail {
    path: PathBuf,
    file: File,
    at: u64,
    past: Option<Vec<Event>>,
}

impl Tail {
    /// Reads the journal of a run that goes on; a run that is over, or was killed, is refused with what to do instead.
    fn of_run(path: PathBuf) -> Result<Self, Failure> {
        let none = || Failure::refused(format!("no run goes on that is recorded in {}", path.display()));
        if !path.exists() {
            return Err(none().hint(INSTEAD));
        }
        let (replay, length) = journal::read_with_length(&path).map_err(|error| Failure::refused(error.to_string()))?;
        let state = RunState::replay(&replay.events);
        if state.finished.is_some() || state.run.is_none() {
            return Err(none().hint(INSTEAD));
        }
        if !journal::is_being_written(&path) {
            return Err(none().hint("the last one was killed: run the same command again to go on with it"));
        }
        let at = replay.cut.map_or(length, |cut| cut.whole_bytes as u64);
        let file = File::open(&path).map_err(|error| Failure::failed(format!("read journal {}: {error}", path.display())))?;
        Ok(Self { path, file, at, past: Some(replay.events) })
    }

    /// What was there at first, then what comes; ends when the process is gone.
    async fn next(&mut self) -> Result<Vec<Event>, Failure> {
        if let Some(past) = self.past.take() {
            return Ok(past);
        }
        loop {
            tokio::time::sleep(LOOK).await;
            // Asked before the file is read, so that the last words of a process that ends in between are not lost.
            let alive = journal::is_being_written(&self.path);
            let events = self.read()?;
            if !events.is_empty() {
                return Ok(events);
            }
            if !alive {
                let gone = Failure::new(Outcome::Interrupted, "the run's process is gone");
                return Err(gone.hint("run its command again to go on"));
            }
        }
    }

    /// Events since the last look.
    fn read(&mut self) -> Result<Vec<Event>, Failure> {
        let failed = |error: &dyn std::fmt::Display| Failure::failed(format!("read journal {}: {error}", self.path.display()));
        let mut bytes = Vec::new();
        self.file.seek(SeekFrom::Start(self.at)).map_err(|error| failed(&error))?;
        (&self.file).take(journal::MAX_BYTES).read_to_end(&mut bytes).map_err(|error| failed(&error))?;
        let replay = decode(&bytes).map_err(|error| failed(&error))?;
        self.at += replay.cut.map_or(bytes.len(), |cut| cut.whole_bytes) as u64;
        Ok(replay.events)
    }
}

/// Tells the run as text until it ends, or until nothing is heard of it any more.
async fn tell(mut run: Elsewhere, teller: &Teller, out: Out) -> Result<Outcome, Failure> {
    let signals = listen()?;
    let mut state = RunState::default();
    loop {
        let heard = tokio::select! {
            biased;
            () = signals.token().cancelled_owned() => {
                return Err(Failure::new(Outcome::Interrupted, "interrupted; the run itself goes on"));
            }
            heard = run.next() => heard?,
        };
        match heard {
            Heard::Note(note) => out.talk(&format!("note: {note}")),
            Heard::Events(events) => events.iter().for_each(|event| {
                state.fold(event);
                teller.take(event);
            }),
        }
        if let Some(finished) = &state.finished {
            return Ok(finished.outcome);
        }
    }
}

/// Hands the run to the terminal until nobody looks any more.
async fn forward(mut run: Elsewhere, sender: mpsc::Sender<Message>) {
    let mut has_ended = false;
    loop {
        match run.next().await {
            Ok(Heard::Events(events)) => {
                for event in events {
                    has_ended |= matches!(event.kind, EventKind::RunFinished { .. });
                    if sender.send(Message::Run(Box::new(event))).is_err() {
                        return;
                    }
                }
            }
            Ok(Heard::Note(note)) => drop(sender.send(Message::Notice(note))),
            Err(failure) => {
                if !has_ended {
                    let _gone = sender.send(Message::Notice(failure.message));
                }
                return;
            }
        }
    }
}
