//! Server-side apply as a pure module: who manages which field, and how an applied configuration joins a stored object.
//!
//! [`set`] is a set of field paths in the form of `fieldsV1`, [`typed`] walks values by their schema's list and map types,
//! [`managers`] keeps `metadata.managedFields`. The rules are those of
//! <https://kubernetes.io/docs/reference/using-api/server-side-apply/>.

pub mod managers;
pub mod set;
pub mod typed;

#[cfg(test)]
mod tests;
