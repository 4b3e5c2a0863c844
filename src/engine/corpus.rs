//! Where tests find recorded data (contracts entry 27).

use std::path::PathBuf;

/// A file or folder of the data, `None` (with a printed reason) where there is no data.
pub(crate) fn data(path: &str) -> Option<PathBuf> {
    let root = std::env::var_os("PLINTH_DATA")
        .map_or_else(|| PathBuf::from(concat!(env!("CARGO_MANIFEST_DIR"), "/../../../shared/data")), PathBuf::from);
    let found = Some(root.join(path)).filter(|path| path.exists());
    if found.is_none() {
        eprintln!("{path} was not compared: not in {} (set PLINTH_DATA)", root.display());
    }
    found
}

/// All lines of a JSON lines file, empty where there is no data.
pub(crate) fn json_lines(path: &str) -> Vec<serde_json::Value> {
    let Some(path) = data(path) else { return Vec::new() };
    std::fs::read_to_string(path).unwrap().lines().map(|line| serde_json::from_str(line).unwrap()).collect()
}
