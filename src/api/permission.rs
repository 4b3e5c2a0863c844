//! What an identity may be allowed to do.

use std::{collections::BTreeSet, fmt};

/// Type of the condition of an object that waits for rights, and the reason of everything that waits for it.
pub const MISSING: &str = "PermissionMissing";

/// Before the rights in a message.
const BEFORE: &str = "the controller may not ";
/// Behind them.
const BEHIND: &str = ": plinth grant shows what is missing, and adds it";
/// Before the number of those that are not named.
const MORE: char = '…';
/// Most bytes of rights in a message: conditions take 4 kB of text from here.
const MOST: usize = 3800;

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

impl Permission {
    /// Every verb on everything: whoever has it needs to be asked for nothing else, as `kubectl auth can-i '*' '*'` has it.
    pub fn everything() -> Self {
        let any = || "*".to_owned();
        Self { group: any(), resource: any(), verb: any(), namespace: None, name: None }
    }

    /// The way back from the printed form.
    pub fn parse(text: &str) -> Option<Self> {
        let (said, namespace) = match text.split_once(" in namespace ") {
            Some((said, namespace)) => (said, Some(namespace.to_owned())),
            None => (text, None),
        };
        let mut words = said.split(' ');
        let (verb, resource, name) = (words.next()?, words.next()?, words.next().map(str::to_owned));
        let (resource, group) = resource.split_once('.').unwrap_or((resource, ""));
        let is_whole = words.next().is_none() && !verb.is_empty() && !resource.is_empty();
        let (group, resource, verb) = (group.to_owned(), resource.to_owned(), verb.to_owned());
        is_whole.then_some(Self { group, resource, verb, namespace, name })
    }
}

/// What an object says that waits for rights: each of them, as far as there is room, and what helps. [`in_message`] reads them back.
pub fn message(missing: &BTreeSet<Permission>) -> String {
    let (mut rights, mut length) = (Vec::new(), 0);
    for right in missing.iter().map(ToString::to_string) {
        length += right.len() + "; ".len();
        if length > MOST {
            break;
        }
        rights.push(right);
    }
    let more = missing.len() - rights.len();
    if more > 0 {
        rights.push(format!("{MORE} and {more} more"));
    }
    format!("{BEFORE}{}{BEHIND}", rights.join("; "))
}

/// The rights in a condition's message; none where it is another one's.
pub fn in_message(text: &str) -> BTreeSet<Permission> {
    let rights = text.strip_prefix(BEFORE).and_then(|rest| rest.split_once(BEHIND)).map(|(rights, _)| rights);
    let named = rights.into_iter().flat_map(|rights| rights.split("; ")).filter(|right| !right.starts_with(MORE));
    named.filter_map(Permission::parse).collect()
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn what_a_condition_says_is_read_back() {
        let of = |verb: &str, resource: &str, group: &str, name: Option<&str>, namespace: Option<&str>| Permission {
            group: group.into(),
            resource: resource.into(),
            verb: verb.into(),
            namespace: namespace.map(str::to_owned),
            name: name.map(str::to_owned),
        };
        let missing = BTreeSet::from([
            of("create", "configmaps", "", Some("a.b"), Some("n")),
            of("list", "deployments", "apps", None, None),
            of("patch", "things/status", "x.test", Some("a"), None),
            of("bind", "clusterroles", "rbac.authorization.k8s.io", Some("system:admin"), None),
        ]);
        let text = message(&missing);
        assert!(text.starts_with("the controller may not ") && text.contains("create configmaps a.b in namespace n; "), "{text}");
        assert_eq!(in_message(&text), missing);
        assert_eq!(in_message("waits for something else"), BTreeSet::new());
        let many: BTreeSet<Permission> =
            (0..500).map(|n| of("create", "configmaps", "", Some(&format!("c{n:03}")), Some("default"))).collect();
        let text = message(&many);
        assert!(text.len() < 4000 && text.contains("; … and 4"), "{text}");
        let read = in_message(&text);
        assert!(read.len() > 50 && read.is_subset(&many), "{read:?}");
        for broken in ["", "get", "get  x", "get x y z"] {
            assert_eq!(Permission::parse(broken), None, "{broken}");
        }
    }
}
