//! From a definition to an immutable graph: Active, Deferred or Invalid.
