//! "did you mean".

/// A hint with the name that is nearest to what was written, if one is near.
pub(super) fn closest<'a>(written: &str, known: impl Iterator<Item = &'a str>) -> Option<String> {
    let near = known.filter(|name| *name != written).filter(|name| is_near(written, name));
    let best = near.min_by_key(|name| (distance(written, name), *name))?;
    Some(format!("did you mean '{best}'?"))
}

/// What other languages call functions, and what they are called here.
const ELSEWHERE: [(&str, &str); 22] = [
    ("b64dec", "base64.decode"),
    ("b64enc", "base64.encode"),
    ("default", "orValue"),
    ("fromJson", "json.unmarshal"),
    ("hasPrefix", "startsWith"),
    ("hasSuffix", "endsWith"),
    ("includes", "contains"),
    ("len", "size"),
    ("length", "size"),
    ("lower", "lowerAscii"),
    ("parseJSON", "json.unmarshal"),
    ("sha256sum", "hash.sha256"),
    ("sprintf", "format"),
    ("str", "string"),
    ("substr", "substring"),
    ("toInt", "int"),
    ("toJson", "json.marshal"),
    ("toLowerCase", "lowerAscii"),
    ("toString", "string"),
    ("toUpperCase", "upperAscii"),
    ("trimSpace", "trim"),
    ("upper", "upperAscii"),
];

/// The function that was probably meant, of those with these full names: one in the same library; where none is named, also one in
/// any library.
pub(in crate::cel) fn function<'a>(written: &str, names: impl Iterator<Item = &'a str>) -> Option<&'a str> {
    let last = |name: &'a str| name.rsplit_once('.').map_or(name, |(_, last)| last);
    let (library, word) = written.rsplit_once('.').map_or((None, written), |(library, word)| (Some(library), word));
    let elsewhere = ELSEWHERE.iter().find(|(other, _)| other.eq_ignore_ascii_case(word)).map(|(_, here)| *here);
    let is_meant = |name: &&'a str| match library {
        Some(library) => name.rsplit_once('.').is_some_and(|(of, last)| of == library && is_near(word, last)),
        None => elsewhere == Some(*name) || is_near(word, last(name)),
    };
    names.filter(is_meant).min_by_key(|name| (elsewhere != Some(*name), distance(word, last(name)), *name))
}

fn is_near(written: &str, name: &str) -> bool {
    distance(written, name) <= (written.chars().count() / 3).max(1)
}

/// How many letters must be added, removed, changed or swapped with their neighbour; upper and lower case are near.
fn distance(left: &str, right: &str) -> usize {
    let (left, right): (Vec<char>, Vec<char>) = (left.to_lowercase().chars().collect(), right.to_lowercase().chars().collect());
    if left.len().abs_diff(right.len()) > 8 {
        return usize::MAX;
    }
    let mut before = vec![0; right.len() + 1];
    let mut last: Vec<usize> = (0..=right.len()).collect();
    for (row, letter) in left.iter().enumerate() {
        let mut this = vec![row + 1];
        for (column, other) in right.iter().enumerate() {
            let change = last[column] + usize::from(letter != other);
            let mut best = change.min(last[column + 1] + 1).min(this[column] + 1);
            if row > 0 && column > 0 && left[row - 1] == *other && right[column - 1] == *letter {
                best = best.min(before[column - 1] + 1);
            }
            this.push(best);
        }
        before = std::mem::replace(&mut last, this);
    }
    last[right.len()]
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn finds_what_was_meant() {
        let known = ["name", "namespace", "replicas"];
        let closest = |written| closest(written, known.into_iter());
        assert_eq!(closest("nam").as_deref(), Some("did you mean 'name'?"));
        assert_eq!(closest("replcias").as_deref(), Some("did you mean 'replicas'?"));
        assert_eq!(closest("Name").as_deref(), Some("did you mean 'name'?"));
        assert_eq!(closest("image"), None);
    }
}
