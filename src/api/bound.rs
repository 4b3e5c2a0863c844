//! Which bound a YAML text passed, in words: the reader's own message is the text of its data structure.

use serde_saphyr::{Error, budget::BudgetBreach};

/// The words for an error that says that a bound was passed, and for those that advise on the reader's own options; nothing for every
/// other error.
pub fn words(error: &Error) -> Option<String> {
    let what = match error.without_snippet() {
        Error::Budget { breach, .. } => of(breach),
        // What went wrong in what an alias stands for.
        Error::AliasError { error, .. } => return words(error),
        Error::DuplicateMappingKey { key: Some(key), .. } => return Some(format!("the key {key} is given twice")),
        Error::DuplicateMappingKey { key: None, .. } => return Some("a key is given twice".to_owned()),
        Error::RecursiveReferencesRequireWeakTypes { .. } => {
            return Some("an alias (*) stands for what it is in itself".to_owned());
        }
        _ => return None,
    };
    Some(format!("{what}: a bound of what is read from outside was passed"))
}

fn of(breach: &BudgetBreach) -> &'static str {
    match breach {
        BudgetBreach::RecordedAnchorEvents { .. } | BudgetBreach::RecordedAnchorBytes { .. } => "too much text has anchors (&)",
        BudgetBreach::Aliases { .. } | BudgetBreach::AliasAnchorRatio { .. } => "there are too many aliases (*)",
        BudgetBreach::Anchors { .. } => "there are too many anchors (&)",
        BudgetBreach::MergeKeys { .. } => "there are too many merge keys (<<)",
        BudgetBreach::Depth { .. } | BudgetBreach::InclusionDepth { .. } => "it is nested too deeply",
        BudgetBreach::Documents { .. } => "there are too many documents",
        BudgetBreach::Nodes { .. } | BudgetBreach::Events { .. } => "there are too many values",
        BudgetBreach::ScalarBytes { .. } | BudgetBreach::InputBytes { .. } => "its text is too long",
        BudgetBreach::SequenceUnbalanced => "a list or mapping has no end",
        _ => "it is larger than what is read",
    }
}

#[cfg(test)]
mod tests {
    use serde_json::Value;

    use super::*;

    fn told(text: &str) -> Option<String> {
        let options = serde_saphyr::options! {
            budget: serde_saphyr::budget! {
                max_documents: 2, max_nodes: 50, max_events: 500, max_depth: 8, max_aliases: 4, max_anchors: 4,
                max_recorded_anchor_events: 12, max_total_scalar_bytes: 100,
            },
        };
        words(&serde_saphyr::from_multiple_with_options::<Value>(text, options).unwrap_err())
    }

    #[test]
    fn mistakes_are_told_without_the_options_of_the_reader() {
        assert_eq!(told("a: 1\na: 2").as_deref(), Some("the key a is given twice"));
        assert_eq!(told("a: &x [*x]").as_deref(), Some("an alias (*) stands for what it is in itself"));
    }

    #[test]
    fn every_bound_has_words_and_no_data_structure() {
        for (text, expected) in [
            ("a: &a [1, 2, 3, 4, 5, 6, 7, 8, 9, 10, 11, 12]\nb: *a", "too much text has anchors"),
            ("a: &a 1\nb: [*a, *a, *a, *a, *a, *a]", "too many aliases"),
            ("[&a 1, &b 2, &c 3, &d 4, &e 5]", "too many anchors"),
            (&format!("{}{}", "[".repeat(20), "]".repeat(20)), "nested too deeply"),
            ("1\n---\n2\n---\n3\n", "too many documents"),
            (&format!("[{}]", "1,".repeat(60)), "too many values"),
            (&"x".repeat(200), "text is too long"),
        ] {
            let words = told(text).unwrap_or_else(|| panic!("{text}: no bound was passed"));
            assert!(words.contains(expected) && !words.contains(['{', '}']), "{text}: {words}");
        }
        assert_eq!(told("a: [1"), None);
    }
}
