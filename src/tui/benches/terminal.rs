//! What the terminal costs with 20 000 children: a frame, a key to the next frame, an event to the next frame, and memory.

#![expect(clippy::unwrap_used, clippy::print_stdout, reason = "a bench that cannot set up its work ends, and prints its rows")]

use std::{fmt, time::Instant};

use criterion::{Criterion, criterion_group, criterion_main};
use jiff::{SignedDuration, Timestamp};
use plinth_api::{ClusterKey, GroupVersionKind, ObjectKey};
use plinth_run::{Event, EventKind, Health, RunId, Subject};
use plinth_tui::{Message, Model, message::Key, theme::Theme, update::update, view};
use ratatui::{Terminal, backend::TestBackend};

const CHILDREN: u64 = 20_000;

fn key(kind: &str, name: String) -> ObjectKey {
    let gvk = GroupVersionKind::new("example.dev", "v1alpha1", kind);
    ObjectKey { cluster: ClusterKey::host(), gvk, namespace: Some("default".to_owned()), name }
}

fn at(seq: u64) -> Timestamp {
    Timestamp::UNIX_EPOCH + SignedDuration::from_millis(i64::try_from(seq).unwrap())
}

fn event(seq: u64) -> Message {
    let health = if seq.is_multiple_of(7) { Health::Waiting } else { Health::Current };
    let parent = key("Platform", format!("p{}", seq % 20));
    let kind = EventKind::HealthChanged {
        subject: Subject::child(key("Child", format!("c{:05}", seq % CHILDREN)), "child", parent),
        health,
        reason: "Replicas".to_owned(),
        message: format!("{} of 20 replicas are available", seq % 20),
        causes: Vec::new(),
    };
    Message::Run(Box::new(Event { v: 1, run: RunId("r".to_owned()), seq: seq + 1, at: at(seq), kind }))
}

fn model() -> Model {
    let mut model = Model::new(Theme::Dark, at(0)).watching("bench");
    update(&mut model, Message::Resize { width: 200, height: 60 });
    for seq in 0..CHILDREN {
        update(&mut model, event(seq));
    }
    update(&mut model, Message::Tick(at(CHILDREN)));
    model
}

fn terminal() -> Terminal<TestBackend> {
    Terminal::new(TestBackend::new(200, 60)).unwrap()
}

/// What Linux says this process holds.
fn resident_megabytes() -> u64 {
    let status = std::fs::read_to_string("/proc/self/status").unwrap_or_default();
    let line = status.lines().find_map(|line| line.strip_prefix("VmRSS:")).unwrap_or_default();
    line.split_whitespace().next().and_then(|kib| kib.parse::<u64>().ok()).unwrap_or_default() / 1024
}

/// Milliseconds of processor time that this thread has had, which a busy machine does not change (proc(5)).
fn processor() -> f64 {
    let stat = std::fs::read_to_string("/proc/thread-self/schedstat").unwrap_or_default();
    stat.split(' ').next().and_then(|nanos| nanos.parse::<f64>().ok()).unwrap_or_default() / 1e6
}

/// What 95 of 100 rounds stay below.
struct P95 {
    wall: f64,
    processor: f64,
}

impl fmt::Display for P95 {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        write!(f, "p95 {:.1} ms ({:.1} ms of processor time)", self.wall, self.processor)
    }
}

fn p95(rounds: usize, mut act: impl FnMut(usize)) -> P95 {
    let mut took: [Vec<f64>; 2] = Default::default();
    for round in 0..rounds {
        let (started, before) = (Instant::now(), processor());
        act(round);
        took[1].push(processor() - before);
        took[0].push(started.elapsed().as_secs_f64() * 1000.0);
    }
    let [wall, processor] = took.map(|mut took| {
        took.sort_by(f64::total_cmp);
        took[rounds * 95 / 100 - 1]
    });
    P95 { wall, processor }
}

fn rows() {
    let before = resident_megabytes();
    let (mut model, mut terminal) = (model(), terminal());
    let held = resident_megabytes().saturating_sub(before);
    // Unfolding, filtering and moving: what makes new rows, and what does not.
    let scripts = ["j", "k", "u", "u", "G", "g", "4", "2", "/c1", "h", "l", "w", "P", "d"];
    let keys: Vec<Key> = scripts.iter().flat_map(|keys| keys.chars().map(Key::Char).chain([Key::Esc])).collect();
    let mut worst = (0.0, Key::Esc);
    let key_to_frame = p95(keys.len() * 10, |round| {
        let (before, key) = (processor(), keys[round % keys.len()]);
        update(&mut model, Message::Key(key));
        terminal.draw(|frame| view::draw(&model, frame)).unwrap();
        let took = processor() - before;
        if took > worst.0 {
            worst = (took, key);
        }
    });
    // Somebody types faster than frames are drawn.
    let script_to_frame = p95(100, |round| {
        for letter in scripts[round % scripts.len()].chars() {
            update(&mut model, Message::Key(Key::Char(letter)));
        }
        update(&mut model, Message::Key(Key::Esc));
        terminal.draw(|frame| view::draw(&model, frame)).unwrap();
    });
    let event_to_frame = p95(100, |round| {
        let round = u64::try_from(round).unwrap();
        update(&mut model, event(CHILDREN + round));
        update(&mut model, Message::Tick(at(CHILDREN + round)));
        terminal.draw(|frame| view::draw(&model, frame)).unwrap();
    });
    let (longest, key) = (worst.0, worst.1.label());
    println!("SHOW 06 key-to-frame {key_to_frame}, most {longest:.1} ms ({key}), {CHILDREN} children");
    println!("SHOW 06 script-to-frame {script_to_frame}, up to 4 keys and one frame");
    println!("SHOW 06 event-to-frame {event_to_frame}");
    println!("SHOW 06 memory {held} MB for the model, {} MB in all", resident_megabytes());
}

fn frames(criterion: &mut Criterion) {
    rows();
    let (mut model, mut terminal) = (model(), terminal());
    criterion
        .bench_function("frame/20000", |bencher| bencher.iter(|| terminal.draw(|frame| view::draw(&model, frame)).map(drop)));
    criterion.bench_function("rows/20000", |bencher| bencher.iter(|| model.rebuild()));
    let started = Instant::now();
    let empty = Model::new(Theme::Dark, at(0)).watching("bench");
    terminal.draw(|frame| view::draw(&empty, frame)).unwrap();
    println!("SHOW 06 first-frame {:.2} ms before any answer", started.elapsed().as_secs_f64() * 1000.0);
}

criterion_group!(benches, frames);
criterion_main!(benches);
