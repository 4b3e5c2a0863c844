//! Values at paths: reading, writing, taking away.

use serde_json::Value;

use crate::{
    schema::Segment,
    yaml::{element, field},
};

/// A path as people read it (kro.md 3.3).
pub fn path_text(path: &[Segment]) -> String {
    path.iter().fold(String::new(), |text, segment| match segment {
        Segment::Field(name) => field(&text, name),
        Segment::Index(index) => element(&text, *index),
    })
}

/// The value at a path.
pub fn get<'a>(value: &'a Value, path: &[Segment]) -> Option<&'a Value> {
    path.iter().try_fold(value, |here, segment| match segment {
        Segment::Field(name) => here.get(name),
        Segment::Index(index) => here.get(index),
    })
}

/// Replaces the value at a path that exists; does nothing where it does not.
pub fn set(value: &mut Value, path: &[Segment], new: Value) {
    if let Some(place) = place(value, path) {
        *place = new;
    }
}

/// Takes away what is at the paths: fields vanish, list elements close up.
pub fn remove(value: &mut Value, mut paths: Vec<Vec<Segment>>) {
    // Backwards, so that an element that goes does not move those still to go.
    paths.sort();
    for path in paths.iter().rev() {
        let Some((last, parent)) = path.split_last() else { continue };
        match (last, place(value, parent)) {
            (Segment::Field(name), Some(Value::Object(map))) => {
                map.remove(name);
            }
            (Segment::Index(index), Some(Value::Array(list))) if *index < list.len() => {
                list.remove(*index);
            }
            _ => {}
        }
    }
}

fn place<'a>(value: &'a mut Value, path: &[Segment]) -> Option<&'a mut Value> {
    path.iter().try_fold(value, |here, segment| match segment {
        Segment::Field(name) => here.get_mut(name),
        Segment::Index(index) => here.get_mut(index),
    })
}

#[cfg(test)]
mod tests {
    use serde_json::json;

    use super::*;
    use crate::schema::segments;

    #[test]
    fn paths_are_written_as_they_are_read() {
        for path in ["spec.a[0].b", r#"metadata.labels["app.kubernetes.io/name"]"#, "[1][2]"] {
            assert_eq!(path_text(&segments(path).unwrap()), path);
        }
    }

    #[test]
    fn removing_closes_lists_up() {
        let mut value = json!({"a": [0, 1, 2, 3], "b": {"c": 1, "d": 2}});
        let paths = ["a[1]", "a[2]", "b.c", "x.y"].map(|path| segments(path).unwrap()).to_vec();
        remove(&mut value, paths);
        assert_eq!(value, json!({"a": [0, 3], "b": {"d": 2}}));
    }
}
