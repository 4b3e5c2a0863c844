//! The page of keys is made from the table.

use std::{fs, path::Path};

/// Compares a page that is made with the one in the repository; `UPDATE_DOCS=1` writes it.
pub(crate) fn held(path: &str, made: &str) {
    let path = Path::new(env!("CARGO_MANIFEST_DIR")).join("../..").join(path);
    if std::env::var_os("UPDATE_DOCS").is_some() {
        fs::create_dir_all(path.parent().unwrap()).unwrap();
        fs::write(&path, made).unwrap();
    }
    let there = fs::read_to_string(&path).unwrap_or_default();
    assert!(there == made, "{} is stale: UPDATE_DOCS=1 cargo test -p plinth-tui writes it", path.display());
}

#[test]
fn the_page_of_keys_is_the_table() {
    held("docs/keys.md", &plinth_tui::command::page());
}
