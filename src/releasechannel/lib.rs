//! Release channels: everything of OCM that a consumer needs.
//!
//! The way through this room: a [`SourceRef`] says where, [`resolve`] opens a [`ComponentRepository`] there, follows component
//! references and gives a [`Channel`] with its release lock. Every byte that comes in is hashed before anybody uses it, and
//! everything from outside is bounded by [`Limits`]. This room knows nothing of Kubernetes.
#![cfg_attr(test, allow(clippy::unwrap_used))]

pub mod access;
mod artifacts;
mod assembly;
pub mod bundle;
mod cache;
mod channel;
mod circle;
mod closure;
mod config;
mod constructor;
#[cfg(test)]
mod corpus;
pub mod ctf;
pub mod descriptor;
mod difference;
mod digest;
mod error;
mod fetch;
mod image;
pub mod localization;
mod lock_file;
mod nested;
pub mod normalise;
mod open;
mod options;
mod policy;
pub mod program;
mod registry;
pub mod repository;
mod resolve;
mod selection;
pub mod serve;
pub mod signature;
mod source;
mod tarball;
#[cfg(test)]
mod testing;
mod text;
#[cfg(test)]
mod upstream;
mod verify;
pub mod versions;

pub use artifacts::{Artifact, PullSecret, artifacts};
pub use cache::RunMemory;
pub use channel::{Channel, ComponentText, RgdDocument};
pub use constructor::pack;
pub use ctf::{Contents, Format};
pub use descriptor::Descriptor;
pub use difference::{Change, Difference, difference};
pub use digest::Digest;
pub use error::{ErrorKind, RepositoryError, ResolveError, first_lines};
pub use fetch::read_resource;
pub use image::ImageReference;
pub use lock_file::{lock_file, the_lock_file};
pub use options::{CacheFolder, Credential, Limits, Options, Verify};
pub use policy::with_platform;
pub use registry::{PushRules, Pushed, Registries, push, push_by};
pub use repository::{BlobStream, ComponentRepository, ComponentVersion, FoundDescriptor};
pub use resolve::{find_descriptor, inspect, platform_file, repository_from_spec, resolve};
pub use selection::Selection;
pub use source::{RepositoryRef, SourceRef};
pub use text::TextError;
pub use verify::{CheckedSignature, Verification};
