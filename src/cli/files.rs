//! Reading what the user names on the command line, bounded: only regular files, only so large, only so many.

use std::{
    collections::BTreeSet,
    fs::{self, File},
    io::{self, Read},
    path::{Path, PathBuf},
};

/// Largest file of definitions, CRDs or objects. The largest bundles of CRDs have some megabytes; one object may have one and a half.
pub(crate) const MAX_BYTES: u64 = 8 << 20;
/// Most files that are found in folders.
const MAX_FILES: usize = 10_000;
/// Deepest folder below one that was named.
const MAX_DEPTH: usize = 32;

/// The text of a regular file. What is anything else, or too large, is refused without reading it; errors name the file.
pub(crate) fn text(path: &Path) -> Result<String, String> {
    let name = path.display();
    let metadata = fs::metadata(path).map_err(|error| format!("read {name}: {error}"))?;
    if !metadata.is_file() {
        return Err(format!("read {name}: it is no regular file"));
    }
    if metadata.len() > MAX_BYTES {
        return Err(too_large(&name.to_string(), metadata.len()));
    }
    let file = File::open(path).map_err(|error| format!("read {name}: {error}"))?;
    bounded(file, &name.to_string())
}

/// What stands for standard input in the place of a file.
pub(crate) const STDIN: &str = "-";

/// The same, where [`STDIN`] is standard input.
pub(crate) fn text_or_input(path: &Path) -> Result<String, String> {
    if path == Path::new(STDIN) { bounded(io::stdin().lock(), "standard input") } else { text(path) }
}

/// The bound holds for a file that grows meanwhile, too.
fn bounded(from: impl Read, name: &str) -> Result<String, String> {
    let mut bytes = Vec::new();
    from.take(MAX_BYTES + 1).read_to_end(&mut bytes).map_err(|error| format!("read {name}: {error}"))?;
    if bytes.len() as u64 > MAX_BYTES {
        return Err(too_large(name, MAX_BYTES + 1));
    }
    String::from_utf8(bytes).map_err(|error| format!("read {name}: {}", no_text(&error)))
}

/// Why bytes are no text, with the next step.
fn no_text(error: &std::string::FromUtf8Error) -> String {
    let bytes = error.as_bytes();
    if bytes.starts_with(&[0xFE, 0xFF]) || bytes.starts_with(&[0xFF, 0xFE]) {
        return "it is UTF-16 text: save it as UTF-8".to_owned();
    }
    let line = bytes[..error.utf8_error().valid_up_to()].split(|byte| *byte == b'\n').count();
    format!("line {line} is no UTF-8 text: save the file as UTF-8")
}

fn too_large(name: &str, bytes: u64) -> String {
    format!("read {name}: it has {bytes} bytes, more than the {MAX_BYTES} that are read of a file")
}

/// Files as they are named, folders as the YAML and JSON files in them, sorted; what begins with a dot is left out.
///
/// Links are followed, but not back into a folder that they are in: its files are found already. More files or deeper folders than
/// anybody has are an error.
pub(crate) fn expand(paths: &[PathBuf]) -> Result<Vec<PathBuf>, String> {
    let mut walk = Walk::default();
    for path in paths {
        if path.is_dir() { walk.folder(path, 0)? } else { walk.found.push(path.clone()) }
    }
    Ok(walk.found)
}

#[derive(Default)]
struct Walk {
    found: Vec<PathBuf>,
    /// The folders around the one that is looked at, links resolved.
    around: BTreeSet<PathBuf>,
}

impl Walk {
    fn folder(&mut self, folder: &Path, depth: usize) -> Result<(), String> {
        let fail = |error: std::io::Error| format!("read {}: {error}", folder.display());
        if depth > MAX_DEPTH {
            return Err(format!("read {}: folders are more than {MAX_DEPTH} deep", folder.display()));
        }
        let real = fs::canonicalize(folder).map_err(fail)?;
        if !self.around.insert(real.clone()) {
            return Ok(());
        }
        let mut inside = Vec::new();
        for entry in fs::read_dir(folder).map_err(fail)?.take(MAX_FILES + 1) {
            inside.push(entry.map_err(fail)?.path());
        }
        inside.sort();
        for path in inside.into_iter().filter(|path| !is_hidden(path)) {
            if path.is_dir() {
                self.folder(&path, depth + 1)?;
            } else if path.extension().is_some_and(|end| end == "yaml" || end == "yml" || end == "json") {
                self.found.push(path);
            }
            if self.found.len() > MAX_FILES {
                return Err(format!("read {}: there are more than {MAX_FILES} files", folder.display()));
            }
        }
        self.around.remove(&real);
        Ok(())
    }
}

fn is_hidden(path: &Path) -> bool {
    path.file_name().is_some_and(|name| name.to_string_lossy().starts_with('.'))
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn what_is_no_file_is_refused_unread() {
        let folder = tempfile::tempdir().unwrap();
        for path in [Path::new("/dev/zero"), folder.path()] {
            assert!(text(path).unwrap_err().contains("no regular file"), "{}", path.display());
        }
        let sparse = folder.path().join("sparse.yaml");
        File::create(&sparse).unwrap().set_len(1 << 40).unwrap();
        assert!(text(&sparse).unwrap_err().contains("more than the 8388608"));
        std::os::unix::fs::symlink("loop.yaml", folder.path().join("loop.yaml")).unwrap();
        assert!(text(&folder.path().join("loop.yaml")).unwrap_err().contains("loop.yaml"));
    }

    #[test]
    fn folders_are_walked_in_order_and_loops_once() {
        let folder = tempfile::tempdir().unwrap();
        let inside = |name: &str| folder.path().join(name);
        fs::create_dir_all(inside("b/.git")).unwrap();
        for name in ["b/z.yml", "b/.git/x.yaml", "a.yaml", "c.json", "d.txt"] {
            fs::write(inside(name), "").unwrap();
        }
        let named = [inside("d.txt"), folder.path().to_owned()];
        assert_eq!(expand(&named).unwrap(), [inside("d.txt"), inside("a.yaml"), inside("b/z.yml"), inside("c.json")]);
        std::os::unix::fs::symlink(folder.path(), inside("b/back")).unwrap();
        assert_eq!(expand(&named).unwrap().len(), 4, "each file once");
    }

    #[test]
    fn what_is_no_text_says_what_to_do() {
        let folder = tempfile::tempdir().unwrap();
        let file = folder.path().join("a.yaml");
        for (bytes, expected) in [
            (&b"\xFF\xFEa\0"[..], "a.yaml: it is UTF-16 text: save it as UTF-8"),
            (b"\xFE\xFF\0a", "it is UTF-16 text"),
            (b"a: b\nc: \xE9\n", "line 2 is no UTF-8 text: save the file as UTF-8"),
        ] {
            fs::write(&file, bytes).unwrap();
            assert!(text(&file).unwrap_err().contains(expected), "{:?}", text(&file));
        }
        fs::write(&file, b"\xEF\xBB\xBFa: b").unwrap();
        assert_eq!(text(&file).unwrap(), "\u{feff}a: b", "readers of YAML know the mark");
    }
}
