//! The log of one simulation: every event of every run, every request, and its digest.

use std::sync::{Arc, Mutex};

use plinth_cluster::backoff::seed_of;
use plinth_run::{Event, Sink, journal};

use crate::clock::SimulatedClock;

/// What happened, one line each.
pub(crate) struct Trace {
    clock: SimulatedClock,
    lines: Mutex<Vec<String>>,
    /// Prints each line at once: what never ends shows no lines at its end.
    aloud: bool,
    broken: Mutex<Vec<String>>,
}

impl Trace {
    pub(crate) fn new(clock: SimulatedClock) -> Arc<Self> {
        Arc::new(Self { clock, lines: Mutex::default(), aloud: std::env::var_os("SEED").is_some(), broken: Mutex::default() })
    }

    pub(crate) fn say(&self, line: &str) {
        let at = self.clock.elapsed().as_secs_f64();
        let line = format!("{at:>9.3} {line}");
        if self.aloud {
            eprintln!("{line}");
        }
        self.lines.lock().unwrap().push(line);
    }

    /// A promise was not kept.
    pub(crate) fn broken(&self, promise: &str, how: &str) {
        self.say(&format!("BROKEN {promise}: {how}"));
        self.broken.lock().unwrap().push(format!("{promise}: {how}"));
    }

    pub(crate) fn all_broken(&self) -> Vec<String> {
        self.broken.lock().unwrap().clone()
    }

    /// The same lines in the same order give the same number.
    pub(crate) fn digest(&self) -> u64 {
        self.lines.lock().unwrap().iter().fold(0, |digest: u64, line| digest.rotate_left(5) ^ seed_of(line))
    }
}

impl Sink for Trace {
    fn take(&self, event: &Event) {
        self.say(journal::encode(event).unwrap().trim_end());
    }
}
