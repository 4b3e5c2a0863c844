//! Layers over an [`Applier`].
//!
//! The order, from the caller to the server: recording, labels, the leader's gate (in `manager`), retry, cluster or dry run.
//! Recording is outermost, so that one write is recorded once, whatever its attempts; the gate is inside the labels and
//! outside the retry's first attempt, and asked again by each attempt where it is put below the retry.

use std::{collections::BTreeMap, sync::Arc, time::Duration};

use plinth_api::{Object, ObjectKey};
use plinth_engine::ports::{Answer, Applier, Apply, Delete, WriteError};
use serde_json::{Map, Value};

use crate::{
    backoff::{Backoff, seed_of},
    cluster::Cluster,
};

/// Lets the server answer as if it had written, and writes nothing.
pub struct DryRun(pub Arc<Cluster>);

impl Applier for DryRun {
    fn apply<'a>(&'a self, request: &'a Apply) -> Answer<'a, Result<Object, WriteError>> {
        Box::pin(self.0.apply_as(request, true))
    }

    fn delete<'a>(&'a self, request: &'a Delete) -> Answer<'a, Result<(), WriteError>> {
        Box::pin(self.0.delete_as(request, true))
    }
}

/// Adds labels to every object that is applied; they win over the object's own. Writes of subresources stay as they are.
pub struct Labelled<A> {
    /// What writes.
    pub inner: A,
    /// The labels.
    pub labels: BTreeMap<String, String>,
}

impl<A: Applier> Applier for Labelled<A> {
    fn apply<'a>(&'a self, request: &'a Apply) -> Answer<'a, Result<Object, WriteError>> {
        if request.subresource.is_some() {
            return self.inner.apply(request);
        }
        let mut request = request.clone();
        let labels = request.object.metadata_mut().entry("labels").or_insert_with(|| Value::Object(Map::new()));
        if let Value::Object(labels) = labels {
            labels.extend(self.labels.iter().map(|(key, value)| (key.clone(), Value::String(value.clone()))));
        }
        Box::pin(async move { self.inner.apply(&request).await })
    }

    fn delete<'a>(&'a self, request: &'a Delete) -> Answer<'a, Result<(), WriteError>> {
        self.inner.delete(request)
    }
}

/// One failed attempt, before the next.
#[derive(Clone, Debug, PartialEq)]
pub struct Retry<'a> {
    /// The object.
    pub key: &'a ObjectKey,
    /// Why the attempt failed.
    pub error: &'a WriteError,
    /// Number of the attempt that failed, from 1.
    pub attempt: u32,
    /// Delay until the next one.
    pub next: Duration,
}

/// Shows an attempt to whoever watches.
pub type OnRetry = Arc<dyn Fn(&Retry<'_>) + Send + Sync>;

/// Tries again what is [`WriteError::Unavailable`], with growing delays; nothing else gets better by itself.
pub struct Retrying<A> {
    /// What writes.
    pub inner: A,
    /// The delays.
    pub backoff: Backoff,
    /// Attempts in all, at least 1.
    pub attempts: u32,
    /// Told before each delay.
    pub on_retry: OnRetry,
}

impl<A: Applier> Retrying<A> {
    async fn again<'a, T>(
        &'a self,
        key: &'a ObjectKey,
        attempt: impl Fn() -> Answer<'a, Result<T, WriteError>>,
    ) -> Result<T, WriteError> {
        let seed = seed_of(&key.to_string());
        for number in 1.. {
            match attempt().await {
                Err(error @ WriteError::Unavailable { .. }) if number < self.attempts => {
                    let next = self.backoff.delay(number, seed);
                    (self.on_retry)(&Retry { key, error: &error, attempt: number, next });
                    tokio::time::sleep(next).await;
                }
                answer => return answer,
            }
        }
        unreachable!("the loop ends with its last attempt")
    }
}

impl<A: Applier> Applier for Retrying<A> {
    fn apply<'a>(&'a self, request: &'a Apply) -> Answer<'a, Result<Object, WriteError>> {
        Box::pin(self.again(&request.key, || self.inner.apply(request)))
    }

    fn delete<'a>(&'a self, request: &'a Delete) -> Answer<'a, Result<(), WriteError>> {
        Box::pin(self.again(&request.key, || self.inner.delete(request)))
    }
}

/// A finished write.
#[derive(Debug)]
pub enum Written<'a> {
    /// An apply and its answer.
    Apply(&'a Apply, &'a Result<Object, WriteError>),
    /// A deletion and its answer.
    Delete(&'a Delete, &'a Result<(), WriteError>),
}

/// Told after each write, before its caller goes on.
pub type OnWrite = Arc<dyn Fn(&Written<'_>) + Send + Sync>;

/// Reports every write, done or refused.
pub struct Recording<A> {
    /// What writes.
    pub inner: A,
    /// Who is told.
    pub on_write: OnWrite,
}

impl<A: Applier> Applier for Recording<A> {
    fn apply<'a>(&'a self, request: &'a Apply) -> Answer<'a, Result<Object, WriteError>> {
        Box::pin(async move {
            let answer = self.inner.apply(request).await;
            (self.on_write)(&Written::Apply(request, &answer));
            answer
        })
    }

    fn delete<'a>(&'a self, request: &'a Delete) -> Answer<'a, Result<(), WriteError>> {
        Box::pin(async move {
            let answer = self.inner.delete(request).await;
            (self.on_write)(&Written::Delete(request, &answer));
            answer
        })
    }
}

#[cfg(test)]
mod tests;
