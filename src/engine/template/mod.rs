//! Expressions in strings: scanner, standalone and embedded forms, paths.
