//! `plinth replay FILE`: a past run, in the terminal at any speed, or told as text.

use std::{
    path::Path,
    sync::{Arc, Mutex, PoisonError, mpsc},
    thread,
    time::{Duration, Instant},
};

use jiff::{SignedDuration, Timestamp};
use plinth_run::{Event, Outcome, RunState, Sink};
use plinth_tui::{Effect, Fetched, Message, Model};

use crate::{
    args::{Global, Replay},
    config::Config,
    exit::Failure,
    files::STDIN,
    journal,
    out::Out,
    screen,
};

/// The longest pause between two events, however long nothing happened.
const LONGEST_PAUSE: Duration = Duration::from_secs(3);

/// Runs `plinth replay`. Ends as the run did.
pub(crate) async fn run(global: &Global, args: &Replay, out: Out) -> Result<Outcome, Failure> {
    let replay = journal::read(&args.file).map_err(|error| Failure::refused(error.to_string()))?;
    let called = if args.file == Path::new(STDIN) { "standard input".to_owned() } else { args.file.display().to_string() };
    let (earlier, events) = last_run(&replay.events, args.run.as_deref())?;
    let state = RunState::replay(events);
    // A later run of the journal is what was cut off then.
    let is_newest = earlier.len() + events.len() == replay.events.len();
    let cut = replay.cut.filter(|_| is_newest).map(|cut| cut.line);
    if let Some(line) = cut {
        out.talk(&format!("note: {called} is cut off in line {line}; it is replayed up to there"));
    }
    let broken_off = state.finished.is_none().then(|| broken_off(cut));
    let config = Config::load(global);
    if let Some(teller) = screen::teller(&config, args.output, out) {
        events.iter().for_each(|event| teller.take(event));
        broken_off.iter().for_each(|why| teller.broken_off(why));
    } else {
        let mut model = screen::model(&config).watching(format!("replay of {called}"));
        model.ui.cut = broken_off;
        show(model, earlier, events, args.speed).await?;
    }
    Ok(state.outcome_of_replay())
}

/// Why a run never says how it ended.
fn broken_off(cut: Option<usize>) -> String {
    match cut {
        Some(line) => format!("journal cut at line {line}"),
        None => "journal ends before the run".to_owned(),
    }
}

/// The events before a run, and those of it: the newest one, or the one that was asked for.
fn last_run<'a>(events: &'a [Event], wanted: Option<&str>) -> Result<(&'a [Event], &'a [Event]), Failure> {
    let newest = events.last().map(|event| event.run.0.as_str());
    let run = wanted.or(newest).ok_or_else(|| Failure::refused("the journal is empty"))?;
    let from = events.iter().position(|event| event.run.0 == run);
    let Some(from) = from else {
        let mut known: Vec<&str> = events.iter().map(|event| event.run.0.as_str()).collect();
        known.dedup();
        return Err(Failure::refused(format!("the journal has no run {run}")).hint(format!("it has {}", known.join(", "))));
    };
    let length = events[from..].iter().take_while(|event| event.run.0 == run).count();
    Ok((&events[..from], &events[from..from + length]))
}

fn first(events: &[Event]) -> Timestamp {
    events.first().map_or(Timestamp::UNIX_EPOCH, |event| event.at)
}

/// The time of the run that is replayed: it goes on between events, and never past the next one.
#[derive(Debug)]
struct Tape {
    at: Timestamp,
    since: Instant,
    until: Timestamp,
    speed: f64,
}

impl Tape {
    fn now(&self) -> Timestamp {
        let passed = SignedDuration::try_from_secs_f64(self.since.elapsed().as_secs_f64() * self.speed);
        let now = passed.ok().and_then(|passed| self.at.checked_add(passed).ok());
        now.unwrap_or(self.until).min(self.until)
    }
}

async fn show(model: Model, earlier: &[Event], events: &[Event], speed: f64) -> Result<(), Failure> {
    let (sender, messages) = screen::watched(earlier);
    let start = first(events);
    let tape = Arc::new(Mutex::new(Tape { at: start, since: Instant::now(), until: start, speed }));
    let (clock, answers, events) = (Arc::clone(&tape), sender.clone(), events.to_vec());
    // Ends with the view: nobody receives then.
    thread::spawn(move || play(&events, &tape, &sender, speed));
    let perform = move |effect| {
        if let Effect::Fetch(ask) = effect {
            let answer = Err("a past run has no server to ask".to_owned());
            let _gone = answers.send(Message::Fetched(Box::new(Fetched { ask, answer })));
        }
    };
    let now = move || clock.lock().unwrap_or_else(PoisonError::into_inner).now();
    screen::look(model, messages, now, perform).await.map(drop)
}

fn play(events: &[Event], tape: &Mutex<Tape>, sender: &mpsc::Sender<Message>, speed: f64) {
    for (index, event) in events.iter().enumerate() {
        if sender.send(Message::Run(Box::new(event.clone()))).is_err() {
            return;
        }
        let next = events.get(index + 1).map_or(event.at, |next| next.at);
        let pause = next.duration_since(event.at).as_secs_f64() / speed;
        *tape.lock().unwrap_or_else(PoisonError::into_inner) = Tape { at: event.at, since: Instant::now(), until: next, speed };
        thread::sleep(Duration::try_from_secs_f64(pause).unwrap_or_default().min(LONGEST_PAUSE));
    }
}

#[cfg(test)]
mod tests {
    use plinth_run::{EventKind, RunId};

    use super::*;

    fn event(run: &str, seq: u64) -> Event {
        let kind = EventKind::Approved { by: "x".to_owned() };
        Event { v: 1, run: RunId(run.to_owned()), seq, at: Timestamp::UNIX_EPOCH, kind }
    }

    #[test]
    fn the_newest_run_is_replayed_unless_another_is_asked_for() {
        let events = [event("a", 1), event("a", 2), event("b", 1)];
        let of = |wanted| last_run(&events, wanted).map(|(earlier, run)| (earlier.len(), run.len()));
        assert_eq!(of(None), Ok((2, 1)));
        assert_eq!(of(Some("a")), Ok((0, 2)));
        assert!(of(Some("c")).unwrap_err().hint.unwrap().contains("a, b"));
        assert!(last_run(&[], None).is_err());
    }

    #[test]
    fn time_on_the_tape_stops_at_the_next_event() {
        let until = Timestamp::UNIX_EPOCH + SignedDuration::from_secs(5);
        let tape = Tape { at: Timestamp::UNIX_EPOCH, since: Instant::now(), until, speed: 1e12 };
        assert_eq!(tape.now(), until);
    }
}
