//! Comparing whole CustomResourceDefinitions.

use plinth_api::Object;
use serde_json::Value;

use super::{
    change::{Change, ChangeKind, Changes},
    compare, compare_status,
};
use crate::schema::Schema;

/// Compares the CRD there is with the one wanted, in what we write; fields that the server or others add do not count.
///
/// A removed version is breaking, an added one is not. Schemas that cannot be read are compared as text.
pub fn compare_crds(old: &Object, new: &Object) -> Changes {
    let mut changes = Changes::default();
    let (scope, wanted) = (old.at(&["spec", "scope"]), new.at(&["spec", "scope"]));
    if scope != wanted {
        changes.breaking.push(change(".scope", ChangeKind::ScopeChanged, text(scope), text(wanted)));
    }
    let (versions, wanted) = (versions(old), versions(new));
    for (name, version) in &versions {
        match wanted.iter().find(|(other, _)| other == name) {
            Some((_, wanted)) => compare_versions(version, wanted, &mut changes),
            None => changes.breaking.push(change(".versions", ChangeKind::VersionRemoved, (*name).to_owned(), String::new())),
        }
    }
    for (name, _) in wanted.iter().filter(|(name, _)| versions.iter().all(|(other, _)| other != name)) {
        changes.compatible.push(change(".versions", ChangeKind::VersionAdded, String::new(), (*name).to_owned()));
    }
    if !holds(old.at(&["spec", "names"]), new.at(&["spec", "names"])) || names_removed(old, new) {
        changes.compatible.push(change(".names", ChangeKind::PresentationChanged, String::new(), String::new()));
    }
    for map in ["labels", "annotations"] {
        if !holds(old.at(&["metadata", map]), new.at(&["metadata", map])) {
            changes.compatible.push(change(&format!(".{map}"), ChangeKind::PresentationChanged, String::new(), String::new()));
        }
    }
    changes
}

fn compare_versions(old: &Value, new: &Value, changes: &mut Changes) {
    if old["additionalPrinterColumns"] != new["additionalPrinterColumns"] {
        changes.compatible.push(change(
            ".additionalPrinterColumns",
            ChangeKind::PresentationChanged,
            String::new(),
            String::new(),
        ));
    }
    let (old, new) = (&old["schema"]["openAPIV3Schema"], &new["schema"]["openAPIV3Schema"]);
    // Of most definitions nothing changes, and reading both is long.
    if old == new {
        return;
    }
    let read = |value: &Value| serde_json::from_value::<Schema>(value.clone()).ok();
    let (Some(mut old_schema), Some(mut new_schema)) = (read(old), read(new)) else {
        changes.breaking.push(change("", ChangeKind::ConstraintChanged, String::new(), String::new()));
        return;
    };
    let status = (old_schema.properties.remove("status"), new_schema.properties.remove("status"));
    changes.append(compare(&old_schema, &new_schema));
    let (old_status, new_status) = (status.0.unwrap_or_default(), status.1.unwrap_or_default());
    let mut status = compare_status(&old_status, &new_status);
    for change in status.breaking.iter_mut().chain(&mut status.compatible) {
        change.path.insert_str(0, ".properties.status");
    }
    changes.append(status);
}

fn versions(crd: &Object) -> Vec<(&str, &Value)> {
    let versions = crd.at(&["spec", "versions"]).and_then(Value::as_array).into_iter().flatten();
    versions.map(|version| (version["name"].as_str().unwrap_or_default(), version)).collect()
}

/// Short names and categories that are no longer wanted; the server writes no such lists of its own.
fn names_removed(old: &Object, new: &Object) -> bool {
    ["shortNames", "categories"].iter().any(|list| old.at(&["spec", "names", list]) != new.at(&["spec", "names", list]))
}

/// Whether everything that is wanted is there.
fn holds(there: Option<&Value>, wanted: Option<&Value>) -> bool {
    let Some(Value::Object(wanted)) = wanted else { return true };
    wanted.iter().all(|(key, value)| there.and_then(|there| there.get(key)) == Some(value))
}

fn text(value: Option<&Value>) -> String {
    value.and_then(Value::as_str).unwrap_or_default().to_owned()
}

fn change(path: &str, kind: ChangeKind, old: String, new: String) -> Change {
    Change { path: path.to_owned(), kind, old, new }
}
