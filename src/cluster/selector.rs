//! Label selectors in Kubernetes' text form: `a=b,c!=d,e in (x,y),f notin (z),g,!h`.

use std::collections::BTreeSet;

use plinth_api::Object;
use thiserror::Error;

/// Longest text that is parsed.
const MAX_TEXT: usize = 16 << 10;

/// A parsed label selector: all requirements hold.
#[derive(Clone, Debug, Default, PartialEq, Eq)]
pub struct Selector(Vec<Requirement>);

#[derive(Clone, Debug, PartialEq, Eq)]
enum Requirement {
    Exists(String),
    Absent(String),
    In(String, BTreeSet<String>),
    NotIn(String, BTreeSet<String>),
    Above(String, i64),
    Below(String, i64),
}

/// Why a text is no label selector.
#[derive(Clone, Debug, PartialEq, Eq, Error)]
#[error("the label selector {text:?} cannot be understood at {part:?}")]
pub struct SelectorError {
    /// The whole text.
    pub text: String,
    /// The part that is wrong.
    pub part: String,
}

impl Selector {
    /// Parses; the empty text selects everything.
    pub fn parse(text: &str) -> Result<Self, SelectorError> {
        let error = |part: &str| SelectorError { text: text.chars().take(200).collect(), part: part.to_owned() };
        if text.len() > MAX_TEXT {
            return Err(error("its length"));
        }
        if text.trim().is_empty() {
            return Ok(Self::default());
        }
        let requirements = parts(text).into_iter().map(|part| requirement(part.trim()).ok_or_else(|| error(part)));
        requirements.collect::<Result<_, _>>().map(Self)
    }

    /// Selects what both select.
    #[must_use]
    pub fn and(mut self, other: &Self) -> Self {
        self.0.extend(other.0.iter().cloned());
        self
    }

    /// Whether it selects everything.
    pub fn is_empty(&self) -> bool {
        self.0.is_empty()
    }

    /// The keys with the values that are asked for.
    pub fn terms(&self) -> impl Iterator<Item = (&str, Vec<&str>)> {
        self.0.iter().map(|requirement| match requirement {
            Requirement::In(key, values) | Requirement::NotIn(key, values) => {
                (key.as_str(), values.iter().map(String::as_str).collect())
            }
            Requirement::Exists(key) | Requirement::Absent(key) | Requirement::Above(key, _) | Requirement::Below(key, _) => {
                (key.as_str(), Vec::new())
            }
        })
    }

    /// Whether an object is selected. Its labels are looked up where they are: most are asked of most objects.
    pub fn matches(&self, object: &Object) -> bool {
        self.0.iter().all(|requirement| requirement.matches(object))
    }
}

impl Requirement {
    /// A label that is absent satisfies `!=` and `notin`, as in Kubernetes.
    fn matches(&self, object: &Object) -> bool {
        let number = |key: &String| object.label(key).and_then(|value| value.parse::<i64>().ok());
        match self {
            Self::Above(key, least) => number(key).is_some_and(|number| number > *least),
            Self::Below(key, most) => number(key).is_some_and(|number| number < *most),
            Self::Exists(key) => object.label(key).is_some(),
            Self::Absent(key) => object.label(key).is_none(),
            Self::In(key, values) => object.label(key).is_some_and(|value| values.contains(value)),
            Self::NotIn(key, values) => object.label(key).is_none_or(|value| !values.contains(value)),
        }
    }
}

/// Splits at commas outside parentheses.
fn parts(text: &str) -> Vec<&str> {
    let (mut parts, mut start, mut depth) = (Vec::new(), 0, 0_usize);
    for (at, byte) in text.bytes().enumerate() {
        match byte {
            b'(' => depth += 1,
            b')' => depth = depth.saturating_sub(1),
            b',' if depth == 0 => {
                parts.push(&text[start..at]);
                start = at + 1;
            }
            _ => {}
        }
    }
    parts.push(&text[start..]);
    parts
}

fn requirement(part: &str) -> Option<Requirement> {
    if let Some(key) = part.strip_prefix('!') {
        return name(key).map(Requirement::Absent);
    }
    if let Some((key, value)) = part.split_once("!=") {
        return Some(Requirement::NotIn(name(key)?, one(value)?));
    }
    if let Some((key, value)) = part.split_once("==").or_else(|| part.split_once('=')) {
        return Some(Requirement::In(name(key)?, one(value)?));
    }
    if let Some((key, number)) = part.split_once('>') {
        return Some(Requirement::Above(name(key)?, number.trim().parse().ok()?));
    }
    if let Some((key, number)) = part.split_once('<') {
        return Some(Requirement::Below(name(key)?, number.trim().parse().ok()?));
    }
    let Some((key, rest)) = part.split_once(char::is_whitespace) else { return name(part).map(Requirement::Exists) };
    let (operator, set) = rest.trim().split_once('(')?;
    let values: Option<BTreeSet<String>> = set.strip_suffix(')')?.split(',').map(value).collect();
    match operator.trim() {
        "in" => Some(Requirement::In(name(key)?, values?)),
        "notin" => Some(Requirement::NotIn(name(key)?, values?)),
        _ => None,
    }
}

fn one(text: &str) -> Option<BTreeSet<String>> {
    Some(BTreeSet::from([value(text)?]))
}

fn value(text: &str) -> Option<String> {
    let text = text.trim();
    text.bytes().all(|byte| byte.is_ascii_alphanumeric() || b"-_.".contains(&byte)).then(|| text.to_owned())
}

fn name(text: &str) -> Option<String> {
    let text = text.trim();
    let valid = !text.is_empty() && text.bytes().all(|byte| byte.is_ascii_alphanumeric() || b"-_./".contains(&byte));
    valid.then(|| text.to_owned())
}

#[cfg(test)]
mod tests {
    use proptest::prelude::*;
    use serde_json::{Map, Value, json};

    use super::*;

    fn labelled(text: &str) -> Object {
        let pairs = text.split(',').filter_map(|pair| pair.split_once('='));
        let labels: Map<String, Value> = pairs.map(|(key, value)| (key.to_owned(), value.into())).collect();
        Object::from_value(json!({"metadata": {"labels": labels}})).unwrap()
    }

    #[test]
    fn selectors_match_as_in_kubernetes() {
        for (selector, matching, other) in [
            ("a=b", "a=b,c=d", "a=c"),
            ("a==b", "a=b", ""),
            ("a = b", "a=b", "a="),
            ("a!=b", "a=c", "a=b"),
            ("a!=b", "", "a=b"),
            ("a in (b,c)", "a=c", "a=d"),
            ("a in (b, c),x", "a=b,x=", "a=b"),
            ("a notin (b,c)", "a=d", "a=b"),
            ("a notin (b)", "", "a=b"),
            ("a", "a=", "b=a"),
            ("!a", "b=a", "a="),
            ("a=", "a=", "a=b"),
            ("a>1", "a=2", "a=1"),
            ("a < 3", "a=2", "a=x"),
            ("kro.run/x in (y),!z", "kro.run/x=y", "kro.run/x=y,z=1"),
        ] {
            let parsed = Selector::parse(selector).unwrap();
            assert!(parsed.matches(&labelled(matching)), "{selector} must match {matching}");
            assert!(!parsed.matches(&labelled(other)), "{selector} must not match {other}");
        }
        assert!(Selector::parse("").unwrap().matches(&Object::default()));
    }

    #[test]
    fn what_is_no_selector_is_refused() {
        for text in
            [",", "a,", "=b", "!", "a in b", "a in (b", "a like (b)", "a b", "a=b c", "a in (b c)", "a==b==c", "a>x", "<1"]
        {
            assert!(Selector::parse(text).is_err(), "{text}");
        }
    }

    proptest! {
        #[test]
        fn any_text_is_read_or_refused(text in "[a-c=!,() in]{0,40}") {
            let _ = Selector::parse(&text);
        }
    }
}
