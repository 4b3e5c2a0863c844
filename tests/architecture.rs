//! Holds `cargo metadata` against the table in ARCHITECTURE.md.
