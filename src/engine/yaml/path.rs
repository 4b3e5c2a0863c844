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

/// The path around a path, `None` for the document itself.
pub(super) fn parent(path: &str) -> Option<&str> {
    if path.is_empty() {
        return None;
    }
    if path.ends_with("\"]") {
        return path.rfind("[\"").map(|at| &path[..at]);
    }
    Some(path.rfind(['.', '[']).map_or("", |at| &path[..at]))
}
