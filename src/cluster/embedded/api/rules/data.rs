//! Contents of ConfigMaps and Secrets.

use base64::{Engine, engine::general_purpose::STANDARD};
use plinth_api::Object;
use serde_json::{Map, Value};

use super::fault;
use crate::embedded::api::problem::FieldFault;

/// Largest content of one object.
const MAX_CONTENT: usize = 1 << 20;
const KEY: &str = "a valid config key must consist of alphanumeric characters, '-', '_' or '.' (e.g. 'key.name',  or 'KEY_NAME',  or 'key-name', regex used for validation is '[-._a-zA-Z0-9]+')";

fn fields<'a>(object: &'a Object, name: &str) -> impl Iterator<Item = (&'a String, &'a Value)> {
    object.0.get(name).and_then(Value::as_object).into_iter().flat_map(Map::iter)
}

/// What is wrong with a ConfigMap's content.
pub(super) fn config_map(object: &Object) -> Vec<FieldFault> {
    let mut faults = keys(object, "data");
    faults.extend(keys(object, "binaryData"));
    let binary = object.0.get("binaryData");
    for (key, _) in fields(object, "data").filter(|(key, _)| binary.is_some_and(|binary| binary.get(key).is_some())) {
        let message = format!("Invalid value: {key:?}: duplicate of key present in binaryData");
        faults.push(fault("FieldValueInvalid", format!("data[{key}]"), message));
    }
    let size = text_size(object) + bytes_size(object, "binaryData");
    faults.extend(too_large(size, "[]"));
    faults
}

/// What is wrong with a Secret's content.
pub(super) fn secret(object: &Object) -> Vec<FieldFault> {
    let mut faults = keys(object, "data");
    faults.extend(too_large(bytes_size(object, "data"), "data"));
    let kind = object.0.get("type").and_then(Value::as_str).unwrap_or_default();
    let data = object.0.get("data").and_then(Value::as_object);
    let has = |key: &str| data.is_some_and(|data| data.contains_key(key));
    let needs: &[&str] = match kind {
        "kubernetes.io/tls" => &["tls.crt", "tls.key"],
        "kubernetes.io/dockerconfigjson" => &[".dockerconfigjson"],
        "kubernetes.io/dockercfg" => &[".dockercfg"],
        "kubernetes.io/ssh-auth" => &["ssh-privatekey"],
        "kubernetes.io/basic-auth" if !has("username") && !has("password") => &["username", "password"],
        _ => &[],
    };
    let missing = needs.iter().filter(|key| !has(key));
    faults.extend(missing.map(|key| fault("FieldValueRequired", format!("data[{key}]"), "Required value")));
    if kind == "kubernetes.io/dockerconfigjson" {
        faults.extend(data.and_then(|data| no_configuration(".dockerconfigjson", data.get(".dockerconfigjson")?)));
    } else if kind == "kubernetes.io/dockercfg" {
        faults.extend(data.and_then(|data| no_configuration(".dockercfg", data.get(".dockercfg")?)));
    }
    let account = "kubernetes.io/service-account.name";
    if kind == "kubernetes.io/service-account-token" && object.at(&["metadata", "annotations", account]).is_none() {
        faults.push(fault("FieldValueRequired", format!("metadata.annotations[{account}]"), "Required value"));
    }
    faults
}

/// A configuration of Docker is a JSON object. What it says is a secret, and is not told.
fn no_configuration(key: &str, text: &Value) -> Option<FieldFault> {
    let bytes = STANDARD.decode(text.as_str()?).ok()?;
    let why = match serde_json::from_slice(&bytes) {
        Ok(Value::Object(_) | Value::Null) => return None,
        Ok(_) => "it is no JSON object".to_owned(),
        Err(error) => format!("it is no JSON at line {} column {}", error.line(), error.column()),
    };
    let message = format!("Invalid value: \"<secret contents redacted>\": {why}");
    Some(fault("FieldValueInvalid", format!("data[{key}]"), message))
}

fn keys(object: &Object, name: &str) -> Vec<FieldFault> {
    fields(object, name).filter_map(|(key, _)| key_fault(key).map(|why| wrong_key(name, key, &why))).collect()
}

fn wrong_key(name: &str, key: &str, why: &str) -> FieldFault {
    fault("FieldValueInvalid", format!("{name}[{key}]"), format!("Invalid value: {key:?}: {why}"))
}

fn key_fault(key: &str) -> Option<String> {
    let fits = |byte: u8| byte.is_ascii_alphanumeric() || b"-._".contains(&byte);
    match key {
        key if key.len() > 253 => Some("must be no more than 253 bytes".to_owned()),
        key if key.is_empty() || !key.bytes().all(fits) => Some(KEY.to_owned()),
        "." | ".." => Some(format!("must not be '{key}'")),
        key if key.starts_with("..") => Some("must not start with '..'".to_owned()),
        _ => None,
    }
}

fn text_size(object: &Object) -> usize {
    fields(object, "data").map(|(_, text)| text.as_str().map_or(0, str::len)).sum()
}

/// Three bytes of content for four of base64, less what fills up the end.
fn bytes_size(object: &Object, name: &str) -> usize {
    let size = |text: &str| (text.len() / 4 * 3).saturating_sub(text.bytes().rev().take_while(|byte| *byte == b'=').count());
    fields(object, name).map(|(_, text)| text.as_str().map_or(0, size)).sum()
}

fn too_large(size: usize, field: &str) -> Option<FieldFault> {
    let message = format!("Too long: may not be more than {MAX_CONTENT} bytes");
    (size > MAX_CONTENT).then(|| fault("FieldValueTooLong", field, message))
}

/// Where a value that is to be base64 is none: the first byte that does not fit.
pub(crate) fn undecodable(object: &Object, name: &str) -> Option<usize> {
    fields(object, name).find_map(|(_, text)| {
        let text = text.as_str().unwrap_or_default();
        match STANDARD.decode(text).err()? {
            base64::DecodeError::InvalidByte(at, _) | base64::DecodeError::InvalidLastSymbol(at, _) => Some(at),
            // Groups of four are read at once.
            base64::DecodeError::InvalidLength(_) | base64::DecodeError::InvalidPadding => Some(text.len() / 4 * 4),
        }
    })
}
