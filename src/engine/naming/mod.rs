//! Names: plurals, ApplySets, label values, namespaces; and the keys that kro gives its objects.

mod applyset;
mod control_plane;
mod dns;
mod fault;
mod fnv;
mod inflector;
pub mod keys;
mod label;

pub use applyset::{applyset_id, inventory_hash};
pub use control_plane::{ADR_PREFIX, DEFAULT_PREFIX, NamelessError, control_plane_namespace};
pub use dns::{is_label, is_name_of_kind, is_subdomain};
pub use fault::{label_key_fault, label_value_fault, subdomain_fault};
pub(crate) use fnv::{fnv32a, fnv64a};
pub use inflector::{plural, resource_name};
pub use label::{label_value, platform_selector};
