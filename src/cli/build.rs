//! Puts the sample distribution into the binary, so that `plinth demo` needs nothing else.

use std::{
    env,
    fmt::Write as _,
    fs, io,
    path::{Path, PathBuf},
};

fn main() -> io::Result<()> {
    let variable =
        |name: &str| env::var_os(name).map(PathBuf::from).ok_or_else(|| io::Error::other(format!("{name} is not set")));
    let folder = variable("CARGO_MANIFEST_DIR")?.join("../../distributions/open-control-plane-kind").canonicalize()?;
    println!("cargo::rerun-if-changed={}", folder.display());
    let mut files = Vec::new();
    collect(&folder, &mut files)?;
    files.sort();
    let mut code = String::from("/// Its files, by their paths in its folder.\npub(crate) const FILES: &[(&str, &str)] = &[\n");
    for file in &files {
        let name = file.strip_prefix(&folder).map_err(io::Error::other)?;
        let _ = writeln!(code, "    ({:?}, include_str!({:?})),", name.display().to_string(), file.display().to_string());
    }
    code.push_str("];\n");
    fs::write(variable("OUT_DIR")?.join("sample.rs"), code)
}

/// The YAML files of a folder and those below it.
fn collect(folder: &Path, files: &mut Vec<PathBuf>) -> io::Result<()> {
    for entry in fs::read_dir(folder)? {
        let path = entry?.path();
        if path.is_dir() {
            collect(&path, files)?;
        } else if path.extension().is_some_and(|extension| extension == "yaml") {
            files.push(path);
        }
    }
    Ok(())
}
