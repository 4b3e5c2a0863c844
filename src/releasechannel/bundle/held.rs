//! One run at a time has the folder of a bundle's parts.

use std::fs::{File, TryLockError};
use std::os::unix::fs::MetadataExt;
use std::path::Path;

use crate::ctf::file_error;
use crate::error::RepositoryError;

/// The folder is this run's until this is dropped, also by a kill.
#[derive(Debug)]
pub struct Held(#[expect(dead_code, reason = "the lock lasts as long as the file is open")] File);

/// Makes the folder where it is missing, in one that is there, and takes it for this run, without what a killed run had begun to write there. A folder that another
/// run has is refused.
pub fn hold(folder: &Path) -> Result<Held, RepositoryError> {
    let failed = |action| move |error| file_error(action, folder, error);
    loop {
        crate::ctf::make_folder(folder)?;
        let opened = File::open(folder).map_err(failed("open"))?;
        match opened.try_lock() {
            Ok(()) => {}
            Err(TryLockError::WouldBlock) => {
                let reason = "another run writes the same bundle: wait for it, or choose another file";
                return Err(RepositoryError::malformed(folder.display().to_string(), reason));
            }
            Err(TryLockError::Error(error)) => return Err(file_error("lock", folder, error)),
        }
        // The run before may have removed it between the two.
        let inode = opened.metadata().map_err(failed("read"))?.ino();
        if std::fs::metadata(folder).is_ok_and(|there| there.ino() == inode) {
            clear(folder)?;
            return Ok(Held(opened));
        }
    }
}

/// Nothing knows the names of unfinished files any more.
fn clear(folder: &Path) -> Result<(), RepositoryError> {
    let entries = std::fs::read_dir(folder).map_err(|error| file_error("list", folder, error))?;
    let unfinished = entries.filter_map(Result::ok).filter(|entry| entry.file_name().to_string_lossy().starts_with(".tmp"));
    for entry in unfinished {
        std::fs::remove_file(entry.path()).map_err(|error| file_error("remove", &entry.path(), error))?;
    }
    Ok(())
}
