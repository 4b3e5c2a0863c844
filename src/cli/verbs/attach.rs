//! `plinth attach`: follows a run of another process by its journal.

use std::{
    fs::File,
    io::{Read, Seek, SeekFrom},
    path::{Path, PathBuf},
    sync::{Arc, mpsc},
    time::Duration,
};

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
    wire::{self, Fetcher, Wanted, connect},
};

/// How often the file is looked at. It is a local file; no server is asked.
const LOOK: Duration = Duration::from_millis(200);

/// Runs `plinth attach`. Ends as the run does.
pub(crate) async fn run(global: &Global, args: &Attach, out: Out) -> Result<Outcome, Failure> {
    let config = Config::load(global);
    let (host, server) = connect(global).await?;
    let path = match &args.journal {
        Some(path) => path.clone(),
        None => recorded(args.which.platform.as_deref(), &server)?,
    };
    let past = going_on(&path)?;
    let tail = Tail::open(path, past.whole)?;
    let place = format!("run on {server}");
    if let Some(teller) = screen::teller(&config, args.output, out) {
        return tell(past.events, tail, &teller).await;
    }
    let (sender, messages) = screen::watched(&past.events);
    let fetcher = Fetcher::new(host, Wanted::Run(Arc::default()), sender.clone());
    let reader = tokio::spawn(forward(past.events, tail, sender));
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

/// Where the run is recorded: of the platform that was asked for, else of the only one that a run on this machine writes. The cluster
/// knows nothing of a run that has not written yet, so that it is not asked.
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

/// What a journal has so far.
struct Past {
    events: Vec<Event>,
    whole: u64,
}

/// Reads the journal of a run that goes on; a run that is over, or was killed, is refused with what to do instead.
fn going_on(path: &Path) -> Result<Past, Failure> {
    let none = || Failure::refused(format!("no run goes on that is recorded in {}", path.display()));
    let instead = "plinth dash shows the platform; plinth replay FILE shows a past run";
    if !path.exists() {
        return Err(none().hint(instead));
    }
    let (replay, length) = journal::read_with_length(path).map_err(|error| Failure::refused(error.to_string()))?;
    let state = RunState::replay(&replay.events);
    if state.finished.is_some() || state.run.is_none() {
        return Err(none().hint(instead));
    }
    if !journal::is_being_written(path) {
        return Err(none().hint("the last one was killed: run the same command again to go on with it"));
    }
    let whole = replay.cut.map_or(length, |cut| cut.whole_bytes as u64);
    Ok(Past { events: replay.events, whole })
}

/// Whole lines of a file that another process appends to.
struct Tail {
    file: File,
    path: PathBuf,
    at: u64,
}

impl Tail {
    fn open(path: PathBuf, at: u64) -> Result<Self, Failure> {
        let file = File::open(&path).map_err(|error| Failure::failed(format!("read journal {}: {error}", path.display())))?;
        Ok(Self { file, path, at })
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

/// Tells the run as text until it ends, or until its process is gone.
async fn tell(past: Vec<Event>, mut tail: Tail, teller: &Teller) -> Result<Outcome, Failure> {
    let mut state = RunState::default();
    let mut events = past;
    loop {
        for event in &events {
            state.fold(event);
            teller.take(event);
        }
        if let Some(finished) = &state.finished {
            return Ok(finished.outcome);
        }
        tokio::time::sleep(LOOK).await;
        // Asked before the file is read, so that the last words of a process that ends in between are not lost.
        let alive = journal::is_being_written(&tail.path);
        events = tail.read()?;
        if events.is_empty() && !alive {
            return Err(Failure::new(Outcome::Interrupted, "the run's process is gone").hint("run its command again to go on"));
        }
    }
}

/// Hands the run to the terminal until nobody looks any more.
async fn forward(past: Vec<Event>, mut tail: Tail, sender: mpsc::Sender<Message>) {
    let mut events = past;
    loop {
        let ended = events.iter().any(|event| matches!(event.kind, EventKind::RunFinished { .. }));
        for event in events.drain(..) {
            if sender.send(Message::Run(Box::new(event))).is_err() {
                return;
            }
        }
        if ended && !journal::is_being_written(&tail.path) {
            return;
        }
        tokio::time::sleep(LOOK).await;
        match tail.read() {
            Ok(more) => events = more,
            Err(failure) => {
                let _gone = sender.send(Message::Notice(failure.message));
                return;
            }
        }
    }
}
