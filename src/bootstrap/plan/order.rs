//! The order in which definitions are written: as the graphs reach them, each after those whose kinds it makes, the top-level one last.

use std::collections::{BTreeMap, BTreeSet};

use plinth_api::GroupKind;

use super::{Built, Step, Wanted};

/// Sorts by the graphs: what the top-level graph makes first comes first. `built` has each after those whose kinds it makes.
pub(super) fn by_graph(built: Vec<Built>) -> Vec<Built> {
    let Some(root) = built.len().checked_sub(1) else { return built };
    let kinds = built.iter().enumerate().map(|(at, one)| (one.graph.instance.gvk.group_kind(), at)).collect();
    let mut walk = Walk { built: &built, kinds, seen: BTreeSet::from([root]), order: Vec::new() };
    walk.below(root);
    // What the top-level graph does not make is another's, and its kind has to be there all the same.
    (0..root).for_each(|at| walk.visit(at));
    let mut order = walk.order;
    order.push(root);
    let mut built: Vec<Option<Built>> = built.into_iter().map(Some).collect();
    order.into_iter().filter_map(|at| built[at].take()).collect()
}

struct Walk<'a> {
    built: &'a [Built],
    kinds: BTreeMap<GroupKind, usize>,
    seen: BTreeSet<usize>,
    order: Vec<usize>,
}

impl Walk<'_> {
    fn below(&mut self, at: usize) {
        // Nodes are in the order of their graph.
        for node in &self.built[at].graph.nodes {
            let made = self.kinds.get(&node.gvk.group_kind()).copied().filter(|_| node.kind.is_owned());
            made.into_iter().for_each(|made| self.visit(made));
        }
    }

    fn visit(&mut self, at: usize) {
        if self.seen.insert(at) {
            self.below(at);
            self.order.push(at);
        }
    }
}

/// Sorts what the run writes the same way, within its steps.
pub(super) fn wanted(wanted: &mut [Wanted], built: &[Built]) {
    let at = |one: &Wanted| match built.iter().position(|built| built.key == one.key) {
        Some(at) if one.step == Step::Definitions => at + 1,
        _ => 0,
    };
    wanted.sort_by_key(|one| (one.step, at(one)));
}
