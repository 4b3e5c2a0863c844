//! One program for all targets, so that it is linked once: `PLINTH_FUZZ` names the target (`./dev fuzz`).
//!
//! Before it begins, everything in `corpus/TARGET/must-parse` must parse and everything in `must-not-parse` must not; both are
//! what the fuzzer starts from.
#![no_main]

mod targets;

use std::sync::LazyLock;

use targets::{TARGETS, Target, corpus_faults};

static TARGET: LazyLock<&Target> = LazyLock::new(|| {
    let name = std::env::var("PLINTH_FUZZ").unwrap_or_default();
    let names = TARGETS.map(|target| target.name).join(", ");
    TARGETS.iter().find(|target| target.name == name).unwrap_or_else(|| panic!("PLINTH_FUZZ is one of {names}"))
});

libfuzzer_sys::fuzz_target!(
    init: {
        let faults = corpus_faults(&TARGET, std::path::Path::new(env!("CARGO_MANIFEST_DIR")));
        assert!(faults.is_empty(), "{faults:#?}");
    },
    |data: &[u8]| {
        (TARGET.parse)(data);
    }
);
