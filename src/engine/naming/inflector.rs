//! English plurals as kro makes them.

/// Plural of a lower-case kind, the `names.plural` of its CRD.
pub fn plural(kind: &str) -> String {
    format!("{}s", kind.to_lowercase())
}
