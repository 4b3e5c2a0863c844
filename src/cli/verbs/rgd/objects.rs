//! Objects that a flag names: CRDs, an instance, what was recorded of a cluster.
//!
//! They are what a verb works with, not what it judges: whatever is wrong with them is refused (exit 4), with the flag and the file.

use std::{
    collections::BTreeSet,
    path::{Path, PathBuf},
};

use plinth_api::Object;
use plinth_engine::yaml::{self, Document};
use serde_json::Value;

use crate::{exit::Failure, files};

/// A flag that names objects.
#[derive(Clone, Copy)]
pub(super) struct Flag {
    pub(super) name: &'static str,
    /// What it takes.
    pub(super) hint: &'static str,
}

pub(super) const SCHEMAS: Flag =
    Flag { name: "--schemas", hint: "it takes files and folders with CRDs, as kubectl get crd -o yaml prints them" };
pub(super) const INSTANCE: Flag =
    Flag { name: "--instance", hint: "it takes a file with one instance of the definition's kind, or - for standard input" };
pub(super) const OBSERVED: Flag =
    Flag { name: "--observed", hint: "it takes files and folders with objects, as kubectl get -o yaml prints them" };

impl Flag {
    /// What is wrong with what the flag names.
    pub(super) fn refuse(self, path: &Path, what: &str) -> Failure {
        Failure::refused(format!("{} {}: {what}", self.name, path.display())).hint(self.hint)
    }

    /// All objects of a file or folder; lists, as `kubectl get -o yaml` prints them, are their items.
    pub(super) fn objects(self, path: &Path) -> Result<Vec<Object>, Failure> {
        let mut objects = Vec::new();
        for file in self.files(path)? {
            let text = files::text_or_input(&file).map_err(|message| self.refuse(&file, &unreadable(&file, &message)))?;
            let documents = yaml::documents(&text).map_err(|finding| self.refuse(&file, &finding.to_string()))?;
            for document in documents.into_iter().filter(|document| !document.value.is_null()) {
                let items = document.value.get("items").and_then(Value::as_array).cloned();
                for item in items.unwrap_or_else(|| vec![document.value.clone()]) {
                    objects.push(Object::from_value(item).ok_or_else(|| self.refuse(&file, &no_object(&document)))?);
                }
            }
        }
        Ok(objects)
    }

    fn files(self, path: &Path) -> Result<Vec<PathBuf>, Failure> {
        files::expand(&[path.to_owned()]).map_err(|message| self.refuse(path, &unreadable(path, &message)))
    }
}

fn no_object(document: &Document) -> String {
    let place = document.locations.nearest("").map(|place| format!("line {}: ", place.line)).unwrap_or_default();
    format!("{place}it is no object")
}

/// Why a file or folder was not read, where its name is said already.
pub(super) fn unreadable(path: &Path, message: &str) -> String {
    let message = message.strip_prefix(&format!("read {}: ", path.display())).unwrap_or(message);
    format!("cannot be read: {message}")
}

/// What a file holds in the place of what is looked for.
pub(super) fn held(kinds: &BTreeSet<String>) -> String {
    const MOST: usize = 5;
    let more = if kinds.len() > MOST { ", …" } else { "" };
    let shown: Vec<&str> = kinds.iter().take(MOST).map(String::as_str).collect();
    if shown.is_empty() { "there is no object in it".to_owned() } else { format!("it holds {}{more}", shown.join(", ")) }
}
