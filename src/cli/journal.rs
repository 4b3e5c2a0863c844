//! The journal as a file: JSON lines, one run after the other.

use std::{
    fs::{DirBuilder, File, OpenOptions, TryLockError},
    io::{Read, Seek, SeekFrom, Write},
    path::{Path, PathBuf},
    sync::Mutex,
};

#[cfg(unix)]
use std::os::unix::fs::{DirBuilderExt, OpenOptionsExt};

use plinth_run::{
    Event, EventKind, Journal,
    journal::{Replay, decode, encode},
    ports::JournalError,
};

use crate::files::STDIN;

/// The largest journal that is read: years of runs.
pub(crate) const MAX_BYTES: u64 = 1 << 30;

/// A journal file that this process alone writes.
#[derive(Debug)]
pub(crate) struct FileJournal {
    path: PathBuf,
    file: Mutex<File>,
}

impl FileJournal {
    /// Opens or makes the file, takes its lock, and cuts off a half-written last line.
    ///
    /// Errors where another process holds the lock: two runs of one platform from one machine are one too many.
    pub(crate) fn open(path: &Path) -> Result<Self, JournalError> {
        let failed = |message: String| JournalError::Write { journal: path.display().to_string(), message };
        let mut options = OpenOptions::new();
        options.read(true).write(true).create(true).truncate(false);
        // What a platform is made of is not for everybody on this machine.
        #[cfg(unix)]
        options.mode(0o600);
        let file = options.open(path).map_err(|error| failed(error.to_string()))?;
        file.try_lock().map_err(|_| failed("another run of plinth is writing it".to_owned()))?;
        let journal = Self { path: path.to_owned(), file: Mutex::new(file) };
        if let Some(cut) = journal.load()?.cut {
            let length = u64::try_from(cut.whole_bytes).unwrap_or(u64::MAX);
            journal.with(|file| file.set_len(length)).map_err(|error| failed(format!("cut off a half-written line: {error}")))?;
        }
        Ok(journal)
    }

    fn with<T>(&self, act: impl FnOnce(&mut File) -> std::io::Result<T>) -> std::io::Result<T> {
        let mut file = self.file.lock().unwrap_or_else(std::sync::PoisonError::into_inner);
        act(&mut file)
    }
}

impl Journal for FileJournal {
    fn append(&self, event: &Event) -> Result<(), JournalError> {
        let line = encode(event)?;
        // A killed process loses nothing that was written. Only a machine that loses power does, so the disk is waited for
        // where the promise changes: once before the first write to the cluster, and at the end.
        let settle = matches!(event.kind, EventKind::Approved { .. } | EventKind::RunFinished { .. });
        self.with(|file| {
            file.seek(SeekFrom::End(0))?;
            file.write_all(line.as_bytes())?;
            if settle { file.sync_data() } else { Ok(()) }
        })
        .map_err(|error| JournalError::Write { journal: self.path.display().to_string(), message: error.to_string() })
    }

    fn load(&self) -> Result<Replay, JournalError> {
        let failed = |message: String| JournalError::Read { journal: self.path.display().to_string(), message };
        let mut bytes = Vec::new();
        let read = self.with(|file| {
            file.seek(SeekFrom::Start(0))?;
            file.take(MAX_BYTES + 1).read_to_end(&mut bytes)
        });
        let length = read.map_err(|error| failed(error.to_string()))?;
        if length as u64 > MAX_BYTES {
            return Err(failed(format!("it is larger than {MAX_BYTES} bytes")));
        }
        decode(&bytes).map_err(|error| failed(error.to_string()))
    }
}

/// Makes the folder of plinth's own journals, for the user alone. A folder that a user names must be there: a typing error is no wish.
pub(crate) fn make_folder(folder: &Path) -> std::io::Result<()> {
    let mut builder = DirBuilder::new();
    builder.recursive(true);
    #[cfg(unix)]
    builder.mode(0o700);
    builder.create(folder)
}

/// Reads a journal of another process or of the past, standard input for [`STDIN`], without a lock and without a change.
pub(crate) fn read(path: &Path) -> Result<Replay, JournalError> {
    read_with_length(path).map(|(replay, _)| replay)
}

/// The same, and how many bytes were read.
pub(crate) fn read_with_length(path: &Path) -> Result<(Replay, u64), JournalError> {
    let failed = |message: String| JournalError::Read { journal: path.display().to_string(), message };
    let source: Box<dyn Read> = if path == Path::new(STDIN) {
        Box::new(std::io::stdin())
    } else {
        Box::new(File::open(path).map_err(|error| failed(error.to_string()))?)
    };
    let mut bytes = Vec::new();
    source.take(MAX_BYTES + 1).read_to_end(&mut bytes).map_err(|error| failed(error.to_string()))?;
    let length = bytes.len() as u64;
    if length > MAX_BYTES {
        return Err(failed(format!("it is larger than {MAX_BYTES} bytes")));
    }
    Ok((decode(&bytes).map_err(|error| failed(error.to_string()))?, length))
}

/// Whether a process holds the journal's lock: its run goes on.
pub(crate) fn is_being_written(path: &Path) -> bool {
    File::open(path).is_ok_and(|file| matches!(file.try_lock_shared(), Err(TryLockError::WouldBlock)))
}

#[cfg(test)]
mod tests {
    use jiff::Timestamp;
    use plinth_run::{Outcome, RunId};

    use super::*;

    fn event(seq: u64) -> Event {
        let kind = EventKind::RunFinished { outcome: Outcome::Done, message: String::new(), hint: None };
        Event { v: 1, run: RunId("r".to_owned()), seq, at: Timestamp::UNIX_EPOCH, kind }
    }

    #[test]
    fn what_was_appended_is_loaded_and_a_cut_line_is_dropped() {
        let folder = tempfile::tempdir().unwrap();
        let path = folder.path().join("journal.jsonl");
        let journal = FileJournal::open(&path).unwrap();
        journal.append(&event(1)).unwrap();
        drop(journal);
        let mut file = OpenOptions::new().append(true).open(&path).unwrap();
        file.write_all(b"{\"v\":1,\"run\":").unwrap();
        drop(file);
        let journal = FileJournal::open(&path).unwrap();
        journal.append(&event(2)).unwrap();
        let replay = journal.load().unwrap();
        assert_eq!((replay.events.len(), replay.cut), (2, None));
    }

    #[test]
    fn a_journal_is_read_while_it_is_written_and_told_apart_from_one_that_is_not() {
        let folder = tempfile::tempdir().unwrap();
        let path = folder.path().join("journal.jsonl");
        let journal = FileJournal::open(&path).unwrap();
        journal.append(&event(1)).unwrap();
        assert!(is_being_written(&path));
        assert_eq!(read(&path).unwrap().events.len(), 1);
        drop(journal);
        assert!(!is_being_written(&path));
    }

    #[cfg(unix)]
    #[test]
    fn journals_are_for_their_user_alone() {
        use std::os::unix::fs::PermissionsExt;
        let base = tempfile::tempdir().unwrap();
        let folder = base.path().join("state/plinth");
        make_folder(&folder).unwrap();
        let path = folder.join("journal.jsonl");
        let _journal = FileJournal::open(&path).unwrap();
        let mode = |path: &Path| std::fs::metadata(path).unwrap().permissions().mode() & 0o777;
        assert_eq!((mode(&folder), mode(&path)), (0o700, 0o600));
    }

    #[test]
    fn a_folder_that_is_not_there_is_not_made() {
        let base = tempfile::tempdir().unwrap();
        let error = FileJournal::open(&base.path().join("nodir/journal.jsonl")).unwrap_err().to_string();
        assert!(error.contains("nodir/journal.jsonl") && !base.path().join("nodir").exists(), "{error}");
    }

    #[test]
    fn a_second_writer_is_refused() {
        let folder = tempfile::tempdir().unwrap();
        let path = folder.path().join("journal.jsonl");
        let _first = FileJournal::open(&path).unwrap();
        let second = FileJournal::open(&path).unwrap_err();
        assert!(second.to_string().contains("another run"), "{second}");
    }
}
