//! The expression language: parse, check, evaluate, with kro's environment.
//!
//! An [`Expression`] is parsed once. [`check`] infers its type from the types of the variables in [`Scope`] and says what is
//! wrong, with the place; [`evaluate`] computes its value from an [`Activation`]. The grammar, the standard functions and the
//! interpreter come from the crate `cel` (docs/decisions/0003-cel.md says why); macros, bounds, the checker and the libraries
//! are ours.
//!
//! Invariants: no input makes any of the three panic or run without bound ([`MAX_LENGTH`], [`MAX_CHAIN`], [`Limits`]), and the
//! same input gives the same value: maps are walked in the order of their keys.

mod activation;
mod budget;
mod check;
mod conditions;
mod environment;
mod escape;
mod evaluate;
mod expression;
mod guard;
#[expect(clippy::needless_pass_by_value, reason = "the interpreter hands arguments over by value")]
mod library;
mod literal;
mod locate;
mod lower;
mod macros;
mod mask;
mod parsed;
mod reads;
mod references;
mod signature;
mod stack;
mod types;
mod unordered;
mod value;
mod versions;

pub use activation::Activation;
pub use budget::Limits;
pub use check::{CheckError, Scope, check};
pub use conditions::ConditionUse;
pub use environment::{Dialect, function_meant, is_function, is_type_name};
pub(crate) use escape::{RESERVED, unescape};
pub use evaluate::{ErrorKind, EvalError, Evaluated, evaluate, evaluate_into};
pub use expression::{Expression, SyntaxError};
pub use guard::{MAX_CHAIN, MAX_CODE, MAX_LENGTH};
pub(crate) use library::go_escaped;
pub use library::{NoPattern, re2};
pub use reads::Reads;
pub use references::{References, written};
pub(crate) use types::TYPE_PREFIX;
pub use types::{Structure, Type};
pub(crate) use value::encode_base64;
pub use versions::VersionCheck;

#[cfg(test)]
mod tests;
