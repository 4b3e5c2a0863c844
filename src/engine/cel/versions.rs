//! The port by which expressions compare versions with constraints: the grammar is that of whoever evaluates.
//!
//! As with the [`budget`](super::budget), the interpreter's functions have no context, so the check of the evaluation that runs on a
//! thread is a variable of that thread.

use std::cell::Cell;

/// Whether a version satisfies a constraint; an error where one of the two is none.
pub type VersionCheck = fn(version: &str, constraint: &str) -> Result<bool, String>;

thread_local! {
    static CHECK: Cell<Option<VersionCheck>> = const { Cell::new(None) };
}

/// Runs `work` with this check; the outer one, if any, is there again after it.
pub(super) fn within<T>(check: Option<VersionCheck>, work: impl FnOnce() -> T) -> T {
    let outer = Restore(CHECK.replace(check));
    let result = work();
    drop(outer);
    result
}

struct Restore(Option<VersionCheck>);

impl Drop for Restore {
    fn drop(&mut self) {
        CHECK.set(self.0);
    }
}

/// Asks the check of this evaluation.
pub(super) fn check(version: &str, constraint: &str) -> Result<bool, String> {
    match CHECK.get() {
        Some(check) => check(version, constraint),
        None => Err("versions cannot be compared here".to_owned()),
    }
}
