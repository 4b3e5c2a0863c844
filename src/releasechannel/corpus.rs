//! The corpus that was made with the real tools, file by file, against ours: equal, or a difference that docs/differences.md has. A file that
//! no class is for fails the test, so that nothing of it can be forgotten.

mod outputs;
mod read;
mod rows;

use std::collections::BTreeMap;
use std::path::Path;

use crate::testing::data;

/// What became of one row.
enum Verdict {
    /// Ours is the same.
    Equal,
    /// Ours differs, as this part of docs/differences.md says.
    Listed(&'static str),
    /// Nothing in it that could be compared: what the tools were given, or their log.
    Input,
    /// What it belongs to is kept back.
    Absent,
    /// A difference that nobody has written down.
    Wrong(String),
}

impl Verdict {
    fn of(is_equal: bool, found: impl FnOnce() -> String) -> Self {
        if is_equal { Self::Equal } else { Self::Wrong(found()) }
    }

    fn from(result: Result<(), String>) -> Self {
        result.map_or_else(Self::Wrong, |()| Self::Equal)
    }
}

/// The class of a file: the first whose folder it is in.
const CLASSES: [(&str, &str); 21] = [
    ("ctf/", "archives"),
    ("signed/", "signatures"),
    ("descriptors/", "signed descriptors"),
    ("normalised/", "normal forms"),
    ("golden/signing/", "signing"),
    ("golden/v3/", "normal forms"),
    ("golden/creds/", "credential rows"),
    ("cfg/", "configurations"),
    ("keys/", "keys"),
    ("golden/semver-", "semver rows"),
    ("golden/cli/", "CLI outputs"),
    ("golden/graph/", "graph outputs"),
    ("golden/ctf/", "archives read by the other tool"),
    ("golden/transfer/", "transfers"),
    ("golden/access/", "access types"),
    ("golden/oci/", "registry contents"),
    ("golden/hand/SUMMARY.tsv", "hand-made archives, rows"),
    ("golden/hand/", "hand-made archives, outputs"),
    ("golden/blobs/", "packed images"),
    ("src/", "inputs of the tools"),
    ("INDEX.md", "inputs of the tools"),
];

fn class_of(file: &str) -> Option<&'static str> {
    CLASSES.iter().find(|(start, _)| file.starts_with(start)).map(|(_, class)| *class)
}

/// Whether a file's name ends like this.
fn ends(name: &str, end: &str) -> bool {
    Path::new(name).extension().is_some_and(|there| there == end)
}

/// The text of a file of the corpus; what the tools printed is not UTF-8 throughout.
fn text(file: &str) -> String {
    String::from_utf8_lossy(&std::fs::read(data().join("ocm").join(file)).unwrap()).into_owned()
}

/// All files below a folder, by their path in it.
fn walk(folder: &Path, prefix: &str, found: &mut Vec<String>) {
    let mut entries: Vec<_> = std::fs::read_dir(folder).unwrap().map(|entry| entry.unwrap()).collect();
    entries.sort_by_key(std::fs::DirEntry::file_name);
    for entry in entries {
        let name = format!("{prefix}{}", entry.file_name().to_string_lossy());
        if entry.path().is_dir() { walk(&entry.path(), &format!("{name}/"), found) } else { found.push(name) }
    }
}

/// The rows of a file, or of the archive that it is in, each with its name.
async fn judged(file: &str) -> Vec<(String, Verdict)> {
    let one = |verdict| vec![(file.to_owned(), verdict)];
    match class_of(file).unwrap_or_default() {
        "archives" => read::archive(file).await,
        "signatures" => read::signed(file).await,
        "signed descriptors" => one(read::signed_descriptor(file)),
        "normal forms" => one(read::normal_form(file).await),
        "signing" => read::signing(file).await,
        "keys" => one(read::key(file)),
        "registry contents" => one(read::registry(file).await),
        "packed images" => one(read::packed(file).await),
        "access types" | "transfers" => one(read::copied(file).await),
        "credential rows" => rows::credentials(file),
        "configurations" => one(rows::configuration(file)),
        "semver rows" => rows::semver(file),
        "hand-made archives, rows" => rows::hand(file).await,
        "hand-made archives, outputs" => one(outputs::hand(file).await),
        "CLI outputs" | "graph outputs" | "archives read by the other tool" => one(outputs::printed(file).await),
        _ => one(Verdict::Input),
    }
}

#[tokio::test(flavor = "multi_thread")]
async fn show_04_corpus() {
    let mut files = Vec::new();
    walk(&data().join("ocm"), "", &mut files);
    let differences = std::fs::read_to_string(concat!(env!("CARGO_MANIFEST_DIR"), "/../../docs/differences.md")).unwrap();
    let mut table: BTreeMap<&str, BTreeMap<&str, Vec<String>>> = BTreeMap::new();
    let (mut wrong, mut listed) = (Vec::new(), BTreeMap::<&str, usize>::new());
    let mut in_class: BTreeMap<&str, usize> = BTreeMap::new();
    for file in &files {
        let Some(class) = class_of(file) else {
            wrong.push(format!("{file}: no class is for it"));
            continue;
        };
        *in_class.entry(class).or_default() += 1;
        for (name, verdict) in judged(file).await {
            let word = match verdict {
                Verdict::Equal => "equal",
                Verdict::Input => "not compared",
                Verdict::Absent => "absent",
                Verdict::Listed(words) if differences.contains(words) => {
                    *listed.entry(words).or_default() += 1;
                    "listed"
                }
                Verdict::Listed(words) => {
                    wrong.push(format!("{name}: docs/differences.md does not say {words:?}"));
                    "wrong"
                }
                Verdict::Wrong(found) => {
                    wrong.push(format!("{name}: {found}"));
                    "wrong"
                }
            };
            table.entry(class).or_default().entry(word).or_default().push(name);
        }
    }
    for (class, words) in &table {
        let counts: Vec<String> = words.iter().map(|(word, rows)| format!("{} {word}", rows.len())).collect();
        eprintln!("SHOW 04 corpus {class}: {} files, {}", in_class[class], counts.join(", "));
        words.get("listed").into_iter().flatten().for_each(|name| eprintln!("    listed {name}"));
    }
    for (words, rows) in &listed {
        eprintln!("SHOW 04 corpus difference {words:?}: {rows} rows");
    }
    let equal: usize = table.values().filter_map(|words| words.get("equal")).map(Vec::len).sum();
    eprintln!("SHOW 04 corpus {} files in {} classes, {equal} rows equal, {} wrong", files.len(), table.len(), wrong.len());
    assert!(wrong.is_empty(), "{}", wrong.join("\n"));
    assert!(files.len() > 1000 && equal > 400);
}

#[test]
fn a_file_of_no_class_is_seen() {
    assert_eq!(class_of("golden/new/file.txt"), None);
    assert_eq!(class_of("ctf/v1/artifact-index.json"), Some("archives"));
}
