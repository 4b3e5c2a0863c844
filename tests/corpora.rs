//! The corpora that fuzzing starts from (`./dev fuzz`): what must parse does, what must not does not.

#[path = "../fuzz/targets.rs"]
mod targets;

use std::path::Path;

#[test]
fn every_parser_takes_and_refuses_what_it_must() {
    let root = Path::new(env!("CARGO_MANIFEST_DIR")).join("fuzz");
    let faults: Vec<String> = targets::TARGETS.iter().flat_map(|target| targets::corpus_faults(target, &root)).collect();
    assert!(faults.is_empty(), "{faults:#?}");
}
