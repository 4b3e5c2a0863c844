//! Component references that lead back to where they start: no order, no end (contracts 7).

use std::collections::{BTreeMap, BTreeSet, VecDeque};

use crate::error::ResolveError;
use crate::repository::ComponentVersion;

/// Component versions with what each refers to; what is only referred to counts as an end.
pub(crate) type References = BTreeMap<ComponentVersion, VecDeque<ComponentVersion>>;

/// A depth-first walk without recursion: a component on the path from the root to itself closes a cycle.
pub(crate) fn refuse(references: &References) -> Result<(), ResolveError> {
    let mut done = BTreeSet::new();
    for start in references.keys() {
        let mut path: Vec<(ComponentVersion, VecDeque<ComponentVersion>)> = Vec::new();
        let mut next = Some(start.clone());
        loop {
            if let Some(component) = next.take() {
                if let Some(at) = path.iter().position(|(step, _)| *step == component) {
                    let circle = path[at..].iter().map(|(step, _)| step.clone()).chain([component]).collect();
                    return Err(ResolveError::Cycle { path: circle });
                }
                if !done.contains(&component) {
                    let targets = references.get(&component).cloned().unwrap_or_default();
                    path.push((component, targets));
                }
            }
            let Some((_, targets)) = path.last_mut() else { break };
            next = targets.pop_front();
            if next.is_none() {
                done.extend(path.pop().map(|(component, _)| component));
            }
        }
    }
    Ok(())
}
