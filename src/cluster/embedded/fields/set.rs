//! Sets of field paths, and `fieldsV1`, the form in which `managedFields` holds them.

use std::{
    collections::{BTreeMap, BTreeSet},
    fmt::Write,
};

use serde_json::{Map, Value};

/// Deepest path that is read from outside.
const MAX_DEPTH: usize = 100;

/// One step of a path, as `fieldsV1` writes it: `f:NAME`, `k:{KEYS}`, `v:VALUE` or `i:INDEX`.
#[derive(Clone, Debug, PartialEq, Eq, PartialOrd, Ord, Hash)]
pub struct Step(String);

impl Step {
    /// A field of an object.
    pub fn field(name: &str) -> Self {
        Self(format!("f:{name}"))
    }

    /// An element of a list with keys.
    pub fn key(keys: &BTreeMap<&str, &Value>) -> Self {
        let sorted: BTreeMap<&str, Value> = keys.iter().map(|(name, value)| (*name, sorted(value))).collect();
        Self(format!("k:{}", serde_json::to_string(&sorted).expect("JSON values are written as JSON")))
    }

    /// An element of a set.
    pub fn item(value: &Value) -> Self {
        Self(format!("v:{}", sorted(value)))
    }

    fn read(text: &str) -> Option<Self> {
        let (kind, rest) = text.split_once(':')?;
        match kind {
            "f" => Some(Self(text.to_owned())),
            "k" => {
                let keys: Value = serde_json::from_str(rest).ok()?;
                let keys = keys.as_object()?.iter().map(|(name, value)| (name.as_str(), value)).collect();
                Some(Self::key(&keys))
            }
            "v" => Some(Self::item(&serde_json::from_str(rest).ok()?)),
            "i" => rest.parse::<usize>().ok().map(|_| Self(text.to_owned())),
            _ => None,
        }
    }

    /// The name of a field; `None` for an element of a list.
    pub fn name(&self) -> Option<&str> {
        self.0.strip_prefix("f:")
    }

    /// As Kubernetes writes paths in messages: `.spec`, `[name="a"]`, `[="x"]`, `[3]`.
    fn describe(&self, text: &mut String) {
        let rest = &self.0[2..];
        let _ = match self.0.as_bytes()[0] {
            b'f' => write!(text, ".{rest}"),
            b'v' => write!(text, "[={rest}]"),
            b'i' => write!(text, "[{rest}]"),
            _ => {
                let keys: BTreeMap<String, Value> = serde_json::from_str(rest).unwrap_or_default();
                let keys: Vec<String> = keys.iter().map(|(name, value)| format!("{name}={value}")).collect();
                write!(text, "[{}]", keys.join(","))
            }
        };
    }
}

fn sorted(value: &Value) -> Value {
    match value {
        Value::Object(fields) => {
            let fields: BTreeMap<&String, Value> = fields.iter().map(|(name, value)| (name, sorted(value))).collect();
            fields.into_iter().map(|(name, value)| (name.clone(), value)).collect::<Map<_, _>>().into()
        }
        Value::Array(values) => values.iter().map(sorted).collect(),
        other => other.clone(),
    }
}

/// A path from the root of an object.
pub type FieldPath = Vec<Step>;

/// A path in the words of Kubernetes' messages.
pub fn describe(path: &[Step]) -> String {
    path.iter().fold(String::new(), |mut text, step| {
        step.describe(&mut text);
        text
    })
}

/// A set of paths. Invariant: no child is empty.
#[derive(Clone, Debug, Default, PartialEq, Eq)]
pub struct FieldSet {
    members: BTreeSet<Step>,
    children: BTreeMap<Step, FieldSet>,
}

impl FieldSet {
    /// Whether there is no path.
    pub fn is_empty(&self) -> bool {
        self.members.is_empty() && self.children.is_empty()
    }

    /// Adds a path; the empty path is no field.
    pub fn insert(&mut self, path: &[Step]) {
        match path {
            [] => {}
            [last] => drop(self.members.insert(last.clone())),
            [first, rest @ ..] => self.children.entry(first.clone()).or_default().insert(rest),
        }
    }

    /// Adds what is below a step.
    pub fn insert_below(&mut self, step: &Step, below: Self) {
        if !below.is_empty() {
            self.children.insert(step.clone(), below);
        }
    }

    /// Whether a step is a path of its own.
    pub fn has(&self, step: &Step) -> bool {
        self.members.contains(step)
    }

    /// What is below a step.
    pub fn below(&self, step: &Step) -> Option<&Self> {
        self.children.get(step)
    }

    /// Paths of either.
    #[must_use]
    pub fn union(&self, other: &Self) -> Self {
        let mut all = self.clone();
        all.members.extend(other.members.iter().cloned());
        for (step, below) in &other.children {
            let joined = all.children.get(step).map_or_else(|| below.clone(), |mine| mine.union(below));
            all.children.insert(step.clone(), joined);
        }
        all
    }

    /// Paths of both.
    #[must_use]
    pub fn intersection(&self, other: &Self) -> Self {
        let mut both = Self { members: self.members.intersection(&other.members).cloned().collect(), ..Self::default() };
        for (step, below) in &self.children {
            if let Some(theirs) = other.children.get(step) {
                both.insert_below(step, below.intersection(theirs));
            }
        }
        both
    }

    /// Paths that `other` does not have.
    #[must_use]
    pub fn difference(&self, other: &Self) -> Self {
        let mut rest = Self { members: self.members.difference(&other.members).cloned().collect(), ..Self::default() };
        for (step, below) in &self.children {
            let below = other.children.get(step).map_or_else(|| below.clone(), |theirs| below.difference(theirs));
            rest.insert_below(step, below);
        }
        rest
    }

    /// Takes a step and everything below it away.
    pub fn remove_all(&mut self, path: &[Step]) {
        match path {
            [] => {}
            [last] => {
                self.members.remove(last);
                self.children.remove(last);
            }
            [first, rest @ ..] => {
                if let Some(below) = self.children.get_mut(first) {
                    below.remove_all(rest);
                    if below.is_empty() {
                        self.children.remove(first);
                    }
                }
            }
        }
    }

    /// What is below each step that leads on.
    pub fn children(&self) -> impl Iterator<Item = (&Step, &Self)> {
        self.children.iter()
    }

    /// All paths, in order.
    pub fn paths(&self) -> Vec<FieldPath> {
        let mut found = Vec::new();
        self.walk(&mut Vec::new(), &mut found);
        found
    }

    fn walk(&self, path: &mut FieldPath, found: &mut Vec<FieldPath>) {
        let steps: BTreeSet<&Step> = self.members.iter().chain(self.children.keys()).collect();
        for step in steps {
            path.push(step.clone());
            if self.members.contains(step) {
                found.push(path.clone());
            }
            if let Some(below) = self.children.get(step) {
                below.walk(path, found);
            }
            path.pop();
        }
    }

    /// As `fieldsV1`.
    pub fn to_json(&self) -> Value {
        let mut fields = Map::new();
        for (step, below) in &self.children {
            fields.insert(step.0.clone(), below.to_json());
        }
        for step in &self.members {
            match fields.get_mut(&step.0) {
                Some(Value::Object(below)) => drop(below.insert(".".to_owned(), Value::Object(Map::new()))),
                _ => drop(fields.insert(step.0.clone(), Value::Object(Map::new()))),
            }
        }
        Value::Object(fields)
    }

    /// From `fieldsV1`; `None` where it is none.
    pub fn from_json(value: &Value) -> Option<Self> {
        Self::read(value, 0)
    }

    fn read(value: &Value, depth: usize) -> Option<Self> {
        let mut set = Self::default();
        for (name, below) in value.as_object().filter(|_| depth < MAX_DEPTH)? {
            if name == "." {
                continue;
            }
            let step = Step::read(name)?;
            let inner = Self::read(below, depth + 1)?;
            if inner.is_empty() || below.get(".").is_some() {
                set.members.insert(step.clone());
            }
            set.insert_below(&step, inner);
        }
        Some(set)
    }
}
