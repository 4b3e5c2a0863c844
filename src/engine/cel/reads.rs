//! Which parts of their variables expressions read.

use std::{borrow::Cow, collections::BTreeMap};

use serde_json::Value;

use super::{escape::unescape, expression::Expression};

/// What a set of expressions reads, by variable. What stands outside of it is nobody's to see, so that it need not be copied
/// and converted: of most objects that is nearly all, managed fields before the rest.
#[derive(Clone, Debug, Default, PartialEq, Eq)]
pub struct Reads(BTreeMap<String, Part>);

/// A part of a value.
#[derive(Clone, Debug, PartialEq, Eq)]
enum Part {
    /// All of it.
    Whole,
    /// Some of its fields.
    Fields(BTreeMap<String, Self>),
}

impl Reads {
    /// What these expressions read.
    pub fn of<'e>(expressions: impl IntoIterator<Item = &'e Expression>) -> Self {
        let mut root = Part::Fields(BTreeMap::new());
        for path in expressions.into_iter().flat_map(|expression| &expression.references().paths) {
            root.add(path);
        }
        match root {
            Part::Fields(variables) => Self(variables),
            Part::Whole => unreachable!("a path begins with a variable"),
        }
    }

    /// The part of a variable's value that is read; null where nothing is.
    pub fn project(&self, variable: &str, value: &Value) -> Value {
        self.0.get(variable).map_or(Value::Null, |part| part.project(value))
    }

    /// Whether anything of a variable is read.
    pub fn contains(&self, variable: &str) -> bool {
        self.0.contains_key(variable)
    }
}

impl Part {
    fn add(&mut self, path: &[String]) {
        let Self::Fields(fields) = self else { return };
        match path.split_first() {
            None => *self = Self::Whole,
            Some((first, rest)) => {
                fields.entry(plain(first).into_owned()).or_insert_with(|| Self::Fields(BTreeMap::new())).add(rest);
            }
        }
    }

    /// A list is kept whole: the segments below it are indexes.
    fn project(&self, value: &Value) -> Value {
        match (self, value) {
            (Self::Fields(read), Value::Object(fields)) => {
                let part = |name: &str| read.get(plain(name).as_ref());
                let kept = fields.iter().filter_map(|(name, value)| Some((name.clone(), part(name)?.project(value))));
                Value::Object(kept.collect())
            }
            _ => value.clone(),
        }
    }
}

/// A name without the escapes that it may be written with. A field may have such a name itself, so that both sides are compared so.
fn plain(name: &str) -> Cow<'_, str> {
    if name.contains("__") { Cow::Owned(unescape(name)) } else { Cow::Borrowed(name) }
}

#[cfg(test)]
mod tests {
    use serde_json::json;

    use super::*;

    fn reads(sources: &[&str]) -> Reads {
        let expressions: Vec<Expression> = sources.iter().map(|source| Expression::parse(source).unwrap()).collect();
        Reads::of(&expressions)
    }

    #[test]
    fn only_what_is_read_is_kept() {
        let object =
            json!({"metadata": {"name": "a", "managedFields": [{}]}, "spec": {"a": {"b": 1, "c": 2}, "d": [{"e": 1, "f": 2}]}});
        let cases: [(&[&str], Value); 9] = [
            (&["schema.metadata.name"], json!({"metadata": {"name": "a"}})),
            (&["schema.spec.a.b + schema.spec.a.b"], json!({"spec": {"a": {"b": 1}}})),
            (&["schema.spec.a.b", "size(schema.spec.a)"], json!({"spec": {"a": {"b": 1, "c": 2}}})),
            (&["size(schema.spec.a)", "schema.spec.a.b"], json!({"spec": {"a": {"b": 1, "c": 2}}})),
            (&["has(schema.spec.a)"], json!({"spec": {"a": {"b": 1, "c": 2}}})),
            (&["schema.spec.?a.?b.orValue(0)"], json!({"spec": {"a": {"b": 1}}})),
            (&["schema.spec.d[0].e", "schema.spec['a']['c']"], json!({"spec": {"a": {"c": 2}, "d": [{"e": 1, "f": 2}]}})),
            (&["schema.spec.d.map(schema, schema.e)", "schema.nothing.at.all"], json!({"spec": {"d": [{"e": 1, "f": 2}]}})),
            (&["cel.bind(all, schema, all.spec.a.b)"], object.clone()),
        ];
        for (sources, expected) in cases {
            assert_eq!(reads(sources).project("schema", &object), expected, "{sources:?}");
        }
    }

    #[test]
    fn names_with_escapes_are_kept_in_either_form() {
        let object = json!({"my-key": {"a.b": 1, "c": 2}, "in": 3, "x__dash__y": 4, "x-y": 5, "other": 6});
        for (source, expected) in [
            ("v.my__dash__key.a__dot__b", json!({"my-key": {"a.b": 1}})),
            ("v['my-key']['a.b']", json!({"my-key": {"a.b": 1}})),
            ("v.__in__", json!({"in": 3})),
            ("v['x__dash__y']", json!({"x__dash__y": 4, "x-y": 5})),
        ] {
            assert_eq!(reads(&[source]).project("v", &object), expected, "{source}");
        }
    }

    #[test]
    fn a_variable_that_nobody_reads_is_nothing() {
        let read = reads(&["schema.spec.name"]);
        assert_eq!(read.project("other", &json!({"a": 1})), Value::Null);
        assert!(read.contains("schema") && !read.contains("other"));
    }
}
