//! "did you mean".

/// A hint with the name that is nearest to what was written, if one is near.
pub(super) fn closest<'a>(written: &str, known: impl Iterator<Item = &'a str>) -> Option<String> {
    let near = |name: &&str| distance(written, name) <= (written.chars().count() / 3).max(1);
    let best = known.filter(|name| *name != written).filter(near).min_by_key(|name| (distance(written, name), *name))?;
    Some(format!("did you mean '{best}'?"))
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
