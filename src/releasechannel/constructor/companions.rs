//! `instance.yaml` and `scenario.yaml` beside a `channel.yaml` become resources of the distribution (contracts 7).

use std::path::Path;

use serde_json::{Value, json};

use super::{Constructor, LIMIT};
use crate::ctf::archive::read_file;
use crate::error::ResolveError;
use crate::text;

const INSTANCE: &str = "instance.yaml";
const COMPANIONS: [(&str, &str); 2] = [("instance", INSTANCE), ("scenario", "scenario.yaml")];

/// Adds the files that no component names already to the component whose RGD defines the instance's kind.
pub(super) fn add(constructor: &Constructor, components: &mut [Value]) -> Result<(), ResolveError> {
    let missing: Vec<(&str, &str)> = COMPANIONS
        .into_iter()
        .filter(|(name, file)| {
            constructor.folder.join(file).is_file() && !components.iter().any(|component| has(component, name))
        })
        .collect();
    if missing.is_empty() {
        return Ok(());
    }
    let owner = match components.iter().position(|component| has(component, "instance")) {
        Some(owner) => owner,
        None => owner_of_instance(constructor, components)?,
    };
    let Some(resources) = list_mut(&mut components[owner], "resources") else {
        return Err(constructor.refuse("resources of a component is not a list".to_owned()));
    };
    for (name, file) in missing {
        resources.push(json!({"name": name, "type": format!("plinth.dev/{name}"), "relation": "local",
            "input": {"type": "file", "path": file, "mediaType": "application/x-yaml"}}));
    }
    Ok(())
}

/// The component whose `rgd` file defines the kind of `instance.yaml`.
fn owner_of_instance(constructor: &Constructor, components: &[Value]) -> Result<usize, ResolveError> {
    let instance = read(constructor, INSTANCE)?;
    let kind = instance.first().and_then(|document| document.get("kind")).and_then(Value::as_str).unwrap_or_default();
    for (index, component) in components.iter().enumerate() {
        for file in rgd_files(component) {
            let defines = |document: &Value| document.pointer("/spec/schema/kind").and_then(Value::as_str) == Some(kind);
            // A file that cannot be read is reported with its component when that is packed.
            if read(constructor, file).is_ok_and(|documents| documents.iter().any(defines)) {
                return Ok(index);
            }
        }
    }
    if components.iter().any(|component| rgd_files(component).any(|file| read(constructor, file).is_err())) {
        return Ok(0);
    }
    let file = constructor.folder.join(INSTANCE);
    Err(constructor.refuse(format!("no component has an RGD for the kind `{kind}` of {}", place_of_kind(&file))))
}

/// `FILE:line:column` of the kind, as compilers write it.
fn place_of_kind(file: &Path) -> String {
    #[derive(serde::Deserialize)]
    struct Kind {
        kind: serde_saphyr::Spanned<Value>,
    }
    let bytes = read_file(file, LIMIT).unwrap_or_default();
    let read = text::yaml::<Kind>(std::str::from_utf8(&bytes).unwrap_or_default());
    let place = read.map(|read| format!(":{}:{}", read.kind.referenced.line(), read.kind.referenced.column()));
    format!("{}{}", file.display(), place.unwrap_or_default())
}

fn read(constructor: &Constructor, relative: &str) -> Result<Vec<Value>, ResolveError> {
    let bytes = read_file(&constructor.file_at(relative)?, LIMIT)?;
    text::yaml_documents(&bytes).map_err(|error| constructor.refuse(format!("{} {}", error.place_in(relative), error.message)))
}

fn rgd_files(component: &Value) -> impl Iterator<Item = &str> {
    resources(component).iter().filter(|resource| resource.get("name").and_then(Value::as_str) == Some("rgd")).filter_map(
        |resource| {
            let input = resource.get("input")?;
            input.get("path")?.as_str()
        },
    )
}

fn has(component: &Value, name: &str) -> bool {
    resources(component).iter().any(|resource| resource.get("name").and_then(Value::as_str) == Some(name))
}

fn resources(component: &Value) -> &[Value] {
    component.get("resources").and_then(Value::as_array).map_or(&[], Vec::as_slice)
}

fn list_mut<'a>(component: &'a mut Value, key: &str) -> Option<&'a mut Vec<Value>> {
    let entry = component.as_object_mut()?.entry(key).or_insert(Value::Null);
    if entry.is_null() {
        *entry = json!([]);
    }
    entry.as_array_mut()
}
