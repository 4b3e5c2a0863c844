//! Local YAML: an OCM component constructor and the files beside it become component versions (contracts 6 and 7).

mod companions;
mod input;
mod known;
mod layout;
mod version;

use std::path::{Path, PathBuf};

use serde_json::Value;

use crate::circle;
use crate::ctf::Contents;
use crate::ctf::archive::{read_file, regular};
use crate::error::{RepositoryError, ResolveError};
use crate::options::Limits;
use crate::repository::ComponentVersion;
use crate::text;

/// Name of the constructor inside a folder.
pub(crate) const CHANNEL_FILE: &str = "channel.yaml";
const LIMIT: u64 = 16 << 20;

/// Builds the content of a CTF from a constructor file, or from a folder with `channel.yaml`. The same files give the same content.
pub fn pack(path: &Path, limits: &Limits) -> Result<Contents, ResolveError> {
    let file = if path.is_dir() { path.join(CHANNEL_FILE) } else { path.to_owned() };
    let constructor = Constructor::read(&file)?;
    let mut components = constructor.components()?;
    if path.is_dir() {
        companions::add(&constructor, &mut components)?;
    }
    let mut contents = Contents { place: path.display().to_string(), ..Contents::default() };
    let mut references = circle::References::new();
    for component in &components {
        let added = version::add(&constructor, component, &mut contents, limits)?;
        let at = ComponentVersion::new(&added.name, &added.version);
        let targets = added.references.iter().map(|to| ComponentVersion::new(&to.component, &to.version)).collect();
        if references.insert(at.clone(), targets).is_some() {
            return Err(constructor.refuse(format!("component {at} is there twice")));
        }
    }
    circle::refuse(&references)?;
    contents.artifacts.sort();
    contents.artifacts.dedup();
    Ok(contents)
}

/// A constructor file.
struct Constructor {
    file: PathBuf,
    folder: PathBuf,
    document: Value,
}

impl Constructor {
    fn read(file: &Path) -> Result<Self, ResolveError> {
        let bytes = read_file(regular(file)?, LIMIT)?;
        let document: Value =
            text::document(&bytes).map_err(|error| RepositoryError::malformed(file.display().to_string(), error))?;
        let is_list = document.get("components").is_some();
        // What is no component either is refused as a whole.
        let is_read = is_list || document.get("name").is_some();
        if let Some(error) = is_read.then(|| known::first_unknown(&bytes, is_list)).flatten() {
            return Err(RepositoryError::malformed(error.place_in(file.display()), error.message).into());
        }
        let folder = file.parent().filter(|folder| !folder.as_os_str().is_empty()).unwrap_or(Path::new("."));
        let folder = folder.canonicalize().map_err(|cause| crate::ctf::file_error("read", folder, cause))?;
        Ok(Self { file: file.to_owned(), folder, document })
    }

    /// `components:`, or the file is one component.
    fn components(&self) -> Result<Vec<Value>, ResolveError> {
        match self.document.get("components") {
            Some(Value::Array(components)) if !components.is_empty() => Ok(components.clone()),
            None if self.document.get("name").is_some() => Ok(vec![self.document.clone()]),
            _ => Err(self.refuse("there is no list `components`".to_owned())),
        }
    }

    /// A file or folder beside the constructor. Nothing outside of its folder is ever packed, and nothing that may have no end.
    fn file_at(&self, relative: &str) -> Result<PathBuf, RepositoryError> {
        let path = self.folder.join(relative);
        let real = path.canonicalize().map_err(|cause| crate::ctf::file_error("read", &path, cause))?;
        if real.starts_with(&self.folder) {
            regular(&real)?;
            return Ok(real);
        }
        Err(RepositoryError::malformed(self.file.display().to_string(), format!("the path `{relative}` leads out of its folder")))
    }

    fn refuse(&self, reason: String) -> ResolveError {
        RepositoryError::malformed(self.file.display().to_string(), reason).into()
    }

    fn refuse_in(&self, component: &ComponentVersion, reason: impl std::fmt::Display) -> ResolveError {
        self.refuse(format!("component {component}: {reason}"))
    }
}

#[cfg(test)]
mod tests;
