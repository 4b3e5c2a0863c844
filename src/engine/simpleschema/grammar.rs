//! The grammar of types (kro.md 2.1).

/// Deepest nesting of `[]` and `map[string]`.
const MAX_DEPTH: usize = 16;

/// Names that need no definition.
pub(super) const ATOMS: [&str; 5] = ["string", "integer", "boolean", "float", "object"];

/// A type as written.
#[derive(Clone, Debug, PartialEq, Eq)]
pub(super) enum Syntax<'a> {
    String,
    Integer,
    Boolean,
    Float,
    Object,
    List(Box<Syntax<'a>>),
    Map(Box<Syntax<'a>>),
    /// A custom type; any text is a name.
    Named(&'a str),
}

impl<'a> Syntax<'a> {
    /// Reads a type; the error is kro's text.
    pub(super) fn parse(text: &'a str) -> Result<Self, String> {
        Self::at_depth(text, 0)
    }

    fn at_depth(text: &'a str, depth: usize) -> Result<Self, String> {
        let text = text.trim();
        if depth > MAX_DEPTH {
            return Err(format!("type nesting too deep (max {MAX_DEPTH}): {text:?}"));
        }
        if let Some(element) = text.strip_prefix("[]") {
            let element = Some(element.trim()).filter(|element| !element.is_empty()).ok_or("empty slice element type")?;
            return Ok(Self::List(Box::new(Self::at_depth(element, depth + 1)?)));
        }
        if let Some((key, value)) = text.strip_prefix("map[").and_then(|rest| rest.split_once(']')) {
            if key != "string" {
                return Err("map key must be string".to_owned());
            }
            let value = Some(value.trim()).filter(|value| !value.is_empty()).ok_or("map value type is required")?;
            return Ok(Self::Map(Box::new(Self::at_depth(value, depth + 1)?)));
        }
        Ok(match text {
            "" => return Err("empty type".to_owned()),
            "string" => Self::String,
            "integer" => Self::Integer,
            "boolean" => Self::Boolean,
            "float" => Self::Float,
            "object" => Self::Object,
            name => Self::Named(name),
        })
    }

    /// The custom type it is made of, if any.
    pub(super) fn name(&self) -> Option<&'a str> {
        match self {
            Self::List(inner) | Self::Map(inner) => inner.name(),
            Self::Named(name) => Some(name),
            _ => None,
        }
    }
}

/// Splits a field's text into its type and its markers, at the first bar.
pub(super) fn split(text: &str) -> (&str, Option<&str>) {
    match text.split_once('|') {
        Some((syntax, markers)) => (syntax, Some(markers)),
        None => (text, None),
    }
}
