//! A ResourceGraphDefinition as it is handed to the compiler.

use std::collections::BTreeMap;

use plinth_api::rgd::RgdSpec;

use crate::Location;

/// A definition to compile.
#[derive(Clone, Debug, Default, PartialEq)]
pub struct Definition {
    /// `metadata.name` of the definition.
    pub name: String,
    /// `metadata.uid`, empty for a definition that is not on a server.
    pub uid: String,
    /// Group of the definition's own kind: `kro.run` or `krop.opendefense.cloud`.
    pub group: String,
    /// What is defined.
    pub spec: RgdSpec,
    /// Where it came from, for lines and columns.
    pub source: Option<Source>,
}

/// The text a definition was read from.
#[derive(Clone, Debug, Default, PartialEq)]
pub struct Source {
    /// The whole text, so that an expression inside a block scalar can be located.
    pub text: String,
    /// Place of each value by its path, such as `spec.resources[2].template`.
    pub locations: BTreeMap<String, Location>,
}
