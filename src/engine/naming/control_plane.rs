//! Namespace of a ControlPlane (seed 004, data/openmcp/namespace-vectors.json).

use shake::{
    Shake128,
    digest::{ExtendableOutput, Update, XofReader},
};

/// What the operator's code writes.
pub const DEFAULT_PREFIX: &str = "mcp--";
/// What the document says.
pub const ADR_PREFIX: &str = "mcp-";

/// Prefix and the UUID version 8 made of the first 16 bytes of SHAKE128 over `namespace/name`.
pub fn control_plane_namespace(prefix: &str, namespace: &str, name: &str) -> String {
    let mut hasher = Shake128::default();
    hasher.update(namespace.as_bytes());
    hasher.update(b"/");
    hasher.update(name.as_bytes());
    let mut bytes = [0; 16];
    hasher.finalize_xof().read(&mut bytes);
    format!("{prefix}{}", uuid::Uuid::new_v8(bytes).hyphenated())
}
