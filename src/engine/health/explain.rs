//! From a subject that is not well to the root cause.

use std::collections::BTreeSet;

use super::verdict::{Cause, Explanation, Health, Verdict};

/// Explains why `subject` is as it is.
///
/// `judge` says how a subject is, `causes` what it waits for or is made of. Of several ways down, the one that ends at the
/// most urgent root is taken, the shorter of two equal ones, the first of two still equal; what is Current is no cause.
/// Every subject is looked at once, so that a cycle or a large graph costs no more than its size.
pub fn explain<S: Clone + Ord>(subject: S, judge: impl Fn(&S) -> Verdict, causes: impl Fn(&S) -> Vec<S>) -> Explanation<S> {
    let mut search = Search { judge: &judge, causes: &causes, seen: BTreeSet::new(), cyclic: BTreeSet::new() };
    let mut chain = search.chain(subject, &mut BTreeSet::new());
    chain.reverse();
    let cyclic = chain.iter().any(|cause| search.cyclic.contains(&cause.subject));
    Explanation { chain, cyclic }
}

struct Search<'a, S> {
    judge: &'a dyn Fn(&S) -> Verdict,
    causes: &'a dyn Fn(&S) -> Vec<S>,
    seen: BTreeSet<S>,
    cyclic: BTreeSet<S>,
}

impl<S: Clone + Ord> Search<'_, S> {
    /// The chain from the root cause up to `subject`.
    fn chain(&mut self, subject: S, above: &mut BTreeSet<S>) -> Vec<Cause<S>> {
        self.seen.insert(subject.clone());
        let verdict = (self.judge)(&subject);
        let mut best: Vec<Cause<S>> = Vec::new();
        if verdict.health != Health::Current {
            above.insert(subject.clone());
            for cause in (self.causes)(&subject) {
                if above.contains(&cause) {
                    self.cyclic.insert(subject.clone());
                } else if !self.seen.contains(&cause) {
                    let chain = self.chain(cause, above);
                    if is_better(&chain, &best) {
                        best = chain;
                    }
                }
            }
            above.remove(&subject);
        }
        best.push(Cause { subject, verdict });
        best
    }
}

fn is_better<S>(new: &[Cause<S>], old: &[Cause<S>]) -> bool {
    let urgency = |chain: &[Cause<S>]| chain.first().map_or(0, |root| root.verdict.health.urgency());
    match urgency(new).cmp(&urgency(old)) {
        std::cmp::Ordering::Greater => true,
        std::cmp::Ordering::Equal => urgency(new) > 0 && new.len() < old.len(),
        std::cmp::Ordering::Less => false,
    }
}

#[cfg(test)]
mod tests {
    use std::collections::BTreeMap;

    use super::*;

    fn check(graph: &[(&'static str, Health, &[&'static str])], expected: &[&str], cyclic: bool) {
        let graph: BTreeMap<_, _> = graph.iter().map(|(name, health, causes)| (*name, (*health, causes.to_vec()))).collect();
        let judge = |name: &&'static str| Verdict::new(graph[name].0, "Test", "");
        let found = explain("top", judge, |name| graph[name].1.clone());
        let chain: Vec<_> = found.chain.iter().map(|cause| cause.subject).collect();
        assert_eq!((chain.as_slice(), found.cyclic), (expected, cyclic));
    }

    #[test]
    fn the_most_urgent_root_is_found() {
        use Health::{Current, Failed, InProgress, Waiting};
        let slow = ("slow", InProgress, [].as_slice());
        check(
            &[
                ("top", Waiting, &["slow", "middle", "well"]),
                slow,
                ("middle", Waiting, &["broken"]),
                ("broken", Failed, &["well"]),
                ("well", Current, &[]),
            ],
            &["top", "middle", "broken"],
            false,
        );
        check(&[("top", Current, &["slow"]), slow], &["top"], false);
    }

    #[test]
    fn a_cycle_ends_and_is_said() {
        use Health::Waiting;
        check(&[("top", Waiting, &["a"]), ("a", Waiting, &["top"])], &["top", "a"], true);
    }

    #[test]
    fn a_deep_ladder_of_diamonds_is_walked_once() {
        // Every level has two ways down: 2^64 paths, 128 subjects.
        let causes = |at: &usize| if *at >= 128 { vec![] } else { vec![(at / 2 + 1) * 2, (at / 2 + 1) * 2 + 1] };
        let found = explain(0, |_| Verdict::new(Health::Waiting, "Test", ""), causes);
        assert!(found.chain.len() > 1);
    }
}
