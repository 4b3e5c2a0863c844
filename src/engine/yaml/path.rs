//! Field paths as text: dotted, `[i]` for elements, `["name"]` for names with a dot or a bracket, or none (kro.md 3.3).

/// The path of a field below `parent`.
pub fn field(parent: &str, name: &str) -> String {
    if name.is_empty() || name.contains(['.', '[', ']']) {
        format!("{parent}[\"{name}\"]")
    } else if parent.is_empty() {
        name.to_owned()
    } else {
        format!("{parent}.{name}")
    }
}

/// The path of an array's element.
pub fn element(parent: &str, index: usize) -> String {
    format!("{parent}[{index}]")
}

/// Whether `path` leads to what `outer` leads to, or to something in it.
pub(crate) fn is_inside(path: &str, outer: &str) -> bool {
    path.strip_prefix(outer).is_some_and(|rest| rest.is_empty() || rest.starts_with(['.', '[']))
}

/// A path inside what another path leads to.
pub(super) fn joined(outer: &str, inner: &str) -> String {
    if inner.is_empty() || inner.starts_with('[') { format!("{outer}{inner}") } else { format!("{outer}.{inner}") }
}
