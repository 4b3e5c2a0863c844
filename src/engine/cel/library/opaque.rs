//! Values that only functions know.

use std::{any::Any, fmt::Debug};

use cel::common::{
    types::Type,
    value::{StaticVal, Val},
};

/// A kind of value with a type of its own.
pub(crate) trait Kind: Clone + Debug + PartialEq + Send + Sync + 'static {
    /// Its type in the interpreter.
    fn runtime_type() -> &'static Type;
}

/// Makes a kind of value one of the interpreter's.
#[derive(Clone, Debug)]
pub(crate) struct Opaque<T>(pub(crate) T);

impl<T: Kind> Val for Opaque<T> {
    fn get_type(&self) -> &Type {
        T::runtime_type()
    }

    fn cel_type() -> &'static Type {
        T::runtime_type()
    }

    fn equals(&self, other: &dyn Val) -> bool {
        other.downcast_ref::<Self>().is_some_and(|other| self.0 == other.0)
    }

    fn clone_as_boxed<'v>(&self) -> Box<dyn Val + 'v> {
        Box::new(self.clone())
    }

    fn as_any(&self) -> Option<&dyn Any> {
        Some(self)
    }
}

impl<T: Kind> StaticVal for Opaque<T> {}

macro_rules! runtime_types {
    ($($name:ident = $text:literal;)*) => {
        $(pub(crate) static $name: Type = Type::new_unspecified_type($text);)*

        /// All types of ours by name.
        pub(crate) fn types() -> Vec<(&'static str, &'static Type)> {
            vec![$(($text, &$name)),*]
        }
    };
}

runtime_types! {
    QUANTITY = "kubernetes.Quantity";
    URL = "kubernetes.URL";
    SEMVER = "kubernetes.Semver";
    IP = "net.IP";
    CIDR = "net.CIDR";
    OMIT = "kro.omit";
    BROKEN = "broken";
}

/// `omit()`: the field is to be left out.
pub(crate) type Omit = Opaque<OmitMark>;

/// The only value of its kind.
#[derive(Clone, Debug, PartialEq)]
pub(crate) struct OmitMark;

impl Kind for OmitMark {
    fn runtime_type() -> &'static Type {
        &OMIT
    }
}

/// Data that does not fit its schema, with what is wrong: every function refuses it.
#[derive(Clone, Debug)]
pub(crate) struct Broken(pub(crate) String);

impl Val for Broken {
    fn get_type(&self) -> &Type {
        &BROKEN
    }

    fn cel_type() -> &'static Type {
        &BROKEN
    }

    fn clone_as_boxed<'v>(&self) -> Box<dyn Val + 'v> {
        Box::new(self.clone())
    }

    fn as_any(&self) -> Option<&dyn Any> {
        Some(self)
    }
}

impl StaticVal for Broken {}
