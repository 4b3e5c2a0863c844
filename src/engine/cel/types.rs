//! Types of expressions, and the type that a schema gives.

use std::{
    borrow::Cow,
    collections::BTreeMap,
    fmt,
    sync::{Arc, OnceLock},
};

use super::escape::{escape, unescape};
use crate::schema::{Additional, Schema};

/// How names of types that come from schemas begin.
pub(crate) const TYPE_PREFIX: &str = "__type_";

/// The type of an expression, of a variable, or of a field; prints as kro prints it.
#[derive(Clone, Debug, PartialEq, Eq)]
pub enum Type {
    /// Anything; known at evaluation only.
    Dyn,
    /// `null`.
    Null,
    /// `true`, `false`.
    Bool,
    /// 64-bit whole number.
    Int,
    /// 64-bit whole number without sign.
    Uint,
    /// 64-bit floating point number.
    Double,
    /// Text.
    String,
    /// Bytes.
    Bytes,
    /// Point in time.
    Timestamp,
    /// Length of time.
    Duration,
    /// Elements of one type.
    List(Box<Type>),
    /// Values of one type by keys of one type.
    Map(Box<Type>, Box<Type>),
    /// A value or none.
    Optional(Box<Type>),
    /// The type of a type: `type(1)`.
    Type(Box<Type>),
    /// Values that only functions know, by name: `kubernetes.Quantity`.
    Opaque(Cow<'static, str>),
    /// Named fields.
    Struct(Arc<Structure>),
    /// A parameter of a signature, or a type that is still to be found; never in a result.
    Var(u32),
}

/// Named fields with their types.
///
/// Types of fields are made when somebody asks for them: a Deployment has more than a thousand, an expression reads a few.
#[derive(Debug)]
pub struct Structure {
    /// Name of the type: its place, such as `__type_deployment.spec.template`.
    pub name: String,
    /// Whether other fields may exist; they are dynamic.
    pub open: bool,
    /// Schemas that the fields come from.
    described: BTreeMap<String, Arc<Schema>>,
    /// Whether it is a whole object, which has `apiVersion`, `kind` and `metadata`.
    embedded: bool,
    fields: OnceLock<BTreeMap<String, Type>>,
}

impl Structure {
    /// A type whose fields are known.
    pub fn new(name: impl Into<String>, fields: BTreeMap<String, Type>, open: bool) -> Self {
        let (described, embedded) = (BTreeMap::new(), false);
        Self { name: name.into(), open, described, embedded, fields: OnceLock::from(fields) }
    }

    fn of(schema: &Schema, name: &str) -> Self {
        let (described, embedded) = (schema.properties.clone(), schema.embedded_resource);
        Self { name: name.to_owned(), open: schema.is_open() || embedded, described, embedded, fields: OnceLock::new() }
    }

    /// Types of the fields by name as expressions write it (Kubernetes' escapes applied).
    pub fn fields(&self) -> &BTreeMap<String, Type> {
        self.fields.get_or_init(|| {
            let described = self.described.iter();
            let typed =
                described.filter_map(|(field, of)| Some((escape(field), of_schema(of, &format!("{}.{field}", self.name))?)));
            let mut fields: BTreeMap<_, _> = typed.collect();
            if self.embedded {
                for (field, of) in [("apiVersion", Type::String), ("kind", Type::String), ("metadata", Type::Dyn)] {
                    fields.entry(field.to_owned()).or_insert(of);
                }
            }
            fields
        })
    }
}

impl Structure {
    /// The schema that describes it. A schema that it was made of is used again: not every part of that is a type.
    fn to_schema(&self) -> Schema {
        let described = Schema {
            properties: self.described.clone(),
            embedded_resource: self.embedded,
            preserve_unknown_fields: self.open,
            ..Schema::of_type("object")
        };
        if !self.described.is_empty() {
            return described;
        }
        let fields = self.fields().iter().map(|(name, of)| (unescape(name), Arc::new(of.to_schema())));
        Schema { properties: fields.collect(), ..described }
    }
}

impl PartialEq for Structure {
    fn eq(&self, other: &Self) -> bool {
        self.name == other.name && self.open == other.open && self.fields() == other.fields()
    }
}

impl Eq for Structure {}

impl Type {
    /// The type of objects of this schema, for a variable; `name` is the variable's and goes into the names of types.
    ///
    /// Rules: kro.md section 5. A schema without type is dynamic here; as a field of an object it is left out, as kro does.
    pub fn of_schema(name: &str, schema: &Schema) -> Self {
        of_schema(schema, &format!("{TYPE_PREFIX}{name}")).unwrap_or(Self::Dyn)
    }

    /// The schema by which JSON is read as a value of this type (kro.md section 4, "Run-time values"): the way back from
    /// [`Type::of_schema`]. What JSON cannot hold is read as it is.
    pub fn to_schema(&self) -> Schema {
        let text = |format: &str| Schema { format: Some(format.to_owned()), ..Schema::of_type("string") };
        match self {
            Self::Bool => Schema::of_type("boolean"),
            Self::Int | Self::Uint => Schema::of_type("integer"),
            Self::Double => Schema::of_type("number"),
            Self::String => Schema::of_type("string"),
            Self::Bytes => text("byte"),
            Self::Timestamp => text("date-time"),
            Self::Duration => text("duration"),
            Self::List(element) => Schema::array(element.to_schema()),
            Self::Map(_, value) => Schema::map(value.to_schema()),
            Self::Struct(structure) => structure.to_schema(),
            Self::Dyn | Self::Null | Self::Optional(_) | Self::Type(_) | Self::Opaque(_) | Self::Var(_) => Schema::any(),
        }
    }

    /// A list of these.
    pub fn list(element: Self) -> Self {
        Self::List(Box::new(element))
    }

    /// A map from text to these.
    pub fn map(value: Self) -> Self {
        Self::Map(Box::new(Self::String), Box::new(value))
    }

    /// These or none.
    pub fn optional(value: Self) -> Self {
        Self::Optional(Box::new(value))
    }

    /// Whether kro takes this type for a condition (`includeWhen`, `readyWhen`). What is known at evaluation only is none.
    pub fn is_condition(&self) -> bool {
        match self {
            Self::Optional(value) => **value == Self::Bool,
            _ => *self == Self::Bool,
        }
    }

    /// Whether it is known at evaluation only, optional or not.
    pub fn is_dynamic(&self) -> bool {
        match self {
            Self::Optional(value) => **value == Self::Dyn,
            _ => *self == Self::Dyn,
        }
    }

    /// Whether kro has it for an object of which it knows no fields: quantities, URLs and versions, but not addresses.
    pub(crate) fn is_object(&self) -> bool {
        matches!(self, Self::Opaque(name) if name.starts_with("kubernetes."))
    }

    /// The element type of a list that `forEach` walks; `None` where it is no list.
    pub fn element(&self) -> Option<&Self> {
        match self {
            Self::List(element) => Some(element),
            Self::Dyn => Some(&Self::Dyn),
            _ => None,
        }
    }
}

fn of_schema(schema: &Schema, name: &str) -> Option<Type> {
    if schema.int_or_string {
        return Some(Type::Dyn);
    }
    match schema.kind.as_deref() {
        Some("string") => Some(of_format(schema.format.as_deref())),
        Some("integer") => Some(Type::Int),
        Some("number") => Some(Type::Double),
        Some("boolean") => Some(Type::Bool),
        Some("array") => {
            let items = schema.items.as_ref().and_then(|items| of_schema(items, &format!("{name}.@idx")));
            Some(Type::list(items.unwrap_or(Type::Dyn)))
        }
        Some("object") => Some(of_object(schema, name)),
        _ if schema.preserve_unknown_fields || !schema.one_of.is_empty() || !schema.any_of.is_empty() => Some(Type::Dyn),
        _ if !schema.properties.is_empty() => Some(of_object(schema, name)),
        _ => None,
    }
}

fn of_format(format: Option<&str>) -> Type {
    match format {
        Some("byte") => Type::Bytes,
        Some("duration") => Type::Duration,
        Some("date" | "date-time") => Type::Timestamp,
        _ => Type::String,
    }
}

fn of_object(schema: &Schema, name: &str) -> Type {
    match &schema.additional_properties {
        Some(Additional::Schema(values)) if schema.properties.is_empty() => {
            Type::map(of_schema(values, &format!("{name}.@elem")).unwrap_or(Type::Dyn))
        }
        Some(Additional::Allowed(true)) if schema.properties.is_empty() => Type::map(Type::Dyn),
        _ => Type::Struct(Arc::new(Structure::of(schema, name))),
    }
}

impl fmt::Display for Type {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        match self {
            Self::Dyn => f.write_str("dyn"),
            Self::Null => f.write_str("null"),
            Self::Bool => f.write_str("bool"),
            Self::Int => f.write_str("int"),
            Self::Uint => f.write_str("uint"),
            Self::Double => f.write_str("double"),
            Self::String => f.write_str("string"),
            Self::Bytes => f.write_str("bytes"),
            Self::Timestamp => f.write_str("google.protobuf.Timestamp"),
            Self::Duration => f.write_str("google.protobuf.Duration"),
            Self::List(element) => write!(f, "list({element})"),
            Self::Map(key, value) => write!(f, "map({key}, {value})"),
            Self::Optional(value) => write!(f, "optional_type({value})"),
            Self::Type(of) => write!(f, "type({of})"),
            Self::Opaque(name) => f.write_str(name),
            Self::Struct(structure) => f.write_str(&structure.name),
            Self::Var(id) => match char::from_u32(*id).filter(char::is_ascii_uppercase) {
                Some(letter) => write!(f, "<{letter}>"),
                None => f.write_str("dyn"),
            },
        }
    }
}
