//! Expressions inside strings, and templates made of them.
