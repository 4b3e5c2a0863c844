//! Order: which node comes after which, cycles, deletion waves (kro.md section 7).

use std::{cmp::Reverse, collections::BinaryHeap};

/// Edges by position: `edges[node]` are the nodes it depends on.
pub(super) type Edges = Vec<Vec<usize>>;

/// The nodes such that each comes after all it depends on; of several that could come next, the one listed first does.
/// Nodes on or behind a cycle are left out.
pub(super) fn topological(edges: &Edges) -> Vec<usize> {
    let dependents = reversed(edges);
    let mut open: Vec<usize> = edges.iter().map(Vec::len).collect();
    let mut next: BinaryHeap<Reverse<usize>> = (0..edges.len()).filter(|node| open[*node] == 0).map(Reverse).collect();
    let mut order = Vec::with_capacity(edges.len());
    while let Some(Reverse(node)) = next.pop() {
        order.push(node);
        for dependent in &dependents[node] {
            open[*dependent] -= 1;
            if open[*dependent] == 0 {
                next.push(Reverse(*dependent));
            }
        }
    }
    order
}

/// Cycles, each as the nodes along it from the one listed first; every node that is on a cycle is in at least one.
pub(super) fn cycles(edges: &Edges) -> Vec<Vec<usize>> {
    let mut found: Vec<Vec<usize>> = Vec::new();
    // What can be ordered is on no cycle.
    let mut open = vec![true; edges.len()];
    topological(edges).into_iter().for_each(|node| open[node] = false);
    for start in (0..edges.len()).filter(|node| open[*node]) {
        if found.iter().flatten().all(|node| *node != start)
            && let Some(cycle) = shortest_cycle(edges, start)
        {
            found.push(cycle);
        }
    }
    found
}

/// The shortest way from a node back to itself.
fn shortest_cycle(edges: &Edges, start: usize) -> Option<Vec<usize>> {
    let mut came_from = vec![None; edges.len()];
    let mut queue = std::collections::VecDeque::from([start]);
    while let Some(node) = queue.pop_front() {
        for next in &edges[node] {
            if *next == start {
                let mut cycle: Vec<usize> = std::iter::successors(Some(node), |node| came_from[*node]).collect();
                cycle.reverse();
                return Some(cycle);
            }
            if came_from[*next].is_none() {
                came_from[*next] = Some(node);
                queue.push_back(*next);
            }
        }
    }
    None
}

/// Deletion waves: nodes without dependents are in the highest wave, what they depend on in lower ones, the deepest in 1.
pub(super) fn waves(edges: &Edges, order: &[usize]) -> Vec<usize> {
    let dependents = reversed(edges);
    let mut height = vec![0; edges.len()];
    for node in order.iter().rev() {
        height[*node] = dependents[*node].iter().map(|dependent| height[*dependent] + 1).max().unwrap_or_default();
    }
    let highest = height.iter().max().copied().unwrap_or_default();
    height.into_iter().map(|height| highest - height + 1).collect()
}

fn reversed(edges: &Edges) -> Edges {
    let mut reversed = vec![Vec::new(); edges.len()];
    for (node, dependencies) in edges.iter().enumerate() {
        for dependency in dependencies {
            reversed[*dependency].push(node);
        }
    }
    reversed
}

#[cfg(test)]
mod tests {
    use proptest::prelude::*;

    use super::*;

    #[test]
    fn the_one_listed_first_comes_first() {
        // kro's probe r50: d, c, a, b, e with d <- a, a <- b.
        let edges = vec![vec![2], vec![], vec![3], vec![], vec![]];
        let names = ["d", "c", "a", "b", "e"];
        assert_eq!(topological(&edges).iter().map(|node| names[*node]).collect::<Vec<_>>(), ["c", "b", "a", "d", "e"]);
    }

    #[test]
    fn cycles_are_named_whole() {
        let edges = vec![vec![1], vec![2], vec![0], vec![3], vec![0]];
        assert_eq!(cycles(&edges), [vec![0, 1, 2], vec![3]]);
        assert_eq!(topological(&edges), [] as [usize; 0]);
    }

    #[test]
    fn waves_count_from_the_deepest_dependency() {
        // 1 depends on 0, 2 on 1; 3 stands alone and goes first with 2.
        let edges = vec![vec![], vec![0], vec![1], vec![]];
        assert_eq!(waves(&edges, &topological(&edges)), [1, 2, 3, 3]);
    }

    proptest! {
        #[test]
        fn order_respects_edges_and_deletion_reverses_it(edges in acyclic()) {
            let order = topological(&edges);
            prop_assert_eq!(order.len(), edges.len());
            prop_assert!(cycles(&edges).is_empty());
            let waves = waves(&edges, &order);
            let place = |node: usize| order.iter().position(|other| *other == node).unwrap();
            for (node, dependencies) in edges.iter().enumerate() {
                for dependency in dependencies {
                    prop_assert!(place(*dependency) < place(node));
                    prop_assert!(waves[*dependency] < waves[node], "a dependency is deleted after its dependents");
                }
            }
        }
    }

    /// Random graphs whose edges lead from a node to nodes before it in a random permutation.
    fn acyclic() -> impl Strategy<Value = Edges> {
        (1_usize..12).prop_flat_map(|count| {
            let order = Just((0..count).collect::<Vec<_>>()).prop_shuffle();
            let bits = proptest::collection::vec(any::<bool>(), count * count);
            (order, bits).prop_map(move |(order, bits)| {
                let mut edges = vec![Vec::new(); count];
                for (later, node) in order.iter().enumerate() {
                    edges[*node] = order[..later].iter().copied().filter(|other| bits[node * count + other]).collect();
                }
                edges
            })
        })
    }
}
