//! The expression language: parse, check, evaluate, with kro's environment.
