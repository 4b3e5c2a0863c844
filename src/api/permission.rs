//! What an identity may be allowed to do.

use std::fmt;

/// One verb on one resource, as a SelfSubjectAccessReview asks for it.
#[derive(Clone, Debug, Default, PartialEq, Eq, PartialOrd, Ord, Hash)]
pub struct Permission {
    /// API group, empty for the core group.
    pub group: String,
    /// Plural, with `/status` or another subresource where that is meant.
    pub resource: String,
    /// `get`, `list`, `watch`, `create`, `patch`, `delete`, `bind`.
    pub verb: String,
    /// The namespace, `None` for cluster-scoped kinds and for all namespaces.
    pub namespace: Option<String>,
    /// One object, `None` for all of them.
    pub name: Option<String>,
}

/// Prints `verb resource.group`, with name and namespace where there are any.
impl fmt::Display for Permission {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        write!(f, "{} {}", self.verb, self.resource)?;
        if !self.group.is_empty() {
            write!(f, ".{}", self.group)?;
        }
        if let Some(name) = &self.name {
            write!(f, " {name}")?;
        }
        match &self.namespace {
            Some(namespace) => write!(f, " in namespace {namespace}"),
            None => Ok(()),
        }
    }
}
