//! Appliers that break promises, to see that it is found.

use std::sync::Arc;

use plinth_api::Object;
use plinth_engine::ports::{Answer, Applier, Apply, Delete, WriteError};

/// What is planted between a run and its cluster.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub(crate) enum Plant {
    /// Nothing.
    #[default]
    Nothing,
    /// Everything is written twice.
    Twice,
    /// What could not be written is deleted.
    DeletesOnFailure,
    /// A loop that starts anew takes nothing from the journal.
    Forgets,
}

impl Plant {
    pub(crate) fn over(self, inner: Arc<dyn Applier>) -> Arc<dyn Applier> {
        match self {
            Self::Nothing | Self::Forgets => inner,
            Self::Twice => Arc::new(Twice(inner)),
            Self::DeletesOnFailure => Arc::new(DeletesOnFailure(inner)),
        }
    }
}

struct Twice(Arc<dyn Applier>);

impl Applier for Twice {
    fn apply<'a>(&'a self, request: &'a Apply) -> Answer<'a, Result<Object, WriteError>> {
        Box::pin(async {
            self.0.apply(request).await?;
            self.0.apply(request).await
        })
    }

    fn delete<'a>(&'a self, request: &'a Delete) -> Answer<'a, Result<(), WriteError>> {
        self.0.delete(request)
    }
}

struct DeletesOnFailure(Arc<dyn Applier>);

impl Applier for DeletesOnFailure {
    fn apply<'a>(&'a self, request: &'a Apply) -> Answer<'a, Result<Object, WriteError>> {
        Box::pin(async {
            let answer = self.0.apply(request).await;
            if answer.is_err() {
                self.0.delete(&Delete { key: request.key.clone(), uid: None }).await?;
            }
            answer
        })
    }

    fn delete<'a>(&'a self, request: &'a Delete) -> Answer<'a, Result<(), WriteError>> {
        self.0.delete(request)
    }
}
