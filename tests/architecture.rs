//! Holds the repository against ARCHITECTURE.md: arrows, outside crates, sizes, and what must be absent.

#![expect(clippy::unwrap_used, reason = "test code: a panic is a failed test")]

#[path = "architecture/source.rs"]
mod source;

use std::{collections::BTreeSet, fs, path::Path};

use cargo_metadata::{DependencyKind, MetadataCommand, Package};
use source::SourceFile;

const PREFIX: &str = "plinth-";

/// One row of the table of rooms.
#[derive(Debug, PartialEq)]
struct Room {
    name: String,
    rooms: BTreeSet<String>,
    outside: BTreeSet<String>,
}

#[test]
fn arrows_and_outside_crates_are_those_of_the_table() {
    let table = rooms_of_the_table();
    let metadata = MetadataCommand::new().manifest_path(root().join("Cargo.toml")).no_deps().exec().unwrap();
    let mut wrong = Vec::new();
    for package in metadata.packages.iter().filter(|package| package.name.starts_with(PREFIX)) {
        let found = room_of(package);
        let Some(row) = table.iter().find(|room| room.name == found.name) else {
            wrong.push(format!("{} has no row", found.name));
            continue;
        };
        wrong.extend(found.rooms.difference(&row.rooms).map(|arrow| format!("{} may not use {arrow}", row.name)));
        wrong.extend(found.outside.difference(&row.outside).map(|name| format!("{} uses {name}, which its row lacks", row.name)));
        wrong.extend(row.outside.difference(&found.outside).map(|name| format!("{} does not use {name} of its row", row.name)));
    }
    assert!(wrong.is_empty(), "ARCHITECTURE.md and Cargo.toml differ:\n{}", wrong.join("\n"));
    assert_eq!(table.len(), metadata.packages.len() - 1, "every room has a row, and every row a room");
}

#[test]
fn arrows_of_the_table_point_one_way() {
    let table = rooms_of_the_table();
    for (index, room) in table.iter().enumerate() {
        let above: BTreeSet<_> = table[..index].iter().map(|room| room.name.clone()).collect();
        let back: Vec<_> = room.rooms.difference(&above).collect();
        assert!(back.is_empty(), "{} is above {back:?} in the table", room.name);
    }
}

/// Order comes from the graph: the rooms that make it have no knowledge of any platform.
#[test]
fn show_01_names() {
    let platform = concat!("openmcp", ".cloud");
    let blind = ["src/engine/", "src/releasechannel/", "src/bootstrap/", "src/cluster/", "src/manager/"];
    let files: Vec<_> = tracked().into_iter().filter(|path| blind.iter().any(|room| path.starts_with(room))).collect();
    assert!(files.len() > 20, "the rooms have moved: {files:?}");
    let naming: Vec<_> = files.iter().filter(|path| text(path).is_some_and(|text| text.contains(platform))).collect();
    assert!(naming.is_empty(), "these name {platform}: {naming:?}");
    eprintln!("SHOW 01 names {} files of {} rooms, 0 name {platform}", files.len(), blind.len());
}

#[test]
fn no_file_names_a_folder_of_somebodys_machine() {
    let folders = [concat!("/ro", "ot/"), concat!("/ho", "me/"), concat!("/wo", "rk/"), concat!("/tmp/", "wt")];
    for path in tracked() {
        let Some(text) = text(&path) else { continue };
        for folder in folders {
            assert!(!text.contains(folder), "{path} names {folder}");
        }
    }
}

#[test]
fn the_pure_rooms_touch_nothing_outside() {
    let outside = [
        "std::fs",
        "std::env",
        "TcpStream",
        "UdpSocket",
        "ToSocketAddrs",
        "std::process",
        "std::time::SystemTime",
        "SystemTime::now",
        "Instant::now",
        "Timestamp::now",
        "Zoned::now",
        "tokio::",
        "kube::",
        "reqwest::",
    ];
    for path in product_files() {
        let is_pure = ["src/api/", "src/engine/", "src/run/"].iter().any(|room| path.starts_with(room));
        if !is_pure {
            continue;
        }
        let file = SourceFile::read(root(), &path);
        let code = file.code_outside_tests();
        for word in outside {
            assert!(!code.contains(&word.replace("::", " :: ")), "{path} uses {word}");
        }
    }
}

#[test]
fn functions_are_short() {
    let mut lengths: Vec<_> = rust_files()
        .iter()
        .flat_map(|path| SourceFile::read(root(), path).functions())
        .map(|function| (function.lines, function))
        .collect();
    lengths.sort_by_key(|(lines, _)| std::cmp::Reverse(*lines));
    let longest = lengths.first().unwrap();
    assert!(longest.0 <= 100, "over 100 lines: {:?}", lengths.iter().take_while(|(lines, _)| *lines > 100).collect::<Vec<_>>());
    let long = lengths.iter().filter(|(lines, _)| *lines > 60).count();
    let median = lengths[lengths.len() / 2].0;
    assert!(
        long * 1000 <= lengths.len() * 25,
        "{long} of {} functions have more than 60 lines: {:?}",
        lengths.len(),
        &lengths[..long]
    );
    eprintln!("functions: {}, median {median} lines, {long} over 60, longest {}", lengths.len(), longest.0);
}

#[test]
fn files_are_short() {
    let mut lengths: Vec<_> = rust_files().into_iter().map(|path| (text(&path).unwrap().lines().count(), path)).collect();
    lengths.sort();
    let (longest, path) = lengths.last().unwrap();
    assert!(*longest <= 1000, "{path} has {longest} lines");
    let (p95, path) = &lengths[lengths.len() * 95 / 100];
    assert!(*p95 <= 600, "5 % of the files are as long as {path}: {p95} lines");
}

#[test]
fn nothing_is_unwrapped_outside_tests() {
    for path in product_files() {
        let lines = SourceFile::read(root(), &path).unwraps();
        assert!(lines.is_empty(), "{path} unwraps in lines {lines:?}: say with `expect` why it holds, or give an error");
    }
}

/// The lints of the workspace (`missing_docs`, `unsafe_code`, …) hold only where a crate asks for them.
#[test]
fn every_crate_takes_the_workspaces_lints() {
    let manifests: Vec<_> = tracked().into_iter().filter(|path| path.ends_with("Cargo.toml")).collect();
    assert!(manifests.len() > 10);
    for path in manifests {
        let text = text(&path).unwrap();
        assert!(text.contains("[lints]\nworkspace = true"), "{path} lacks `[lints] workspace = true`");
    }
    let workspace = text("Cargo.toml").unwrap();
    for lint in ["unsafe_code = \"forbid\"", "missing_docs = \"warn\"", "unwrap_used = \"warn\""] {
        assert!(workspace.contains(lint), "{lint} is gone");
    }
}

#[test]
fn a_row_is_read_as_written() {
    let row = "| run | what a run is | api, engine | jiff, serde |";
    let set = |names: &[&str]| names.iter().map(|&name| name.to_owned()).collect();
    let expected = Room { name: "run".to_owned(), rooms: set(&["api", "engine"]), outside: set(&["jiff", "serde"]) };
    assert_eq!(room_of_row(row), Some(expected));
    assert_eq!(room_of_row("| --- | --- | --- | --- |"), None);
    assert_eq!(room_of_row("| room | job | may use | outside |"), None);
}

fn rooms_of_the_table() -> Vec<Room> {
    let page = text("ARCHITECTURE.md").unwrap();
    let (_, table) = page.split_once("<!-- rooms").unwrap();
    let (table, _) = table.split_once("<!-- end of rooms -->").unwrap();
    table.lines().filter_map(room_of_row).collect()
}

fn room_of_row(row: &str) -> Option<Room> {
    let cells: Vec<_> = row.strip_prefix('|')?.strip_suffix('|')?.split('|').map(str::trim).collect();
    let [name, _, rooms, outside] = cells[..] else { return None };
    if name == "room" || name.starts_with('-') {
        return None;
    }
    let names = |cell: &str| cell.split(',').map(str::trim).filter(|name| *name != "–").map(str::to_owned).collect();
    Some(Room { name: name.to_owned(), rooms: names(rooms), outside: names(outside) })
}

fn room_of(package: &Package) -> Room {
    let names = package.dependencies.iter().filter(|dependency| dependency.kind == DependencyKind::Normal);
    let (rooms, outside): (BTreeSet<_>, BTreeSet<_>) =
        names.map(|dependency| dependency.name.clone()).partition(|name| name.starts_with(PREFIX));
    let short = |name: &str| name.trim_start_matches(PREFIX).to_owned();
    Room { name: short(&package.name), rooms: rooms.iter().map(|name| short(name)).collect(), outside }
}

fn root() -> &'static Path {
    Path::new(env!("CARGO_MANIFEST_DIR"))
}

/// Every file of the repository that git knows or would add.
fn tracked() -> Vec<String> {
    let list = ["ls-files", "--cached", "--others", "--exclude-standard"];
    let output = std::process::Command::new("git").args(list).current_dir(root()).output().unwrap();
    assert!(output.status.success(), "git ls-files: {}", String::from_utf8_lossy(&output.stderr));
    let files = String::from_utf8(output.stdout).unwrap();
    files.lines().filter(|path| root().join(path).is_file()).map(str::to_owned).collect()
}

fn rust_files() -> Vec<String> {
    tracked().into_iter().filter(|path| Path::new(path).extension().is_some_and(|extension| extension == "rs")).collect()
}

/// Rust files that are not test code as a whole.
fn product_files() -> Vec<String> {
    let named: Vec<_> = rust_files().into_iter().filter(|path| !SourceFile::is_test_path(path)).collect();
    let for_tests: BTreeSet<_> = named.iter().flat_map(|path| SourceFile::read(root(), path).test_modules()).collect();
    named.into_iter().filter(|path| !for_tests.iter().any(|module| path.starts_with(module.as_str()))).collect()
}

/// The text of a tracked file; `None` for one that is not text.
fn text(path: &str) -> Option<String> {
    String::from_utf8(fs::read(root().join(path)).unwrap()).ok()
}
