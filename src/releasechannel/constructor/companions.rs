//! `instance.yaml` and `scenario.yaml` beside a `channel.yaml` become resources of the distribution (contracts 7).

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
    let file = constructor.folder.join(INSTANCE);
    if components.iter().any(|component| rgd_files(component).any(|file| read(constructor, file).is_err())) {
        return Ok(0);
    }
    Err(constructor.refuse(format!("no component has an RGD for the kind `{kind}` of {}", file.display())))
}

fn read(constructor: &Constructor, relative: &str) -> Result<Vec<Value>, ResolveError> {
    let bytes = read_file(&constructor.file_at(relative)?, LIMIT)?;
    text::yaml_documents(&bytes).map_err(|error| constructor.refuse(format!("{relative}: {error}")))
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
