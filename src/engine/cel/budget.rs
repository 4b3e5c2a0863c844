//! The bound on evaluation.
//!
//! The interpreter has no hook of its own, and its functions are plain `fn` pointers without a context; the budget of the
//! evaluation that runs on a thread is therefore a variable of that thread, set by [`within`] and spent by the functions that
//! [`lower`](super::lower) weaves in.

use std::cell::Cell;

use cel::ExecutionError;

/// Bounds of one evaluation.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct Limits {
    /// Steps: an element iterated, compared or copied costs one, as do 64 bytes of text. A million take about a second.
    pub cost: u64,
}

impl Default for Limits {
    fn default() -> Self {
        Self { cost: 1_000_000 }
    }
}

thread_local! {
    static LEFT: Cell<u64> = const { Cell::new(0) };
}

/// Marks the error that [`spend`] ends an evaluation with.
const LIMIT: &str = "@limit";

/// Runs `work` with a budget of its own; the outer one, if any, continues after it.
pub(super) fn within<T>(limits: Limits, work: impl FnOnce() -> T) -> T {
    let outer = Restore(LEFT.replace(limits.cost));
    let result = work();
    drop(outer);
    result
}

struct Restore(u64);

impl Drop for Restore {
    fn drop(&mut self) {
        LEFT.set(self.0);
    }
}

/// Takes from the budget; fails when nothing is left.
pub(super) fn spend(cost: u64) -> Result<(), ExecutionError> {
    let left = LEFT.get();
    LEFT.set(left.saturating_sub(cost));
    if cost > left { Err(ExecutionError::function_error(LIMIT, "evaluation cost limit exceeded")) } else { Ok(()) }
}

/// Whether the error is that of [`spend`].
pub(super) fn is_exceeded(error: &ExecutionError) -> bool {
    matches!(error, ExecutionError::FunctionError { function, .. } if function == LIMIT)
}
