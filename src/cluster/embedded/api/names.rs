//! Names, labels and annotations in the words of Kubernetes.

use plinth_api::Object;
use plinth_engine::naming::{is_label, label_key_fault, label_value_fault, subdomain_fault};
use serde_json::Value;

use super::problem::FieldFault;

const LABEL: &str = "a lowercase RFC 1123 label must consist of lower case alphanumeric characters or '-', and must start and end with an alphanumeric character (e.g. 'my-name',  or '123-abc', regex used for validation is '[a-z0-9]([-a-z0-9]*[a-z0-9])?')";
const LABEL_1035: &str = "a DNS-1035 label must consist of lower case alphanumeric characters or '-', start with an alphabetic character, and end with an alphanumeric character (e.g. 'my-name',  or 'abc-123', regex used for validation is '[a-z]([-a-z0-9]*[a-z0-9])?')";
/// Sum of all annotations.
const MAX_ANNOTATIONS: usize = 256 << 10;

/// What a kind's names must be.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Rule {
    /// RFC 1123 subdomain.
    Subdomain,
    /// RFC 1123 label.
    Label,
    /// RFC 1035 label: Services.
    Label1035,
    /// One segment of a URL: RBAC.
    Segment,
    /// Anything: users and groups.
    Any,
}

impl Rule {
    /// The rule of a resource.
    pub fn of(group: &str, plural: &str) -> Self {
        match (group, plural) {
            ("", "namespaces") => Self::Label,
            ("", "services") => Self::Label1035,
            ("rbac.authorization.k8s.io", _) => Self::Segment,
            _ => Self::Subdomain,
        }
    }
}

/// What is wrong with the names in an object's metadata.
pub fn check(object: &Object, rule: Rule) -> Vec<FieldFault> {
    let mut faults = Vec::new();
    if object.name().is_empty() {
        faults.push(fault("FieldValueRequired", "metadata.name", "Required value: name or generateName is required"));
    } else if let Some(why) = name_fault(object.name(), rule) {
        faults.push(invalid("metadata.name", object.name(), &why));
    }
    for (key, value) in map(object, "labels") {
        faults.extend(label_key_fault(key).map(|why| invalid("metadata.labels", key, &why)));
        let value = value.as_str().unwrap_or_default();
        faults.extend(label_value_fault(value).map(|why| invalid("metadata.labels", value, why)));
    }
    let mut size = 0;
    for (key, value) in map(object, "annotations") {
        faults.extend(label_key_fault(&key.to_lowercase()).map(|why| invalid("metadata.annotations", key, &why)));
        size += key.len() + value.as_str().unwrap_or_default().len();
    }
    if size > MAX_ANNOTATIONS {
        let message = format!("Too long: may not be more than {MAX_ANNOTATIONS} bytes");
        faults.push(fault("FieldValueTooLong", "metadata.annotations", &message));
    }
    for (index, name) in object.finalizers().iter().enumerate() {
        faults.extend(label_key_fault(name).map(|why| invalid("metadata.finalizers", name, &why)));
        faults.extend(finalizer_fault(name, &format!("metadata.finalizers[{index}]")));
    }
    let owners = object.at(&["metadata", "ownerReferences"]).and_then(Value::as_array).map(Vec::as_slice).unwrap_or_default();
    faults.extend(owners.iter().flat_map(owner_faults));
    if owners.iter().filter(|owner| owner["controller"] == true).count() > 1 {
        let message = "Invalid value: Only one reference can have Controller set to true";
        faults.push(fault("FieldValueInvalid", "metadata.ownerReferences", message));
    }
    faults
}

/// An owner says its version, kind, name and UID, and is no event.
fn owner_faults(owner: &Value) -> Vec<FieldFault> {
    let text = |name: &str| owner[name].as_str().unwrap_or_default();
    let mut faults = Vec::new();
    let version = text("apiVersion");
    if version.rsplit('/').next().unwrap_or_default().is_empty() || version.split('/').count() > 2 {
        faults.push(invalid("metadata.ownerReferences.apiVersion", version, "version must not be empty"));
    }
    for name in ["kind", "name", "uid"].into_iter().filter(|name| text(name).is_empty()) {
        faults.push(invalid(&format!("metadata.ownerReferences.{name}"), "", "must not be empty"));
    }
    if text("kind") == "Event" && version == "v1" {
        let message = format!("Invalid value: {owner}: /v1, Kind=Event is disallowed from being an owner");
        faults.push(fault("FieldValueInvalid", "metadata.ownerReferences", &message));
    }
    faults
}

/// What is wrong with the name of a finalizer.
pub(super) fn finalizer_fault(name: &str, field: &str) -> Option<FieldFault> {
    let is_known = name.contains('/') || ["orphan", "foregroundDeletion", "kubernetes"].contains(&name);
    (!is_known).then(|| invalid(field, name, "name is neither a standard finalizer name nor is it fully qualified"))
}

fn map<'a>(object: &'a Object, field: &str) -> impl Iterator<Item = (&'a String, &'a Value)> {
    object.at(&["metadata", field]).and_then(Value::as_object).into_iter().flatten()
}

fn fault(reason: &'static str, field: &str, message: &str) -> FieldFault {
    FieldFault { reason, field: field.to_owned(), message: message.to_owned() }
}

fn invalid(field: &str, value: &str, why: &str) -> FieldFault {
    fault("FieldValueInvalid", field, &format!("Invalid value: {value:?}: {why}"))
}

/// What is wrong with a name.
pub fn name_fault(name: &str, rule: Rule) -> Option<String> {
    let (longest, holds, why) = match rule {
        Rule::Subdomain => return subdomain_fault(name),
        Rule::Label => (63, is_label(name), LABEL),
        Rule::Label1035 => (63, is_label(name) && name.as_bytes().first().is_some_and(u8::is_ascii_lowercase), LABEL_1035),
        Rule::Segment => return segment_fault(name),
        Rule::Any => return None,
    };
    if name.len() > longest {
        return Some(format!("must be no more than {longest} bytes"));
    }
    if rule == Rule::Label && name.contains('.') {
        return Some("must not contain dots".to_owned());
    }
    (!holds).then(|| why.to_owned())
}

/// What is wrong with a kind.
pub(super) fn kind_fault(kind: &str) -> Option<String> {
    let why = name_fault(&kind.to_lowercase(), Rule::Label1035)?;
    Some(format!("may have mixed case, but should otherwise match: {why}"))
}

fn segment_fault(name: &str) -> Option<String> {
    if [".", ".."].contains(&name) {
        return Some(format!("may not be '{name}'"));
    }
    ["/", "%"].iter().find(|part| name.contains(*part)).map(|part| format!("may not contain '{part}'"))
}
