//! "Did you mean …": the candidate that a misspelt name is nearest to.

/// The nearest candidate, if it is near enough to be meant: a third of the name may differ, capitals count half.
pub fn nearest<'a>(name: &str, candidates: impl IntoIterator<Item = &'a str>) -> Option<&'a str> {
    let bound = (name.chars().count() * 2).div_ceil(3).max(2);
    candidates
        .into_iter()
        .filter(|candidate| *candidate != name && candidate.len().abs_diff(name.len()) <= bound)
        .map(|candidate| (distance(name, candidate), candidate))
        .filter(|(distance, _)| *distance <= bound)
        .min()
        .map(|(_, candidate)| candidate)
}

/// Edit distance in half steps, swaps of neighbours counted once.
fn distance(left: &str, right: &str) -> usize {
    let (left, right): (Vec<char>, Vec<char>) = (left.chars().collect(), right.chars().collect());
    let mut before: Vec<usize> = Vec::new();
    let mut last: Vec<usize> = (0..=right.len()).map(|column| column * 2).collect();
    for (row, a) in left.iter().enumerate() {
        let mut next = vec![(row + 1) * 2];
        for (column, b) in right.iter().enumerate() {
            let swapped = row > 0 && column > 0 && *a == right[column - 1] && left[row - 1] == *b;
            let change = last[column] + difference(*a, *b);
            let best = change.min(last[column + 1] + 2).min(next[column] + 2);
            next.push(if swapped { best.min(before[column - 1] + 2) } else { best });
        }
        before = std::mem::replace(&mut last, next);
    }
    last.last().copied().unwrap_or_default()
}

fn difference(left: char, right: char) -> usize {
    match (left == right, left.eq_ignore_ascii_case(&right)) {
        (true, _) => 0,
        (false, true) => 1,
        (false, false) => 2,
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn near_names_are_offered_and_far_ones_are_not() {
        let names = ["ocmrepo", "component", "resourceImage", "deployment"];
        for (name, expected) in [
            ("ocmrepp", Some("ocmrepo")),
            ("resourceimage", Some("resourceImage")),
            ("compoennt", Some("component")),
            ("nothing", None),
            ("deployment", None),
        ] {
            assert_eq!(nearest(name, names), expected, "{name}");
        }
    }
}
