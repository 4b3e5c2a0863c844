//! Room for tall expressions.
//!
//! Parser, interpreter and our own walks recurse as deep as an expression is tall. Most are a few links tall and run where they
//! are; a tall one gets a thread with a stack that the greatest height fits, whatever the caller's stack is.

use std::thread;

/// Height up to which the caller's stack is used.
const LOW: usize = 48;

/// Stack for [`MAX_CHAIN`](super::MAX_CHAIN) links; memory is taken as it is touched.
const ROOM: usize = 64 << 20;

/// Runs `work`, which recurses `height` deep; `None` where the machine gives no thread.
pub(super) fn roomy<T: Send>(height: usize, work: impl FnOnce() -> T + Send) -> Option<T> {
    if height <= LOW {
        return Some(work());
    }
    thread::scope(|scope| {
        let thread = thread::Builder::new().name("tall expression".to_owned()).stack_size(ROOM).spawn_scoped(scope, work).ok()?;
        match thread.join() {
            Ok(result) => Some(result),
            Err(panic) => std::panic::resume_unwind(panic),
        }
    })
}
