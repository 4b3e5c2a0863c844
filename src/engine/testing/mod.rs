//! What the tests of several modules share: schemas, documents, a cluster in memory.

pub(crate) mod cluster;
mod schemas;

use std::{path::PathBuf, sync::Arc};

pub(crate) use schemas::{core, delivery, kinds_of};

use crate::{
    graph::{Compiled, Definition, Graph, Options, compile},
    schema::SchemaSource,
    yaml,
};

/// A path below the folder of test data (contracts entry 27).
pub(crate) fn data(path: &str) -> PathBuf {
    let default = || PathBuf::from(concat!(env!("CARGO_MANIFEST_DIR"), "/../../../shared/data"));
    std::env::var_os("PLINTH_DATA").map_or_else(default, PathBuf::from).join(path)
}

/// A file or folder of the data; `None`, after saying so, where there is no data.
pub(crate) fn recorded(path: &str) -> Option<PathBuf> {
    let found = Some(data(path)).filter(|path| path.exists());
    if found.is_none() {
        println!("NOT RUN {path}: not in {} (set PLINTH_DATA)", data("").display());
    }
    found
}

/// The text of a file of the data; `None`, after saying so, where there is no data.
pub(crate) fn text(path: &str) -> Option<String> {
    recorded(path).map(|path| std::fs::read_to_string(path).unwrap())
}

/// All lines of a JSON lines file, empty where there is no data.
pub(crate) fn json_lines(path: &str) -> Vec<serde_json::Value> {
    text(path).unwrap_or_default().lines().map(|line| serde_json::from_str(line).unwrap()).collect()
}

/// Reads the first definition of a text.
pub(crate) fn definition(text: &str) -> Result<Definition, Vec<crate::Diagnostic>> {
    let documents = yaml::documents_with_duplicates(text).map_err(|error| vec![error])?;
    Definition::from_document(documents.first().expect("a document"), text)
}

/// Compiles the first definition of a text.
pub(crate) fn compiled(text: &str, schemas: &dyn SchemaSource) -> Compiled {
    match definition(text) {
        Ok(definition) => compile(&definition, schemas, &Options::default()),
        Err(findings) => Compiled::Invalid(findings),
    }
}

/// The graph of a text that must compile.
pub(crate) fn graph(text: &str, schemas: &dyn SchemaSource) -> Arc<Graph> {
    match compiled(text, schemas) {
        Compiled::Invalid(findings) => panic!("{}", findings.iter().map(ToString::to_string).collect::<Vec<_>>().join("\n")),
        compiled => Arc::clone(compiled.graph().unwrap()),
    }
}

/// A definition around these resources; `spec` and `status` are lines of the schema.
pub(crate) fn rgd(spec: &str, status: &str, resources: &str) -> String {
    let indent = |text: &str, by: usize| text.lines().map(|line| format!("{:by$}{line}\n", "")).collect::<String>();
    format!(
        "apiVersion: kro.run/v1alpha1\nkind: ResourceGraphDefinition\nmetadata:\n  name: test\nspec:\n  schema:\n    apiVersion: v1alpha1\n    kind: Test\n    spec:\n{}    status:\n{}  resources:\n{}",
        indent(if spec.is_empty() { "name: string" } else { spec }, 6),
        indent(status, 6),
        indent(resources, 4),
    )
}
