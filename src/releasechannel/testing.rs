//! What tests of this room share.

use std::path::PathBuf;

/// The folder with corpora: `PLINTH_DATA`, else beside the workspace.
pub(crate) fn data() -> PathBuf {
    std::env::var_os("PLINTH_DATA")
        .map_or_else(|| PathBuf::from(concat!(env!("CARGO_MANIFEST_DIR"), "/../../../shared/data")), PathBuf::from)
}
