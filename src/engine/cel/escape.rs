//! Names of fields as Kubernetes lets expressions write them.

/// Words that CEL keeps for itself: no names of variables, and as names of fields written with an escape.
pub(crate) const RESERVED: [&str; 21] = [
    "true",
    "false",
    "null",
    "in",
    "as",
    "break",
    "const",
    "continue",
    "else",
    "for",
    "function",
    "if",
    "import",
    "let",
    "loop",
    "package",
    "namespace",
    "return",
    "var",
    "void",
    "while",
];

/// A field's name as Kubernetes lets expressions write it: `my-field` is `my__dash__field`.
///
/// `namespace` and the like may be written plainly too, since the grammar takes them after a dot, so they stay.
pub(super) fn escape(name: &str) -> String {
    if matches!(name, "true" | "false" | "null" | "in") {
        return format!("__{name}__");
    }
    name.replace("__", "__underscores__").replace('.', "__dot__").replace('-', "__dash__").replace('/', "__slash__")
}

/// Whether a name carries an escape.
pub(super) fn has_escape(name: &str) -> bool {
    name.contains("__") && unescape(name) != name
}

/// The inverse of [`escape`].
pub(crate) fn unescape(name: &str) -> String {
    let word = name.strip_prefix("__").and_then(|rest| rest.strip_suffix("__"));
    if let Some(word) = word.filter(|word| RESERVED.contains(word)) {
        return word.to_owned();
    }
    let mut plain = String::with_capacity(name.len());
    let mut rest = name;
    while let Some(at) = rest.find("__") {
        plain.push_str(&rest[..at]);
        let escapes = [("__underscores__", "__"), ("__dot__", "."), ("__dash__", "-"), ("__slash__", "/")];
        let (escape, meaning) = escapes.into_iter().find(|(escape, _)| rest[at..].starts_with(escape)).unwrap_or(("__", "__"));
        plain.push_str(meaning);
        rest = &rest[at + escape.len()..];
    }
    plain + rest
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn escapes_and_back() {
        for (name, escaped) in [
            ("plain", "plain"),
            ("my-field", "my__dash__field"),
            ("a.b/c", "a__dot__b__slash__c"),
            ("a__b", "a__underscores__b"),
            ("in", "__in__"),
            ("é", "é"),
        ] {
            assert_eq!(escape(name), escaped);
            assert_eq!(unescape(escaped), name);
        }
        assert_eq!(unescape("__namespace__"), "namespace");
        assert!(!has_escape("a__b"), "no escape, so a literal name");
        assert!(has_escape("a__dot__b"));
    }
}
