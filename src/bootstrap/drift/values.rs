//! Values by the paths that comparisons give: `spec.ports[0].name`, `metadata.labels["a.b/c"]`.

use serde_json::Value;

/// The value at a path.
pub(super) fn at<'a>(root: &'a Value, path: &str) -> Option<&'a Value> {
    let (mut here, mut rest) = (root, path);
    while !rest.is_empty() {
        if let Some(quoted) = rest.strip_prefix("[\"") {
            let (name, after) = quoted.split_once("\"]")?;
            (here, rest) = (here.get(name)?, after);
        } else if let Some(index) = rest.strip_prefix('[') {
            let (index, after) = index.split_once(']')?;
            (here, rest) = (here.get(index.parse::<usize>().ok()?)?, after);
        } else {
            let plain = rest.strip_prefix('.').unwrap_or(rest);
            let end = plain.find(['.', '[']).unwrap_or(plain.len());
            (here, rest) = (here.get(&plain[..end])?, &plain[end..]);
        }
    }
    Some(here)
}

#[cfg(test)]
mod tests {
    use serde_json::json;

    use super::*;

    #[test]
    fn every_form_of_a_path_is_found() {
        let value = json!({"a": {"b": [{"c": 1}], "d.e/f": 2}});
        for (path, expected) in [("a.b[0].c", Some(json!(1))), ("a[\"d.e/f\"]", Some(json!(2))), ("a.x", None), ("a.b[3]", None)]
        {
            assert_eq!(at(&value, path).cloned(), expected, "{path}");
        }
    }
}
