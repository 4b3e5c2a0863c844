//! Keys of signatures that a Platform names in Secrets of its cluster (contracts 20).

use std::{collections::BTreeMap, path::Path};

use base64::{Engine, engine::general_purpose::STANDARD};
use plinth_api::{ClusterKey, GroupVersionKind, Object, ObjectKey, platform::NAMESPACE};
use plinth_engine::ports::Reader;
use plinth_releasechannel::platform_file;
use serde_json::Value;

use super::host::Host;
use crate::{exit::Failure, load::refusal, verbs::unreadable};

/// The keys, as PEM text by signature name. As with the OCM controllers a Secret has a key under the name of its signature. Nothing is read
/// where SOURCE is no Platform file or names no Secret.
pub(crate) async fn keys(host: &Host, source: &str) -> Result<BTreeMap<String, String>, Failure> {
    let platform = platform_file(Path::new(source)).map_err(|error| refusal(&error))?;
    let mut keys = BTreeMap::new();
    for entry in platform.and_then(|platform| platform.verify).into_iter().flat_map(|verify| verify.keys) {
        let text = |pointer: &str| entry.pointer(pointer).and_then(Value::as_str);
        let (Some(signature), Some(name)) = (text("/signature"), text("/secretRef/name")) else { continue };
        let key = ObjectKey {
            cluster: ClusterKey::host(),
            gvk: GroupVersionKind::new("", "v1", "Secret"),
            namespace: Some(text("/secretRef/namespace").unwrap_or(NAMESPACE).to_owned()),
            name: name.to_owned(),
        };
        let found = host.0.get(&key).await.map_err(|error| unreadable(&error, &host.1))?;
        let pem = found.as_ref().and_then(|secret| pem_of(secret, signature));
        let pem = pem.ok_or_else(|| {
            let lacks = if found.is_some() { format!("has no readable key `{signature}`") } else { "is not there".to_owned() };
            Failure::refused(format!("{key}, which Platform.spec.verify names for the signature {signature}, {lacks}"))
        })?;
        keys.insert(signature.to_owned(), pem);
    }
    Ok(keys)
}

fn pem_of(secret: &Object, signature: &str) -> Option<String> {
    let encoded = secret.at(&["data", signature]).and_then(Value::as_str)?;
    String::from_utf8(STANDARD.decode(encoded).ok()?).ok()
}

#[cfg(test)]
mod tests {
    use serde_json::json;

    use super::*;

    #[test]
    fn a_secret_has_the_key_under_the_signatures_name() {
        let secret = Object::from_value(json!({"kind": "Secret", "data": {"acme-sig": "UEVN", "odd": "?"}})).unwrap();
        assert_eq!(pem_of(&secret, "acme-sig").as_deref(), Some("PEM"));
        assert_eq!(pem_of(&secret, "odd"), None);
        assert_eq!(pem_of(&secret, "none"), None);
    }
}
