//! Every parser of bytes from outside against its corpus, and against whatever chance makes of it.
//!
//! `cargo fuzz` needs a nightly compiler, so inputs are mutated here without looking at coverage; the corpora are what makes them
//! reach far. `PLINTH_FUZZ_SECONDS` is the time for each target (`./dev fuzz`), `PLINTH_FUZZ` one target, `PLINTH_FUZZ_SEED` where
//! chance begins: a failure names it, and prints its input.

#![expect(clippy::unwrap_used, reason = "test code: a panic is a failed test")]

mod mutate;
mod targets;

use std::{
    env, fs,
    panic::{AssertUnwindSafe, catch_unwind},
    path::{Path, PathBuf},
    time::{Duration, Instant},
};

use mutate::Chance;
use targets::{TARGETS, Target};

/// No input may take longer; a busy machine is forgiven much.
const SLOWEST: Duration = Duration::from_secs(20);

fn files(target: &Target, folder: &str) -> Vec<(PathBuf, Vec<u8>)> {
    let folder = Path::new(env!("CARGO_MANIFEST_DIR")).join("tests/fuzz/corpus").join(target.name).join(folder);
    let mut paths: Vec<PathBuf> = fs::read_dir(&folder).unwrap().map(|entry| entry.unwrap().path()).collect();
    paths.sort();
    assert!(!paths.is_empty(), "{} is empty", folder.display());
    paths.into_iter().map(|path| (path.clone(), fs::read(path).unwrap())).collect()
}

#[test]
fn every_parser_takes_and_refuses_what_it_must() {
    let mut faults = Vec::new();
    for target in &TARGETS {
        for (folder, parses) in [("must-parse", true), ("must-not-parse", false)] {
            for (path, bytes) in files(target, folder) {
                if (target.parse)(&bytes) != parses {
                    faults.push(format!("{} {}", path.display(), if parses { "does not parse" } else { "parses" }));
                }
            }
        }
    }
    assert!(faults.is_empty(), "{faults:#?}");
}

#[test]
fn show_03_fuzz() {
    let number = |name: &str, default: u64| env::var(name).ok().map_or(default, |text| text.parse().unwrap());
    let (seconds, seed) = (number("PLINTH_FUZZ_SECONDS", 1), number("PLINTH_FUZZ_SEED", 1));
    let only = env::var("PLINTH_FUZZ").unwrap_or_default();
    for target in TARGETS.iter().filter(|target| only.is_empty() || target.name == only) {
        let (inputs, parsed) = fuzz(target, Duration::from_secs(seconds), seed);
        eprintln!("SHOW 03 fuzz {} {inputs} inputs in {seconds} s, {parsed} of them parse", target.name);
    }
}

/// How many inputs there were, and how many of them parsed.
fn fuzz(target: &Target, time: Duration, seed: u64) -> (usize, usize) {
    let mut corpus: Vec<Vec<u8>> =
        ["must-parse", "must-not-parse"].iter().flat_map(|folder| files(target, folder)).map(|(_, bytes)| bytes).collect();
    let mut chance = Chance::new(seed);
    let (mut inputs, mut parsed) = (0, 0);
    let began = Instant::now();
    while began.elapsed() < time {
        let input = mutate::mutate(&corpus, &mut chance);
        let started = Instant::now();
        let answer = catch_unwind(AssertUnwindSafe(|| (target.parse)(&input)));
        let shown = || format!("{} with seed {seed}, input {inputs}: {}", target.name, input.escape_ascii());
        let parses = answer.unwrap_or_else(|_| panic!("a panic in {}", shown()));
        assert!(started.elapsed() < SLOWEST, "{:?} for {}", started.elapsed(), shown());
        inputs += 1;
        if parses {
            parsed += 1;
            // What parses is the best thing to change further.
            if corpus.len() < 500 && input.len() < 4096 {
                corpus.push(input);
            }
        }
    }
    (inputs, parsed)
}
