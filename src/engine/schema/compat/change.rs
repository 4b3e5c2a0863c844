//! One difference, its name and its words.

/// What kind of difference it is. Names in [`ChangeKind::name`] are kro's as far as kro sees the change.
#[derive(Clone, Copy, Debug, PartialEq, Eq, PartialOrd, Ord, Hash)]
pub enum ChangeKind {
    /// A field is gone.
    PropertyRemoved,
    /// A field is new.
    PropertyAdded,
    /// A field must now be present.
    RequiredAdded,
    /// A field may now be absent.
    RequiredRemoved,
    /// A field that must be present is no longer filled in.
    RequiredDefaultRemoved,
    /// Values are of another type.
    TypeChanged,
    /// Text for people.
    DescriptionChanged,
    /// The value taken for an absent field.
    DefaultChanged,
    /// Text must now match.
    PatternAdded,
    /// Text must match something else.
    PatternChanged,
    /// Text need no longer match.
    PatternRemoved,
    /// A value is no longer allowed.
    EnumRestricted,
    /// A value is allowed too.
    EnumExpanded,
    /// Only listed values are allowed now.
    EnumAdded,
    /// All values are allowed now.
    EnumRemoved,
    /// A lower or upper bound is new.
    BoundAdded(Bound),
    /// A bound leaves less room.
    BoundTightened(Bound),
    /// A bound leaves more room.
    BoundRelaxed(Bound),
    /// A bound is gone.
    BoundRemoved(Bound),
    /// A CEL rule is new.
    ValidationAdded,
    /// A CEL rule is gone.
    ValidationRemoved,
    /// A CEL rule says the same in other words.
    ValidationReworded,
    /// How elements are told apart, or merged.
    ListTypeChanged,
    /// Unnamed fields are no longer allowed.
    AdditionalPropertiesRemoved,
    /// Unnamed fields are allowed now.
    AdditionalPropertiesAdded,
    /// Unknown fields are pruned now.
    PreserveUnknownRemoved,
    /// Unknown fields are kept now.
    PreserveUnknownAdded,
    /// Something that was open is described now; only in a status.
    Described,
    /// Text has another form.
    FormatChanged,
    /// `null` is no value any more.
    NullableRemoved,
    /// `null` is a value now.
    NullableAdded,
    /// Another keyword differs.
    ConstraintChanged,
    /// A whole version is gone.
    VersionRemoved,
    /// A whole version is new.
    VersionAdded,
    /// Objects move in or out of namespaces.
    ScopeChanged,
    /// Names, columns, labels: nothing that an object holds.
    PresentationChanged,
}

/// Which bound of a value.
#[derive(Clone, Copy, Debug, PartialEq, Eq, PartialOrd, Ord, Hash)]
pub enum Bound {
    /// Least number.
    Minimum,
    /// Greatest number.
    Maximum,
    /// Least length.
    MinLength,
    /// Greatest length.
    MaxLength,
    /// Least number of elements.
    MinItems,
    /// Greatest number of elements.
    MaxItems,
}

impl Bound {
    /// The keyword in a schema.
    pub fn keyword(self) -> &'static str {
        match self {
            Self::Minimum => "minimum",
            Self::Maximum => "maximum",
            Self::MinLength => "minLength",
            Self::MaxLength => "maxLength",
            Self::MinItems => "minItems",
            Self::MaxItems => "maxItems",
        }
    }

    pub(super) fn is_lower(self) -> bool {
        matches!(self, Self::Minimum | Self::MinLength | Self::MinItems)
    }

    /// The keyword as the first word of a sentence.
    fn word(self) -> String {
        let keyword = self.keyword();
        format!("{}{}", keyword[..1].to_uppercase(), &keyword[1..])
    }
}

/// One difference between two schemas.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Change {
    /// Where, as in `.properties.a.items.type`.
    pub path: String,
    /// What kind of difference.
    pub kind: ChangeKind,
    /// What was there, empty for nothing.
    pub old: String,
    /// What is there now, empty for nothing.
    pub new: String,
}

impl Change {
    /// The change in words: kro's, where kro has any that are true.
    pub fn summary(&self) -> String {
        use ChangeKind as Kind;
        let Self { path, old, new, .. } = self;
        let name = path.rsplit('.').next().unwrap_or_default();
        match self.kind {
            Kind::PropertyRemoved => format!("Property {name} was removed"),
            Kind::PropertyAdded if new == "required=true" => format!("Required property {name} was added without a default"),
            Kind::PropertyAdded => format!("Optional property {name} was added"),
            Kind::RequiredAdded => format!("Field {new} is newly required"),
            Kind::RequiredRemoved => format!("Field {old} is no longer required"),
            Kind::RequiredDefaultRemoved => format!("Default value removed from required field {old}"),
            Kind::TypeChanged => format!("Type changed from {old} to {new}"),
            Kind::DescriptionChanged => "Description was changed".to_owned(),
            Kind::DefaultChanged => format!("Default changed from {} to {}", or_none(old), or_none(new)),
            Kind::PatternAdded => format!("Validation pattern {new} was added"),
            Kind::PatternChanged => format!("Validation pattern changed from {old} to {new}"),
            Kind::PatternRemoved => format!("Validation pattern {old} was removed"),
            Kind::EnumRestricted => format!("Enum value {old} was removed"),
            Kind::EnumExpanded => format!("Enum value {new} was added"),
            Kind::EnumAdded => format!("Values were restricted to {new}"),
            Kind::EnumRemoved => format!("Values are no longer restricted to {old}"),
            Kind::BoundAdded(bound) => format!("{} constraint {new} was added", bound.word()),
            Kind::BoundTightened(bound) | Kind::BoundRelaxed(bound) => {
                let up = bound.is_lower() == matches!(self.kind, Kind::BoundTightened(_));
                format!("{} was {} from {old} to {new}", bound.word(), if up { "increased" } else { "decreased" })
            }
            Kind::BoundRemoved(bound) => format!("{} constraint {old} was removed", bound.word()),
            Kind::ValidationAdded => format!("Validation rule {new} was added"),
            Kind::ValidationRemoved => format!("Validation rule {old} was removed"),
            Kind::ValidationReworded => format!("Validation rule {new} says something else when it fails"),
            Kind::ListTypeChanged => format!("List type changed from {} to {}", or_none(old), or_none(new)),
            Kind::AdditionalPropertiesRemoved => "Fields of any name are no longer allowed".to_owned(),
            Kind::AdditionalPropertiesAdded => "Fields of any name are allowed".to_owned(),
            Kind::PreserveUnknownRemoved => "Unknown fields are no longer kept".to_owned(),
            Kind::PreserveUnknownAdded => "Unknown fields are kept".to_owned(),
            Kind::Described => "What was open is described".to_owned(),
            Kind::FormatChanged => format!("Format changed from {} to {}", or_none(old), or_none(new)),
            Kind::NullableRemoved => "null is no longer allowed".to_owned(),
            Kind::NullableAdded => "null is allowed".to_owned(),
            Kind::VersionRemoved => format!("Version {old} was removed"),
            Kind::VersionAdded => format!("Version {new} was added"),
            Kind::ScopeChanged => format!("Scope changed from {old} to {new}"),
            Kind::ConstraintChanged | Kind::PresentationChanged => format!("{name} was changed"),
        }
    }
}

fn or_none(text: &str) -> &str {
    if text.is_empty() { "none" } else { text }
}

/// The differences between two schemas.
#[derive(Clone, Debug, Default, PartialEq, Eq)]
pub struct Changes {
    /// Objects or writers that were right may now be wrong.
    pub breaking: Vec<Change>,
    /// Everything that was right stays right.
    pub compatible: Vec<Change>,
}

impl Changes {
    /// Whether there is no difference at all: no write is needed.
    pub fn is_empty(&self) -> bool {
        self.breaking.is_empty() && self.compatible.is_empty()
    }

    /// kro's one line: the first three breaking changes, and how many more there are.
    pub fn summary(&self) -> String {
        const SHOWN: usize = 3;
        if self.breaking.is_empty() {
            return "no breaking changes".to_owned();
        }
        let mut parts: Vec<String> = self.breaking.iter().take(SHOWN).map(Change::summary).collect();
        if self.breaking.len() > SHOWN {
            parts.push(format!("and {} more changes", self.breaking.len() - SHOWN));
        }
        parts.join("; ")
    }

    pub(super) fn append(&mut self, mut other: Changes) {
        self.breaking.append(&mut other.breaking);
        self.compatible.append(&mut other.compatible);
    }
}
