//! Namespace of a ControlPlane (seed 004, data/openmcp/namespace-vectors.json).

use shake::{
    Shake128,
    digest::{ExtendableOutput, Update, XofReader},
};
use thiserror::Error;

/// What the operator's code writes.
pub const DEFAULT_PREFIX: &str = "mcp--";
/// What the document says.
pub const ADR_PREFIX: &str = "mcp-";

/// Why there is no namespace.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Error)]
#[error("naming the namespace of a ControlPlane: its namespace and its name are both empty")]
pub struct NamelessError;

/// Prefix and the UUID version 8 made of the first 16 bytes of SHAKE128 over `namespace/name`.
pub fn control_plane_namespace(prefix: &str, namespace: &str, name: &str) -> Result<String, NamelessError> {
    if namespace.is_empty() && name.is_empty() {
        return Err(NamelessError);
    }
    let mut hasher = Shake128::default();
    hasher.update(namespace.as_bytes());
    hasher.update(b"/");
    hasher.update(name.as_bytes());
    let mut bytes = [0; 16];
    hasher.finalize_xof().read(&mut bytes);
    Ok(format!("{prefix}{}", uuid::Uuid::new_v8(bytes).hyphenated()))
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::testing::recorded;

    #[test]
    fn show_03_namespaces() {
        let Some(path) = recorded("openmcp/namespace-vectors.json") else { return };
        let file: serde_json::Value = serde_json::from_str(&std::fs::read_to_string(path).unwrap()).unwrap();
        let vectors = file["vectors"].as_array().unwrap();
        for vector in vectors {
            let (namespace, name) = (vector["namespace"].as_str().unwrap(), vector["name"].as_str().unwrap());
            for (prefix, field) in [(DEFAULT_PREFIX, "mcpNamespace"), (ADR_PREFIX, "adrTextForm_single_dash")] {
                let ours = control_plane_namespace(prefix, namespace, name);
                assert_eq!(ours.ok().as_deref(), vector[field].as_str(), "{namespace}/{name}");
            }
            assert!(vector["error"].is_null() || vector["mcpNamespace"].is_null());
        }
        println!("SHOW 03 namespaces {}/{}", vectors.len(), vectors.len());
    }
}
