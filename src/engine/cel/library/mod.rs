//! The functions of the language: a table of names, signatures and implementations for each library.
//!
//! Signatures are kro's (`data/kro/cel-functions.json`; a test compares them).

pub(super) mod arguments;
mod json;
mod kro_lists;
mod lists;
mod math;
mod md5;
mod merge;
mod net;
mod oci;
pub(super) mod opaque;
mod optional;
mod pattern;
mod quantity;
mod random;
pub(super) mod runtime;
mod semver;
mod sets;
mod standard;
mod strings;
mod url;
mod version;
mod woven;

use cel::common::functions::Function;

pub(crate) use json::escaped as go_escaped;
pub use pattern::{NoPattern, re2};
pub(super) use woven::register as woven;

/// A function with all its overloads that share an implementation.
pub(super) struct Entry {
    pub(super) name: &'static str,
    pub(super) signatures: &'static [&'static str],
    pub(super) run: Run,
}

/// What computes a function.
#[derive(Clone, Copy)]
pub(super) enum Run {
    /// The interpreter has it.
    Interpreter,
    /// Ours.
    Ours(Function),
    /// Ours, in place of the interpreter's, which differs from kro's or cannot be bounded.
    Instead(Function),
}

const fn theirs(name: &'static str, signatures: &'static [&'static str]) -> Entry {
    Entry { name, signatures, run: Run::Interpreter }
}

const fn ours(name: &'static str, signatures: &'static [&'static str], run: Function) -> Entry {
    Entry { name, signatures, run: Run::Ours(run) }
}

const fn instead(name: &'static str, signatures: &'static [&'static str], run: Function) -> Entry {
    Entry { name, signatures, run: Run::Instead(run) }
}

/// kro's environment.
pub(super) fn kro() -> Vec<Entry> {
    let mut entries = common();
    entries.extend(net::entries());
    entries.extend(quantity::entries());
    entries.extend(semver::entries());
    entries.extend(url::entries());
    entries.extend(lists::kubernetes());
    entries.extend(kro_lists::entries());
    entries.extend(json::entries());
    entries.extend(merge::entries());
    entries.extend(random::entries());
    entries.extend(runtime::entries());
    entries
}

/// The delivery controllers' environment.
pub(super) fn delivery() -> Vec<Entry> {
    let mut entries = common();
    entries.extend(math::entries());
    entries.extend(sets::entries());
    entries.extend(oci::entries());
    entries
}

/// The delivery controllers' environment for selectors and extracts of a Discovery.
pub(super) fn discovery() -> Vec<Entry> {
    let mut entries = delivery();
    entries.extend(version::entries());
    entries
}

fn common() -> Vec<Entry> {
    let mut entries = standard::entries();
    entries.extend(strings::entries());
    entries.extend(pattern::entries());
    entries.extend(lists::entries());
    entries.extend(optional::entries());
    entries
}
