//! Kubernetes' semantic versions.

use std::cmp::Ordering;

use cel::common::types::Type;
use semver::Version;

use super::{
    Entry,
    arguments::{Arguments, Outcome, fail, get, give, give_bool, give_int, text},
    opaque::{Kind, Opaque, SEMVER},
    ours,
};

pub(super) fn entries() -> Vec<Entry> {
    vec![
        ours("semver", &["semver(string) -> kubernetes.Semver"], semver),
        ours("isSemver", &["isSemver(string) -> bool"], is_semver),
        ours("major", &["kubernetes.Semver.major() -> int"], |arguments| part(&arguments, |version| version.major)),
        ours("minor", &["kubernetes.Semver.minor() -> int"], |arguments| part(&arguments, |version| version.minor)),
        ours("patch", &["kubernetes.Semver.patch() -> int"], |arguments| part(&arguments, |version| version.patch)),
        ours("compareTo", &["kubernetes.Semver.compareTo(kubernetes.Semver) -> int"], compare_to),
        ours("isLessThan", &["kubernetes.Semver.isLessThan(kubernetes.Semver) -> bool"], is_less_than),
        ours("isGreaterThan", &["kubernetes.Semver.isGreaterThan(kubernetes.Semver) -> bool"], is_greater_than),
    ]
}

/// A version; build metadata does not count when comparing.
#[derive(Clone, Debug)]
struct Semver(Version);

impl PartialEq for Semver {
    fn eq(&self, other: &Self) -> bool {
        self.0.cmp_precedence(&other.0) == Ordering::Equal
    }
}

impl Kind for Semver {
    fn runtime_type() -> &'static Type {
        &SEMVER
    }
}

fn semver<'b, 'v>(arguments: Arguments<'b, 'v>) -> Outcome<'b, 'v> {
    let text = text(&arguments, 0)?;
    match Version::parse(text) {
        Ok(version) => give(Opaque(Semver(version))),
        Err(_) if text.is_empty() => fail("Version string empty"),
        Err(_) if text.split('.').count() < 3 => fail("No Major.Minor.Patch elements found"),
        Err(error) => fail(error.to_string()),
    }
}

fn is_semver<'b, 'v>(arguments: Arguments<'b, 'v>) -> Outcome<'b, 'v> {
    give_bool(Version::parse(text(&arguments, 0)?).is_ok())
}

fn part<'b, 'v>(arguments: &Arguments<'b, 'v>, of: fn(&Version) -> u64) -> Outcome<'b, 'v> {
    give_int(i64::try_from(of(&get::<Opaque<Semver>>(arguments, 0)?.0.0)).unwrap_or(i64::MAX))
}

fn compared(arguments: &Arguments<'_, '_>) -> Result<Ordering, cel::ExecutionError> {
    let (left, right) = (get::<Opaque<Semver>>(arguments, 0)?, get::<Opaque<Semver>>(arguments, 1)?);
    Ok(left.0.0.cmp_precedence(&right.0.0))
}

fn compare_to<'b, 'v>(arguments: Arguments<'b, 'v>) -> Outcome<'b, 'v> {
    give_int(compared(&arguments)? as i64)
}

fn is_less_than<'b, 'v>(arguments: Arguments<'b, 'v>) -> Outcome<'b, 'v> {
    give_bool(compared(&arguments)? == Ordering::Less)
}

fn is_greater_than<'b, 'v>(arguments: Arguments<'b, 'v>) -> Outcome<'b, 'v> {
    give_bool(compared(&arguments)? == Ordering::Greater)
}
