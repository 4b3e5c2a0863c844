//! Names: plurals, ApplySets, label values, namespaces; and the keys that kro gives its objects.

mod applyset;
mod control_plane;
mod fnv;
mod inflector;
pub mod keys;
mod label;

pub use applyset::{applyset_id, inventory_hash};
pub use control_plane::{ADR_PREFIX, DEFAULT_PREFIX, NamelessError, control_plane_namespace};
pub(crate) use fnv::{fnv32a, fnv64a};
pub use inflector::{plural, resource_name};
pub use label::label_value;
