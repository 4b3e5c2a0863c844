//! Expressions inside strings, and templates made of them (kro.md section 3).
//!
//! Invariant: a string is scanned once, here; everything else works with [`Text`] and [`Field`].

mod fill;
mod nearest;
mod scan;
mod text;
mod walk;

pub use fill::{get, path_text, remove, set};
pub use nearest::nearest;
pub use scan::{NESTED, Piece, scan};
pub use text::Text;
pub use walk::{Field, Walked, walk, walk_open};
