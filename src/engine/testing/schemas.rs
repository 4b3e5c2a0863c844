//! Schemas for tests: Kubernetes' own, and whatever CRDs a file has.

use std::path::Path;

use plinth_api::Object;

use super::data;
use crate::{
    schema::{KindInfo, SchemaMap, builtin, crd},
    yaml,
};

/// The kinds of Kubernetes.
pub(crate) fn core() -> SchemaMap {
    builtin().clone()
}

/// The kinds of the OCM controllers, from their own CRDs.
pub(crate) fn delivery() -> Vec<KindInfo> {
    let files = std::fs::read_dir(data("openmcp/ocm-crds")).unwrap();
    files.flat_map(|file| kinds_of(&file.unwrap().path())).collect()
}

/// All kinds of all CRDs in a file.
pub(crate) fn kinds_of(file: &Path) -> Vec<KindInfo> {
    let text = std::fs::read_to_string(file).unwrap();
    let Ok(documents) = yaml::documents(&text) else { return Vec::new() };
    let crds = documents.into_iter().filter(|document| document.value["kind"] == "CustomResourceDefinition");
    crds.flat_map(|document| crd::kinds(&Object::from_value(document.value).unwrap()).unwrap()).collect()
}
