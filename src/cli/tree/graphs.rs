//! Definitions, compiled over what is served.

use std::{
    collections::{BTreeMap, BTreeSet},
    sync::Arc,
};

use plinth_api::{GroupVersionKind, Object, ObjectKey};
use plinth_bootstrap::Schemas;
use plinth_engine::{
    graph::{self, Definition, Graph},
    ports::ReadError,
    schema::{KindInfo, Lookup, SchemaSource},
};

use super::Found;

/// Compiled definitions by the kind of their instances.
pub(super) type Graphs = BTreeMap<GroupVersionKind, Arc<Graph>>;

/// What was compiled the last time: whoever looks at every change does not compile at every change.
#[derive(Default)]
pub(crate) struct Memory {
    definitions: Vec<(ObjectKey, Option<String>, i64)>,
    served: Vec<Option<Arc<KindInfo>>>,
    graphs: Graphs,
}

impl Memory {
    /// Compiles where a definition or what is served has changed. What does not compile has a verdict of its own, and no children that
    /// could be known.
    pub(super) async fn compile(&mut self, objects: &Found, schemas: &dyn Schemas) -> Result<Graphs, ReadError> {
        let definitions: Vec<Definition> = objects.values().filter_map(|object| Definition::from_object(object).ok()).collect();
        let kinds: BTreeSet<GroupVersionKind> =
            definitions.iter().flat_map(|definition| graph::kinds(&definition.spec)).collect();
        if kinds.is_empty() {
            return Ok(Graphs::new());
        }
        let kinds: Vec<GroupVersionKind> = kinds.into_iter().collect();
        let source = schemas.ensure(&kinds).await?;
        let now = Self {
            definitions: objects.iter().map(state).collect(),
            served: served(&kinds, source.as_ref()),
            graphs: Graphs::new(),
        };
        if !self.is_of(&now) {
            let graphs = definitions.iter().filter_map(|definition| {
                let compiled = graph::compile(definition, source.as_ref(), &graph::Options::default());
                compiled.graph().map(|graph| (graph.instance.gvk.clone(), Arc::clone(graph)))
            });
            *self = Self { graphs: graphs.collect(), ..now };
        }
        Ok(self.graphs.clone())
    }

    fn is_of(&self, now: &Self) -> bool {
        let is_same = |(a, b): (&Option<Arc<KindInfo>>, &Option<Arc<KindInfo>>)| match (a, b) {
            (Some(a), Some(b)) => Arc::ptr_eq(a, b),
            (a, b) => a.is_none() && b.is_none(),
        };
        self.definitions == now.definitions
            && self.served.len() == now.served.len()
            && self.served.iter().zip(&now.served).all(is_same)
    }
}

fn state((key, object): (&ObjectKey, &Object)) -> (ObjectKey, Option<String>, i64) {
    (key.clone(), object.uid().map(str::to_owned), object.generation())
}

fn served(kinds: &[GroupVersionKind], source: &dyn SchemaSource) -> Vec<Option<Arc<KindInfo>>> {
    let found = |gvk: &GroupVersionKind| match source.kind(gvk) {
        Lookup::Served(kind) => Some(kind),
        Lookup::NotServed => None,
    };
    kinds.iter().map(found).collect()
}
