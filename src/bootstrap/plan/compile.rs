//! Compiling all definitions of a distribution over what is served and what they define themselves.

use std::sync::Arc;

use plinth_api::{ClusterKey, GroupVersionKind, ObjectKey};
use plinth_engine::{
    Diagnostic,
    graph::{self, Compiled, Graph},
    schema::{self, Lookup, SchemaMap, SchemaSource},
};

use crate::{
    distribution::{Distribution, Rgd},
    error::Error,
    settings::Settings,
};

/// One compiled definition.
#[derive(Clone, Debug)]
pub struct Built {
    /// The definition.
    pub rgd: Rgd,
    /// Its object's key.
    pub key: ObjectKey,
    /// Its graph, deferred nodes included.
    pub graph: Arc<Graph>,
}

/// What will be served once the run has done its own steps: the kinds that it defines lie over what is served now.
pub(super) struct Layered {
    defined: SchemaMap,
    served: Arc<dyn SchemaSource>,
}

impl SchemaSource for Layered {
    fn kind(&self, gvk: &GroupVersionKind) -> Lookup {
        match self.defined.kind(gvk) {
            Lookup::NotServed => self.served.kind(gvk),
            found @ Lookup::Served(_) => found,
        }
    }
}

/// Compiles in the distribution's order, so that a definition finds the kinds that it makes.
pub(super) fn all(
    distribution: &Distribution,
    settings: &Settings,
    served: Arc<dyn SchemaSource>,
) -> Result<(Vec<Built>, Layered), Error> {
    let mut source = Layered { defined: SchemaMap::default(), served };
    for crd in &settings.definitions {
        let kinds = schema::crd::kinds(crd).map_err(|error| Error::Failed(error.to_string()))?;
        // Where somebody serves the kind already, that is what counts; the run installs nothing then.
        for kind in kinds {
            if source.served.kind(&kind.gvk) == Lookup::NotServed {
                source.defined.insert(kind);
            }
        }
    }
    let mut built = Vec::with_capacity(distribution.rgds.len());
    for rgd in &distribution.rgds {
        built.push(one(rgd, &mut source)?);
    }
    Ok((built, source))
}

fn one(rgd: &Rgd, source: &mut Layered) -> Result<Built, Error> {
    let refuse = |findings: Vec<Diagnostic>| Error::Document {
        component: rgd.component.clone(),
        resource: rgd.resource.clone(),
        findings,
    };
    let graph = match graph::compile(&rgd.definition, source, &graph::Options::default()) {
        Compiled::Active(graph) | Compiled::Deferred { graph, .. } => graph,
        Compiled::Invalid(findings) => return Err(refuse(findings)),
    };
    let kinds =
        schema::crd::kinds(&graph.crd).map_err(|error| refuse(vec![Diagnostic::error("spec.schema", error.to_string())]))?;
    source.defined.extend(kinds);
    let key = rgd.object.key(&ClusterKey::host()).expect("a definition that was read has a type");
    Ok(Built { rgd: rgd.clone(), key, graph })
}
