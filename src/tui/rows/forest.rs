//! Objects in their places: who lies below whom, and how what lies below is.
//!
//! Made anew from the run whenever rows are, in one walk over all objects: with 20 000 of them it has to take milliseconds. So objects
//! are numbered in the order of their keys, and nothing is copied.

use std::collections::HashMap;

use plinth_api::ObjectKey;
use plinth_run::{Health, RunState, SubjectState};

/// No object.
const NONE: u32 = u32::MAX;

/// All objects of a run, by number.
pub(super) struct Forest<'a> {
    objects: Vec<&'a SubjectState>,
    parents: Vec<u32>,
    depths: Vec<u32>,
    below: Vec<Below>,
    /// Children of all objects, one object's after another's, each in the order of their keys; the last are those without a parent.
    children: Vec<u32>,
    /// Where each object's children begin, and those of nobody.
    begin: Vec<u32>,
    /// All objects, depth first.
    order: Vec<u32>,
}

/// Counts of what lies below an object, itself not counted.
#[derive(Clone, Copy, Debug, Default)]
pub(super) struct Below {
    total: usize,
    ready: usize,
    failed: usize,
}

impl Below {
    /// Nothing where all is well and can be seen.
    pub(super) fn text(self, folded: bool) -> Option<String> {
        let failed = if self.failed > 0 { format!(", {} failed", self.failed) } else { String::new() };
        let tell = self.total > 0 && (folded || self.ready < self.total);
        tell.then(|| format!("{} of {} below ready{failed}", self.ready, self.total))
    }
}

impl<'a> Forest<'a> {
    pub(super) fn of(run: &'a RunState) -> Self {
        let objects: Vec<&SubjectState> = run.subjects.values().collect();
        let parents = parents(&objects);
        let (children, begin) = children(&parents);
        let count = objects.len();
        let mut forest = Self {
            objects,
            parents,
            depths: vec![0; count],
            below: Vec::new(),
            children,
            begin,
            order: Vec::with_capacity(count),
        };
        forest.walk();
        forest.below = forest.rolled_up();
        forest
    }

    /// Depth first. Without recursion: how deep a graph is, is up to others.
    fn walk(&mut self) {
        let mut seen = vec![false; self.objects.len()];
        let roots = self.children_of(None).to_vec();
        // Two objects that claim to be each other's parent have no root; the first of them is taken for one.
        let all = 0..number(self.objects.len());
        let mut open = Vec::new();
        for root in roots.into_iter().chain(all) {
            open.push((root, 0));
            while let Some((object, depth)) = open.pop() {
                if std::mem::replace(&mut seen[index(object)], true) {
                    continue;
                }
                if depth == 0 {
                    self.parents[index(object)] = NONE;
                }
                self.depths[index(object)] = depth;
                self.order.push(object);
                open.extend(self.children_of(Some(index(object))).iter().rev().map(|child| (*child, depth + 1)));
            }
        }
    }

    fn rolled_up(&self) -> Vec<Below> {
        let mut below = vec![Below::default(); self.objects.len()];
        for object in self.order.iter().rev() {
            let Some(parent) = self.parent(index(*object)) else { continue };
            let Below { total, ready, failed } = below[index(*object)];
            let health = self.objects[index(*object)].health;
            let above = &mut below[parent];
            above.total += total + 1;
            above.ready += ready + usize::from(health == Some(Health::Current));
            above.failed += failed + usize::from(health == Some(Health::Failed));
        }
        below
    }

    /// Numbers of all objects, depth first, in the order of their keys.
    pub(super) fn order(&self) -> impl DoubleEndedIterator<Item = usize> {
        self.order.iter().copied().map(index)
    }

    pub(super) fn len(&self) -> usize {
        self.objects.len()
    }

    pub(super) fn object(&self, number: usize) -> &'a SubjectState {
        self.objects[number]
    }

    pub(super) fn parent(&self, number: usize) -> Option<usize> {
        Some(self.parents[number]).filter(|parent| *parent != NONE).map(index)
    }

    pub(super) fn depth(&self, number: usize) -> usize {
        index(self.depths[number])
    }

    pub(super) fn below(&self, number: usize) -> Below {
        self.below[number]
    }

    pub(super) fn is_leaf(&self, number: usize) -> bool {
        self.children_of(Some(number)).is_empty()
    }

    /// All families: children of one object, or those of nobody, in the order of their keys.
    pub(super) fn families(&self) -> impl Iterator<Item = impl Iterator<Item = usize>> {
        let parents = (0..self.objects.len()).map(Some).chain([None]);
        parents.map(|parent| self.children_of(parent).iter().copied().map(index))
    }

    fn children_of(&self, parent: Option<usize>) -> &[u32] {
        let parent = parent.unwrap_or(self.objects.len());
        &self.children[index(self.begin[parent])..index(self.begin[parent + 1])]
    }
}

/// The number of each object's parent. A parent that nobody has reported yet must not hide its children.
fn parents(objects: &[&SubjectState]) -> Vec<u32> {
    let find = |key: &ObjectKey| objects.binary_search_by(|object| object.subject.key.cmp(key)).map_or(NONE, number);
    let mut known: HashMap<&ObjectKey, u32> = HashMap::new();
    let mut parents = Vec::with_capacity(objects.len());
    for object in objects {
        let parent = object.subject.parent.as_ref();
        parents.push(parent.map_or(NONE, |key| *known.entry(key).or_insert_with(|| find(key))));
    }
    parents
}

/// Children sorted by parent, and where each parent's begin.
fn children(parents: &[u32]) -> (Vec<u32>, Vec<u32>) {
    let count = parents.len();
    let slot = |parent: u32| if parent == NONE { count } else { index(parent) };
    let mut begin = vec![0; count + 2];
    for parent in parents {
        begin[slot(*parent) + 1] += 1;
    }
    for parent in 0..=count {
        begin[parent + 1] += begin[parent];
    }
    let mut next = begin.clone();
    let mut children = vec![0; count];
    for (child, parent) in parents.iter().enumerate() {
        let place = &mut next[slot(*parent)];
        children[index(*place)] = number(child);
        *place += 1;
    }
    (children, begin)
}

/// Nobody has four billion objects in memory.
fn number(index: usize) -> u32 {
    u32::try_from(index).unwrap_or(NONE)
}

fn index(number: u32) -> usize {
    usize::try_from(number).unwrap_or(usize::MAX)
}
