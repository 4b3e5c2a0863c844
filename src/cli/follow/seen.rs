//! The index of watches as a reader, so that a tree is made of it as of a server.

use std::sync::Arc;

use plinth_api::{Object, ObjectKey};
use plinth_cluster::{
    Watches,
    watch::{Look, WatchKey, WatchState},
};
use plinth_engine::ports::{Answer, Query, ReadError, Reader};

/// What watches have seen; asks nobody.
pub(super) struct Seen(pub(super) Arc<Watches>);

impl Reader for Seen {
    /// What could not be read is an error, because it may well be there.
    fn get<'a>(&'a self, key: &'a ObjectKey) -> Answer<'a, Result<Option<Object>, ReadError>> {
        let found = match self.0.look(key) {
            Look::Present(object) => Ok(Some(Object::clone(&object))),
            Look::Absent => Ok(None),
            Look::Unwatched | Look::Unknown => Err(unseen()),
        };
        Box::pin(std::future::ready(found))
    }

    /// What could not be read is said by the watch; the rest is told without it.
    fn list<'a>(&'a self, query: &'a Query) -> Answer<'a, Result<Vec<Object>, ReadError>> {
        let found = self.0.list(query).unwrap_or_default();
        Box::pin(std::future::ready(Ok(found.iter().map(|object| Object::clone(object)).collect())))
    }
}

impl Seen {
    /// Why the index may not be what there is now; `None` where every watch follows.
    pub(super) fn doubt(&self) -> Option<ReadError> {
        let failing = |(_, state): (WatchKey, WatchState)| match state {
            WatchState::Failing { error, .. } => Some(error),
            _ => None,
        };
        self.0.states().into_iter().find_map(failing)
    }
}

/// As for what may not be read: nothing is said of it.
fn unseen() -> ReadError {
    ReadError::Forbidden { missing: Box::default(), message: "no watch has seen it".to_owned() }
}
