//! The doors of the core: traits whose adapters live in other rooms, and plain data in and out.
//!
//! Layered behaviour (labels, owner, dry run, recording, retry) is a decorator that wraps an [`Applier`], never a flag.

use std::{fmt, future::Future, pin::Pin, sync::Arc, time::Duration};

use jiff::Timestamp;
use plinth_api::{ClusterKey, GroupVersionKind, Object, ObjectKey, Permission};
use thiserror::Error;

/// What an asynchronous port method answers with.
pub type Answer<'a, T> = Pin<Box<dyn Future<Output = T> + Send + 'a>>;

/// Server-side apply of one object.
#[derive(Clone, Debug, PartialEq)]
pub struct Apply {
    /// Where and what.
    pub key: ObjectKey,
    /// The fields that the manager owns, `apiVersion`, `kind` and `metadata.name` included.
    pub object: Object,
    /// Field manager.
    pub manager: String,
    /// Takes fields from other managers.
    pub force: bool,
    /// `status` to write the status subresource.
    pub subresource: Option<&'static str>,
}

/// Whom a controller acts for: what it may not do is refused.
#[derive(Clone, Debug, PartialEq, Eq, PartialOrd, Ord, Hash)]
pub struct ServiceAccount {
    /// Its namespace.
    pub namespace: String,
    /// Its name.
    pub name: String,
}

/// The name that an API server knows it by.
impl fmt::Display for ServiceAccount {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        write!(f, "system:serviceaccount:{}:{}", self.namespace, self.name)
    }
}

/// What somebody wants to read.
#[derive(Clone, Debug, PartialEq, Eq, PartialOrd, Ord, Hash)]
pub struct Access {
    /// Who.
    pub account: ServiceAccount,
    /// The API server.
    pub cluster: ClusterKey,
    /// The kind.
    pub gvk: GroupVersionKind,
    /// One namespace, or all of them.
    pub namespace: Option<String>,
    /// One object (`get`), or all of them (`list`).
    pub name: Option<String>,
}

impl Access {
    /// The verb of Kubernetes' authorization.
    pub fn verb(&self) -> &'static str {
        if self.name.is_some() { "get" } else { "list" }
    }
}

/// Deletion of one object.
#[derive(Clone, Debug, PartialEq)]
pub struct Delete {
    /// Where and what.
    pub key: ObjectKey,
    /// Refuses another object of the same name.
    pub uid: Option<String>,
}

/// Writes objects.
pub trait Applier: Send + Sync {
    /// Applies and answers with the object as the server holds it now.
    fn apply<'a>(&'a self, request: &'a Apply) -> Answer<'a, Result<Object, WriteError>>;

    /// Asks for deletion; an object that is already gone is no error.
    fn delete<'a>(&'a self, request: &'a Delete) -> Answer<'a, Result<(), WriteError>>;

    /// Replaces an object as a whole, the record of its managers included; its `metadata.resourceVersion` must be the present one. Only
    /// what takes objects over needs it.
    fn replace<'a>(&'a self, key: &'a ObjectKey, _object: &'a Object) -> Answer<'a, Result<Object, WriteError>> {
        let error = WriteError::Invalid { key: key.clone(), message: "objects are not replaced here".to_owned() };
        Box::pin(async { Err(error) })
    }
}

/// An applier that is shared.
impl<T: Applier + ?Sized> Applier for Arc<T> {
    fn apply<'a>(&'a self, request: &'a Apply) -> Answer<'a, Result<Object, WriteError>> {
        (**self).apply(request)
    }

    fn delete<'a>(&'a self, request: &'a Delete) -> Answer<'a, Result<(), WriteError>> {
        (**self).delete(request)
    }

    fn replace<'a>(&'a self, key: &'a ObjectKey, object: &'a Object) -> Answer<'a, Result<Object, WriteError>> {
        (**self).replace(key, object)
    }
}

/// Reads objects.
pub trait Reader: Send + Sync {
    /// One object, `None` where it does not exist.
    fn get<'a>(&'a self, key: &'a ObjectKey) -> Answer<'a, Result<Option<Object>, ReadError>>;

    /// All objects of a kind, in one namespace or all, that match a label selector (Kubernetes' text form).
    fn list<'a>(&'a self, query: &'a Query) -> Answer<'a, Result<Vec<Object>, ReadError>>;
}

/// Time, so that tests and simulations can step it (contracts 23).
pub trait Clock: Send + Sync {
    /// The time of day.
    fn now(&self) -> Timestamp;

    /// Resolves once `now` has moved on by `duration`.
    fn sleep(&self, duration: Duration) -> Answer<'static, ()>;
}

/// Which objects to list.
#[derive(Clone, Debug, PartialEq, Eq, PartialOrd, Ord, Hash)]
pub struct Query {
    /// The API server.
    pub cluster: ClusterKey,
    /// The kind.
    pub gvk: GroupVersionKind,
    /// One namespace, or all of them.
    pub namespace: Option<String>,
    /// Label selector in Kubernetes' text form, empty for all.
    pub selector: String,
}

/// Why a write was not done. Expected answers of an API server are variants; the caller decides by them, never by text.
#[derive(Clone, Debug, PartialEq, Eq, Error)]
pub enum WriteError {
    /// The kind is not served (yet).
    #[error("{0} is not served")]
    NotServed(GroupVersionKind),
    /// Another field manager owns a field, or the resource version moved.
    #[error("{key} is in conflict: {message}")]
    Conflict {
        /// The object.
        key: ObjectKey,
        /// The server's words.
        message: String,
    },
    /// The identity may not do this.
    #[error("{missing} is not permitted")]
    Forbidden {
        /// What is missing.
        missing: Box<Permission>,
        /// The server's words.
        message: String,
    },
    /// Admission control refuses what the identity may do: a policy, a quota, a service account that is not there yet. Something
    /// else has to change first.
    #[error("{key} is refused by the cluster's admission control: {message}")]
    Denied {
        /// The object.
        key: ObjectKey,
        /// The server's words.
        message: String,
    },
    /// The server does not know who asks.
    #[error("{key}: the API server does not accept these credentials: {message}")]
    Unauthenticated {
        /// The object.
        key: ObjectKey,
        /// The server's words.
        message: String,
    },
    /// The server refuses the object; trying again does not help.
    #[error("{key} is refused: {message}")]
    Invalid {
        /// The object.
        key: ObjectKey,
        /// The server's words.
        message: String,
    },
    /// The namespace (or the object of a status write) does not exist.
    #[error("{key}: {message}")]
    NotFound {
        /// The object.
        key: ObjectKey,
        /// The server's words.
        message: String,
    },
    /// The server could not be asked or failed; trying again may help.
    #[error("{key}: the API server could not do it: {message}")]
    Unavailable {
        /// The object.
        key: ObjectKey,
        /// What happened.
        message: String,
    },
    /// This process no longer holds the Lease, so the write was dropped before it was sent (contracts 21).
    #[error("{key}: not written, because the Lease is no longer held here")]
    NotLeader {
        /// The object.
        key: ObjectKey,
    },
}

/// Why a read failed; a missing object is an answer, not an error.
#[derive(Clone, Debug, PartialEq, Eq, Error)]
pub enum ReadError {
    /// The kind is not served (yet).
    #[error("{0} is not served")]
    NotServed(GroupVersionKind),
    /// The identity may not read this.
    #[error("{missing} is not permitted: {message}")]
    Forbidden {
        /// What is missing.
        missing: Box<Permission>,
        /// The server's words.
        message: String,
    },
    /// The server does not know who asks.
    #[error("the API server does not accept these credentials: {0}")]
    Unauthenticated(String),
    /// The server could not be asked or failed; trying again may help.
    #[error("the API server could not answer: {0}")]
    Unavailable(String),
}
