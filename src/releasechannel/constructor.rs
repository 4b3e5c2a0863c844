//! Local YAML: an OCM component constructor and the files beside it become component versions (contracts 6 and 7).

use std::path::Path;

use crate::ctf::Contents;
use crate::error::ResolveError;
use crate::options::Limits;

/// Builds the content of a CTF from a constructor file, or from a folder with `channel.yaml`.
pub fn pack(path: &Path, limits: &Limits) -> Result<Contents, ResolveError> {
    let _ = limits;
    Err(ResolveError::Option {
        option: path.display().to_string(),
        reason: "local channels follow in the next commit".to_owned(),
    })
}
