//! Following component references from a root: concurrent, bounded, each component version once.

use std::collections::{BTreeMap, BTreeSet, VecDeque};
use std::sync::Arc;

use futures::stream::{self, StreamExt};
use tokio::sync::OnceCell;

use crate::circle;
use crate::config::Resolver;
use crate::descriptor::{Descriptor, Reference};
use crate::digest::Digest;
use crate::error::{ErrorKind, RepositoryError, ResolveError};
use crate::options::Limits;
use crate::repository::{ComponentRepository, ComponentVersion};
use crate::selection::{self, Selection};
use crate::source::RepositoryRef;

/// All component versions that a root leads to.
#[derive(Clone, Debug)]
pub(crate) struct Closure {
    /// By name and version.
    pub(crate) nodes: BTreeMap<ComponentVersion, Node>,
    /// Where they were looked for, in order of preference.
    pub(crate) repositories: Vec<Arc<dyn ComponentRepository>>,
}

/// One component version of a closure.
#[derive(Clone, Debug)]
pub(crate) struct Node {
    pub(crate) descriptor: Arc<Descriptor>,
    pub(crate) digest: Digest,
    /// Index into [`Closure::repositories`].
    pub(crate) repository: usize,
    /// Its repository.
    pub(crate) source: Arc<dyn ComponentRepository>,
    /// A shortest path from the root, both ends included.
    pub(crate) path: Vec<ComponentVersion>,
    /// Indices of the descriptor's references that the selection kept.
    pub(crate) kept: Vec<usize>,
}

impl Node {
    pub(crate) fn at(&self) -> ComponentVersion {
        ComponentVersion::new(&self.descriptor.name, &self.descriptor.version)
    }

    pub(crate) fn references(&self) -> impl Iterator<Item = &Reference> {
        self.kept.iter().map(|index| &self.descriptor.references[*index])
    }

    fn targets(&self) -> impl Iterator<Item = ComponentVersion> {
        self.references().map(|reference| ComponentVersion::new(&reference.component, &reference.version))
    }
}

/// Further places for what is nowhere else: resolvers of the configuration, opened when they are needed.
#[derive(Debug, Default)]
pub(crate) struct Fallbacks {
    entries: Vec<(Resolver, OnceCell<Arc<dyn ComponentRepository>>)>,
}

/// Opens a repository for a resolver.
pub(crate) type Opener<'a> = &'a (dyn Fn(&RepositoryRef) -> Result<Arc<dyn ComponentRepository>, ResolveError> + Sync);

impl Fallbacks {
    pub(crate) fn new(resolvers: &[Resolver]) -> Self {
        Self { entries: resolvers.iter().map(|resolver| (resolver.clone(), OnceCell::new())).collect() }
    }

    /// Versions of a component that the resolvers which know its name have, in their order.
    pub(crate) async fn versions(&self, component: &str, open: Opener<'_>) -> Result<Vec<Vec<String>>, ResolveError> {
        let mut lists = Vec::new();
        for (index, (resolver, _)) in self.entries.iter().enumerate().filter(|(_, (resolver, _))| resolver.knows(component)) {
            let versions = match self.open(index, open).await?.versions(component).await {
                Err(error) if error.kind() == ErrorKind::NotFound => continue,
                other => other?,
            };
            lists.push(versions.into_iter().filter(|version| resolver.matches(component, version)).collect());
        }
        Ok(lists)
    }

    async fn open(&self, index: usize, open: Opener<'_>) -> Result<Arc<dyn ComponentRepository>, ResolveError> {
        let (resolver, cell) = &self.entries[index];
        cell.get_or_try_init(|| async { open(&resolver.repository) }).await.cloned()
    }
}

/// What a walk needs to know.
pub(crate) struct Walk<'a> {
    pub(crate) selection: &'a Selection,
    pub(crate) limits: &'a Limits,
    pub(crate) fallbacks: &'a Fallbacks,
    pub(crate) open: Opener<'a>,
}

/// A component version that is still to be read.
struct Wanted {
    path: Vec<ComponentVersion>,
    /// The parent's repository, which is asked first (ocm.md section 13).
    prefer: usize,
}

impl Closure {
    /// Walks level by level, so that the result and the first error do not depend on timing.
    pub(crate) async fn walk(
        root: ComponentVersion,
        repositories: Vec<Arc<dyn ComponentRepository>>,
        walk: &Walk<'_>,
    ) -> Result<Self, ResolveError> {
        let mut closure = Self { nodes: BTreeMap::new(), repositories };
        let mut seen = BTreeSet::from([root.clone()]);
        let mut level = vec![Wanted { path: vec![root], prefer: 0 }];
        while !level.is_empty() {
            let found = closure.read_level(level, walk).await?;
            level = Vec::new();
            for node in found {
                for target in node.targets() {
                    if seen.insert(target.clone()) {
                        level.push(Wanted { path: [node.path.as_slice(), &[target]].concat(), prefer: node.repository });
                    }
                }
                closure.nodes.insert(node.at(), node);
            }
            check_bounds(seen.len(), &level, walk.limits)?;
        }
        circle::refuse(&closure.nodes.iter().map(|(at, node)| (at.clone(), node.targets().collect())).collect())?;
        selection::are_known(closure.nodes.values().map(|node| node.descriptor.as_ref()), walk.selection)?;
        closure.adopt(walk.fallbacks);
        Ok(closure)
    }

    async fn read_level(&self, level: Vec<Wanted>, walk: &Walk<'_>) -> Result<Vec<Node>, ResolveError> {
        let reads = level.into_iter().map(|wanted| self.read(wanted, walk));
        let mut results = stream::iter(reads).buffered(walk.limits.parallel.max(1) * 2);
        let mut nodes = Vec::new();
        while let Some(node) = results.next().await {
            nodes.push(node?);
        }
        Ok(nodes)
    }

    /// The parent's repository, then the source's, then resolvers that know the name.
    async fn read(&self, wanted: Wanted, walk: &Walk<'_>) -> Result<Node, ResolveError> {
        let component = wanted.path.last().expect("a path has at least its end");
        let own = self.repositories.len();
        let matching = (0..walk.fallbacks.entries.len())
            .filter(|index| walk.fallbacks.entries[*index].0.matches(&component.name, &component.version));
        let all = (0..own).chain(matching.map(|index| own + index));
        let order = std::iter::once(wanted.prefer).chain(all.filter(|index| *index != wanted.prefer));
        let mut missing = Vec::new();
        for index in order {
            let source = match self.repositories.get(index) {
                Some(source) => Arc::clone(source),
                None => walk.fallbacks.open(index - own, walk.open).await?,
            };
            match source.descriptor(component).await {
                Ok(found) => {
                    let kept = selection::keep(&found.descriptor, walk.selection, walk.limits)?;
                    let (descriptor, digest) = (found.descriptor, found.digest);
                    return Ok(Node { descriptor, digest, repository: index, source, path: wanted.path, kept });
                }
                Err(error) if error.kind() == ErrorKind::NotFound => missing.push(error),
                Err(source) => return Err(ResolveError::Repository { path: wanted.path, source }),
            }
        }
        Err(self.not_found(wanted.path, missing))
    }

    /// Puts the resolvers' repositories that were used behind the source's, so that the lock names them.
    fn adopt(&mut self, fallbacks: &Fallbacks) {
        let own = self.repositories.len();
        let used: BTreeSet<usize> = self.nodes.values().map(|node| node.repository).filter(|index| *index >= own).collect();
        for (position, index) in used.iter().enumerate() {
            let cell = &fallbacks.entries[index - own].1;
            self.repositories.push(Arc::clone(cell.get().expect("something was found in it")));
            for node in self.nodes.values_mut().filter(|node| node.repository == *index) {
                node.repository = own + position;
            }
        }
    }

    fn not_found(&self, path: Vec<ComponentVersion>, mut missing: Vec<RepositoryError>) -> ResolveError {
        match (missing.pop(), path.len()) {
            (Some(source), 1) if missing.is_empty() => ResolveError::Repository { path: Vec::new(), source },
            _ => {
                let searched = self.repositories.iter().map(|repository| repository.artifacts().place()).collect();
                ResolveError::BrokenReference { path, searched }
            }
        }
    }

    /// The node, or an error that says it is not part of the closure.
    pub(crate) fn require(&self, component: &ComponentVersion) -> Result<&Node, ResolveError> {
        self.nodes.get(component).ok_or_else(|| {
            let there = self.nodes.keys().filter(|key| key.name == component.name).map(|key| key.version.clone()).collect();
            ResolveError::NoVersion { component: component.name.clone(), wanted: component.version.clone(), there }
        })
    }

    /// Component versions reachable from one, itself included, sorted.
    pub(crate) fn reachable(&self, from: &ComponentVersion) -> Vec<ComponentVersion> {
        let mut seen = BTreeSet::new();
        let mut queue = VecDeque::from([from.clone()]);
        while let Some(next) = queue.pop_front() {
            if let Some(node) = self.nodes.get(&next)
                && seen.insert(next)
            {
                queue.extend(node.targets());
            }
        }
        seen.into_iter().collect()
    }
}

fn check_bounds(seen: usize, level: &[Wanted], limits: &Limits) -> Result<(), ResolveError> {
    if seen > limits.components {
        return Err(ResolveError::Limit { what: "the number of component versions".to_owned(), limit: limits.components });
    }
    match level.iter().find(|wanted| wanted.path.len() > limits.depth) {
        Some(wanted) => {
            let what = format!("the path of references to {}", wanted.path[wanted.path.len() - 1]);
            Err(ResolveError::Limit { what, limit: limits.depth })
        }
        None => Ok(()),
    }
}
