//! From files and folders to compiled definitions.

use std::{
    collections::BTreeSet,
    path::{Path, PathBuf},
};

use plinth_api::{GroupVersionKind, Object, crds};
use plinth_cluster::chain;
use plinth_engine::{
    Diagnostic,
    diagnostic::Severity,
    graph::{self, Compiled, Definition, Missing, Options, compile},
    schema::{Lookup, SchemaMap, SchemaSource, builtin, crd},
    yaml,
};

use super::objects::{SCHEMAS, held, unreadable};
use crate::{args::Global, exit::Failure, files, wire};

/// One definition of one file, and what came of it.
pub(super) struct Checked {
    pub(super) file: PathBuf,
    pub(super) name: String,
    pub(super) compiled: Result<Compiled, Vec<Diagnostic>>,
}

impl Checked {
    /// The graph, where the definition is not refused.
    pub(super) fn graph(&self) -> Option<&graph::Graph> {
        self.compiled.as_ref().ok().and_then(Compiled::graph).map(AsRef::as_ref)
    }

    /// Everything that there is to say about it.
    pub(super) fn findings(&self) -> &[Diagnostic] {
        match &self.compiled {
            Err(findings) => findings,
            Ok(compiled) => compiled.diagnostics(),
        }
    }

    /// Nodes whose kinds are not known.
    pub(super) fn missing(&self) -> &[Missing] {
        self.compiled.as_ref().map(Compiled::missing).unwrap_or_default()
    }

    /// `accepted`, `deferred` or `rejected`.
    pub(super) fn verdict(&self) -> &'static str {
        match &self.compiled {
            Err(_) | Ok(Compiled::Invalid(_)) => "rejected",
            Ok(Compiled::Deferred { .. }) => "deferred",
            Ok(Compiled::Active(_)) => "accepted",
        }
    }

    /// How many findings are errors.
    pub(super) fn errors(&self) -> usize {
        self.findings().iter().filter(|finding| finding.severity == Severity::Error).count()
    }
}

/// What a file holds before anything is compiled.
struct Found {
    file: PathBuf,
    name: String,
    definition: Result<Definition, Vec<Diagnostic>>,
}

/// All definitions of the files and folders, compiled. They know each other's kinds, in whatever order they come.
///
/// Kinds are those of the CRDs in `schemas`; else, where `--kubeconfig` or `--context` names a cluster, what that serves; else
/// Kubernetes' own, and definitions. A file that cannot be read is a finding of that file.
pub(super) async fn definitions(global: &Global, schemas: &[PathBuf], files: &[PathBuf]) -> Result<Vec<Checked>, Failure> {
    let mut found = Vec::new();
    for path in files {
        let before = found.len();
        let mut others = BTreeSet::new();
        match files::expand(std::slice::from_ref(path)) {
            Ok(files) => found.extend(files.into_iter().flat_map(|file| read(file, &mut others))),
            Err(message) => found.push(refused(path.clone(), Diagnostic::error("", unreadable(path, &message)))),
        }
        // A folder may hold other things too, but nobody names one in which there is nothing to look at.
        if found.len() == before {
            let finding = Diagnostic::error("", format!("holds no {}", plinth_api::rgd::KIND)).with_hint(held(&others));
            found.push(refused(path.clone(), finding));
        }
    }
    let known = known_kinds(global, schemas, &found).await?;
    Ok(all(found, known))
}

fn refused(file: PathBuf, finding: Diagnostic) -> Found {
    Found { file, name: String::new(), definition: Err(vec![finding]) }
}

/// The definitions of a file; the kinds of what else it holds are added to `others`.
fn read(file: PathBuf, others: &mut BTreeSet<String>) -> Vec<Found> {
    let text = match files::text_or_input(&file) {
        Ok(text) => text,
        Err(message) => {
            let finding = Diagnostic::error("", unreadable(&file, &message));
            let is_absent = !file.exists() && file != Path::new(files::STDIN);
            let finding = if is_absent { finding.with_hint("name a file, a folder, or - for standard input") } else { finding };
            return vec![refused(file, finding)];
        }
    };
    let documents = match yaml::documents_with_duplicates(&text) {
        Ok(documents) => documents,
        Err(finding) => return vec![refused(file, finding)],
    };
    let documents = documents.into_iter().flat_map(|document| document.items(&text).unwrap_or_else(|| vec![document]));
    let (definitions, rest): (Vec<_>, Vec<_>) = documents.partition(|document| document.value["kind"] == plinth_api::rgd::KIND);
    others.extend(rest.iter().filter_map(|document| document.value["kind"].as_str()).map(str::to_owned));
    definitions
        .into_iter()
        .map(|document| Found {
            file: file.clone(),
            name: document.value["metadata"]["name"].as_str().unwrap_or_default().to_owned(),
            definition: Definition::from_document(&document, &text),
        })
        .collect()
}

/// Compiles until no definition gives another one a kind that it lacked.
fn all(found: Vec<Found>, mut known: SchemaMap) -> Vec<Checked> {
    let mut checked: Vec<Checked> = Vec::new();
    let mut definitions = Vec::new();
    for Found { file, name, definition } in found {
        match definition {
            Ok(definition) => {
                let compiled = compile(&definition, &known, &Options::default());
                definitions.push((checked.len(), definition));
                checked.push(Checked { file, name, compiled: Ok(compiled) });
            }
            Err(findings) => checked.push(Checked { file, name, compiled: Err(findings) }),
        }
    }
    // Each round gives at least one kind more, and there are no more kinds than definitions.
    for _ in 0..definitions.len() {
        let before = known.len();
        for kind in checked.iter().filter_map(Checked::graph).filter_map(|graph| crd::kinds(&graph.crd).ok()).flatten() {
            if known.kind(&kind.gvk) == Lookup::NotServed {
                known.insert(kind);
            }
        }
        if known.len() == before {
            break;
        }
        for (index, definition) in &definitions {
            if checked[*index].missing().iter().any(|missing| known.kind(&missing.gvk) != Lookup::NotServed) {
                checked[*index].compiled = Ok(compile(definition, &known, &Options::default()));
            }
        }
    }
    let places: Vec<String> = definitions.iter().map(|(index, _)| checked[*index].file.display().to_string()).collect();
    let together = places.iter().map(String::as_str).zip(definitions.iter().map(|(_, definition)| definition));
    for (position, finding) in graph::namesakes(together) {
        let one = &mut checked[definitions[position].0];
        let mut findings = one.compiled.as_ref().map_or(&[][..], Compiled::diagnostics).to_vec();
        findings.push(finding);
        one.compiled = Ok(Compiled::Invalid(findings));
    }
    checked
}

async fn known_kinds(global: &Global, schemas: &[PathBuf], found: &[Found]) -> Result<SchemaMap, Failure> {
    let mut known =
        if global.kubeconfig.is_some() || global.context.is_some() { served(global, found).await? } else { offline() };
    for path in schemas {
        let objects = SCHEMAS.objects(path)?;
        let crds: Vec<&Object> = objects.iter().filter(|object| object.gvk().is_some_and(|gvk| gvk.kind == CRD)).collect();
        // Without a word every kind would be one that is not served yet, and accepted.
        if crds.is_empty() {
            return Err(SCHEMAS.refuse(path, &format!("holds no {CRD}")));
        }
        for object in crds {
            let kinds = crd::kinds(object);
            known.extend(kinds.map_err(|fault| SCHEMAS.refuse(path, &format!("CRD {:?}: {}", fault.name, fault.message)))?);
        }
    }
    Ok(known)
}

const CRD: &str = "CustomResourceDefinition";

/// Kubernetes' own kinds and those of definitions, which are served wherever a definition is.
fn offline() -> SchemaMap {
    let mut known = builtin().clone();
    for manifest in [crds::KRO_RGD, crds::KRO_REVISION, crds::KROP_RGD] {
        known.extend(crd::kinds(&manifest.object()).expect("plinth's own CRDs can be read"));
    }
    known
}

/// What a cluster serves of the kinds that the definitions mention.
async fn served(global: &Global, found: &[Found]) -> Result<SchemaMap, Failure> {
    let (host, _) = wire::connect(global).await?;
    let definitions = found.iter().filter_map(|found| found.definition.as_ref().ok());
    let kinds: BTreeSet<GroupVersionKind> = definitions.flat_map(|definition| graph::kinds(&definition.spec)).collect();
    let asked = host.0.catalog().ensure(&kinds).await;
    asked.map_err(|error| Failure::refused(format!("read the kinds of {}: {}", host.1, chain(&error))))
}
