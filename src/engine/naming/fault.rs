//! What is wrong with names and labels, in the words of Kubernetes.

use super::dns::{is_made_of, is_subdomain};

const SUBDOMAIN: &str = "a lowercase RFC 1123 subdomain must consist of lower case alphanumeric characters, '-' or '.', and must start and end with an alphanumeric character (e.g. 'example.com', regex used for validation is '[a-z0-9]([-a-z0-9]*[a-z0-9])?(\\.[a-z0-9]([-a-z0-9]*[a-z0-9])?)*')";
const LABEL_VALUE: &str = "a valid label must be an empty string or consist of alphanumeric characters, '-', '_' or '.', and must start and end with an alphanumeric character (e.g. 'MyValue',  or 'my_value',  or '12345', regex used for validation is '(([A-Za-z0-9][-A-Za-z0-9_.]*)?[A-Za-z0-9])?')";
const NAME_PART: &str = "name part must consist of alphanumeric characters, '-', '_' or '.', and must start and end with an alphanumeric character (e.g. 'MyName',  or 'my.name',  or '123-abc', regex used for validation is '([A-Za-z0-9][-A-Za-z0-9_.]*)?[A-Za-z0-9]')";

const QUALIFIED: &str = "a qualified name must consist of alphanumeric characters, '-', '_' or '.', and must start and end with an alphanumeric character (e.g. 'MyName',  or 'my.name',  or '123-abc', regex used for validation is '([A-Za-z0-9][-A-Za-z0-9_.]*)?[A-Za-z0-9]') with an optional DNS subdomain prefix and '/' (e.g. 'example.com/MyName')";

/// What is wrong with most objects' names.
pub fn subdomain_fault(name: &str) -> Option<String> {
    const LONGEST: usize = 253;
    if name.len() > LONGEST {
        return Some(format!("must be no more than {LONGEST} characters"));
    }
    (!is_subdomain(name)).then(|| SUBDOMAIN.to_owned())
}

/// What is wrong with the key of a label or an annotation.
pub fn label_key_fault(key: &str) -> Option<String> {
    if key.matches('/').count() > 1 {
        return Some(QUALIFIED.to_owned());
    }
    let name = match key.split_once('/') {
        Some(("", _)) => return Some("prefix part must be non-empty".to_owned()),
        Some((prefix, name)) => match subdomain_fault(prefix) {
            Some(why) => return Some(format!("prefix part {why}")),
            None => name,
        },
        None => key,
    };
    if name.is_empty() {
        return Some("name part must be non-empty".to_owned());
    }
    if name.len() > 63 {
        return Some("name part must be no more than 63 bytes".to_owned());
    }
    (!qualified(name)).then(|| NAME_PART.to_owned())
}

/// What is wrong with the value of a label.
pub fn label_value_fault(value: &str) -> Option<&'static str> {
    if value.len() > 63 {
        return Some("must be no more than 63 bytes");
    }
    (!value.is_empty() && !qualified(value)).then_some(LABEL_VALUE)
}

/// The part of a label key after the slash, or a label value.
fn qualified(text: &str) -> bool {
    is_made_of(text, |byte| byte.is_ascii_alphanumeric(), b"-_.")
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn keys_and_values_have_the_forms_of_labels() {
        let long = "x".repeat(64);
        for (text, is_key, is_value) in [
            ("a", true, true),
            ("", false, true),
            ("a.b_C-1", true, true),
            ("example.org/a", true, false),
            ("Example.org/a", false, false),
            ("/a", false, false),
            ("example.org/", false, false),
            ("-a", false, false),
            ("a b", false, false),
            (&long, false, false),
            (&long[1..], true, true),
        ] {
            assert_eq!((label_key_fault(text).is_none(), label_value_fault(text).is_none()), (is_key, is_value), "{text:?}");
        }
        assert_eq!(subdomain_fault(&"a.".repeat(127)), Some("must be no more than 253 characters".to_owned()));
        assert!(subdomain_fault("A").is_some_and(|why| why.starts_with("a lowercase RFC 1123 subdomain")));
    }
}
