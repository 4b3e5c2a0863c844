//! What helps against the root cause of something: one answer for `plinth why`, the strip of the terminal, and whoever else asks.

use plinth_api::{GroupVersionKind, ObjectKey};
use plinth_engine::health::advice_on;

use crate::health::MISSING;

/// Reason of what waits for its kind.
pub const DEFERRED: &str = "Deferred";
/// Reason of what is being deleted.
const TERMINATING: &str = "Terminating";
/// What comes before the names of those that are to bring a kind.
const EXPECTED: &str = "; expected from ";

/// One link of a chain from an object to its root cause.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct Link<'a> {
    /// The object.
    pub key: &'a ObjectKey,
    /// One word in UpperCamelCase.
    pub reason: &'a str,
    /// A sentence.
    pub message: &'a str,
}

/// That a kind is not served, and by whom it is expected to be.
pub fn not_served(gvk: &GroupVersionKind, from: Option<&str>) -> String {
    let from = from.map(|from| format!("{EXPECTED}{from}")).unwrap_or_default();
    format!("{gvk} is not served yet{from}")
}

/// The next step for a chain, the object first and its root cause last: against a root cause that `up` makes again, against a kind that was
/// expected and did not come, or as the catalogue says it for the deepest link that it knows. `goes_on` is whether a run is at it now:
/// what it makes anyway needs nobody.
pub fn next_step(chain: &[Link<'_>], goes_on: bool) -> Option<String> {
    let root = chain.last()?;
    let of_the_catalogue = || {
        let advice = chain.iter().rev().find_map(|link| advice_on(&link.key.gvk, link.reason, link.message))?;
        Some(format!("{} (plinth why {})", advice.next, advice.id))
    };
    let of_the_root = if goes_on { None } else { made_again(root).or_else(|| brought(root)) };
    of_the_root.or_else(of_the_catalogue)
}

fn made_again(root: &Link<'_>) -> Option<String> {
    let key = root.key;
    match root.reason {
        MISSING => Some(format!("plinth up makes {key} again, with the SOURCE that the platform came from")),
        TERMINATING => Some(format!(
            "plinth up runs the controllers that let go of {key}, and makes it again; a finalizer of anybody else has to be taken off by \
             its own controller"
        )),
        _ => None,
    }
}

/// Who is expected to bring the kind that a root cause waits for.
fn brought(root: &Link<'_>) -> Option<String> {
    let (_, from) = root.message.split_once(EXPECTED).filter(|_| root.reason == DEFERRED)?;
    Some(format!("{from} is there and has not brought {} yet: its own log says why", root.key.gvk))
}

#[cfg(test)]
mod tests {
    use plinth_api::ClusterKey;

    use super::*;

    fn check(reason: &str, message: &str, goes_on: bool, expect: Option<&str>) {
        let gvk = GroupVersionKind::new("late.dev", "v1", "Thing");
        let key = ObjectKey { cluster: ClusterKey::host(), gvk, namespace: None, name: "x".to_owned() };
        let top = Link { key: &key, reason: "NotReady", message: "" };
        let next = next_step(&[top, Link { key: &key, reason, message }], goes_on);
        let starts = |expect: &str| next.as_ref().is_some_and(|next| next.starts_with(expect));
        assert!(expect.map_or(next.is_none(), starts), "{reason}: {next:?}");
    }

    #[test]
    fn the_root_cause_decides_and_the_catalogue_knows_the_rest() {
        let gvk = GroupVersionKind::new("late.dev", "v1", "Thing");
        check(MISSING, "it does not exist", false, Some("plinth up makes Thing.late.dev/x again"));
        check(MISSING, "it does not exist", true, None);
        check(TERMINATING, "", false, Some("plinth up runs the controllers"));
        check(TERMINATING, "", true, Some("see that the controller behind the finalizer runs"));
        let told = not_served(&gvk, Some("Deployment/operator"));
        check(DEFERRED, &told, false, Some("Deployment/operator is there and has not brought"));
        check("PermissionMissing", "", true, Some("plinth grant shows"));
        check("NobodyKnows", "", false, None);
    }
}
