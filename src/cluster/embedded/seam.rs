//! The seam: where a request goes may be another place than its path says.
//!
//! ```text
//!            request ──> Seam::turn ──┬── Pass ───> Way::of(path) ──┐
//!                                     ├── To(Way) ─────────────────┴──> API ──> answer
//!                                     └── Answer(Reply) ────────────────────> answer
//! ```
//!
//! A control plane that is more than API servers side by side, as kcp is, needs four things that Kubernetes has not: paths of
//! its own (`/services/apiexport/…/clusters/NAME/…`) that end up in a logical cluster; a filter that hides from one request what
//! another one sees (a claimed kind's selector); labels that it puts on what is written, whatever the client says; and answers
//! that are no `Status`. All of it is one value, [`Way`], made before the API looks at the request. The API knows nothing of
//! what made it, and a request without a seam takes the way of its path.
//!
//! Invariant: a seam decides and does not act. It reads the state under the control plane's lock, so that what it decides is
//! still true when the API answers.
//!
//! What a way does to each verb:
//!
//! | verb | filter | labels |
//! | --- | --- | --- |
//! | get | 404 for what it hides | |
//! | list, deletecollection | what it hides is not there | |
//! | watch | what leaves it is `DELETED`, what enters it is `ADDED` | |
//! | create | 409 for a name that is taken, also by what it hides | put, managed by nobody |
//! | update, patch, apply | 404 for what it hides; apply, which would create it, 409 | put, managed by nobody |
//! | delete | 404 for what it hides | |

use std::sync::Arc;

use plinth_api::ClusterKey;

use super::{
    api::{
        kinds::Kinds,
        problem::Problem,
        rbac::User,
        route,
        state::{Call, Reply, State},
    },
    filter::Reach,
};
use crate::selector::Selector;

/// Looks at every request before the API does, those of the control plane's own programs too.
pub trait Seam: Send + Sync {
    /// Where the request goes. `user` is who asks, after tokens. Must not block, and not ask the control plane.
    fn turn(&self, call: &Call, user: &User, state: &State) -> Turn;
}

/// What a [`Seam`] makes of a request.
pub enum Turn {
    /// The request goes where its path says.
    Pass,
    /// The API answers it over there.
    To(Box<Way>),
    /// This is the answer. It need not be a `Status`, nor JSON.
    Answer(Reply),
}

/// Where a request goes, and what it meets there.
#[derive(Clone, Debug)]
pub struct Way {
    /// One logical cluster, or all of them (list and watch only).
    pub reach: Reach,
    /// The path there, such as `/api/v1/namespaces`.
    pub path: String,
    /// Objects with other labels are not there.
    pub filter: Selector,
    /// What is put on objects that are written.
    pub labels: Vec<Label>,
    /// What is served there, in discovery, OpenAPI and for requests; `None` for what the cluster itself serves.
    pub kinds: Option<Arc<Kinds>>,
    /// In whose name, where the seam has decided itself what the user may do.
    pub user: Option<User>,
}

/// A label that a [`Way`] puts on objects.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Label {
    /// Key.
    pub name: String,
    /// Value.
    pub value: String,
    /// Whether a request that says another value is refused (403); otherwise the other value is dropped without a word.
    pub protected: bool,
}

impl Way {
    /// The way that a path says: below `/clusters/NAME` a logical cluster, below `/clusters/*` all of them, else the default
    /// cluster. For a seam: the rest of a path of its own. Refuses names that no logical cluster can have, with 400.
    pub fn of(path: &str) -> Result<Self, Problem> {
        let (reach, path) = route::split(path)?;
        Ok(Self { reach, path, filter: Selector::default(), labels: Vec::new(), kinds: None, user: None })
    }

    /// The cluster's name; `*` for all of them, which no cluster is called.
    pub(crate) fn cluster(&self) -> ClusterKey {
        match &self.reach {
            Reach::One(cluster) => cluster.clone(),
            Reach::Logical => ClusterKey("*".to_owned()),
        }
    }
}

/// Where the requests of a cluster's clients begin: nothing for the default cluster, else `/clusters/NAME`.
pub fn root(cluster: &ClusterKey) -> String {
    if super::filter::is_logical(cluster) { format!("/clusters/{cluster}") } else { String::new() }
}

#[cfg(test)]
mod tests;
