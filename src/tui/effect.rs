//! What the terminal asks the world for.

use plinth_api::ObjectKey;

/// A wish of [`crate::update::update`]; whoever runs the loop fulfils it.
#[derive(Clone, Debug, PartialEq, Eq)]
pub enum Effect {
    /// The plan is agreed to.
    Approve,
    /// The plan is turned down: nothing is written.
    Decline,
    /// A run that goes on is to be interrupted; it can be resumed.
    Interrupt,
    /// Something about an object; the answer comes as [`crate::Message::Fetched`], also where there is none.
    Fetch(Ask),
    /// Everything is to be read anew.
    Refresh,
    /// The contexts of the kubeconfig; the answer comes as [`crate::Message::Contexts`].
    Contexts,
    /// Another cluster is to be looked at, by the name of its context. [`crate::Message::Connected`] says that it is.
    Connect(String),
    /// This text goes to the clipboard.
    Copy(String),
    /// The process stops until its shell continues it.
    Suspend,
    /// The terminal closes.
    Quit,
}

/// A question about an object.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Ask {
    /// The object.
    pub key: ObjectKey,
    /// What about it.
    pub what: What,
}

/// What can be asked about an object.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum What {
    /// Itself, and how it is wanted.
    Object,
    /// The server's events about it.
    Events,
    /// The log of its worst pod.
    Logs,
}
