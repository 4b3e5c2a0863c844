//! Versions and constraints as the OCM tools read them (ocm.md section 12): loose semver, and the constraint grammar of
//! Masterminds/semver v3.5.0.

mod constraint;

use std::cmp::Ordering;

pub use constraint::{BadConstraint, Constraint};

/// A loosely read version: optional `v`, one to three numbers, prerelease, build metadata.
#[derive(Clone, Debug)]
pub struct Version {
    raw: String,
    numbers: [u64; 3],
    prerelease: String,
    build: String,
}

impl Version {
    /// Reads a version; `None` where the text is none (`latest`, `1.2.3.4`).
    pub fn parse(raw: &str) -> Option<Self> {
        let (core, build) = split_tail(raw, '+')?;
        let (core, prerelease) = split_tail(core, '-')?;
        let core = core.strip_prefix('v').unwrap_or(core);
        let mut numbers = [0; 3];
        let mut parts = core.split('.');
        for (index, part) in parts.by_ref().take(3).enumerate() {
            numbers[index] = number(part)?;
        }
        let is_whole = parts.next().is_none() && raw.len() <= 256;
        let has_good_tail = prerelease.split('.').all(is_prerelease_part) || prerelease.is_empty();
        let has_good_build = build.is_empty() || build.split('.').all(is_part);
        (is_whole && has_good_tail && has_good_build).then(|| Self {
            raw: raw.to_owned(),
            numbers,
            prerelease: prerelease.to_owned(),
            build: build.to_owned(),
        })
    }

    /// As it was spelled.
    pub fn raw(&self) -> &str {
        &self.raw
    }

    /// Major, minor, patch.
    pub fn numbers(&self) -> [u64; 3] {
        self.numbers
    }

    /// Prerelease without the dash; empty for a release.
    pub fn prerelease(&self) -> &str {
        &self.prerelease
    }

    /// All parts written out, without a leading `v`.
    pub fn canonical(&self) -> String {
        let [major, minor, patch] = self.numbers;
        let tail = |sign: char, text: &str| if text.is_empty() { String::new() } else { format!("{sign}{text}") };
        format!("{major}.{minor}.{patch}{}{}", tail('-', &self.prerelease), tail('+', &self.build))
    }

    /// Semver precedence; build metadata does not count.
    pub fn precedence(&self, other: &Self) -> Ordering {
        self.numbers.cmp(&other.numbers).then_with(|| compare_prereleases(&self.prerelease, &other.prerelease))
    }

    /// A total order: precedence, then spelling.
    pub fn total_order(&self, other: &Self) -> Ordering {
        self.precedence(other).then_with(|| self.raw.cmp(&other.raw))
    }
}

/// Puts versions in order, lowest first, and leaves out what is no version.
pub fn sorted<'a>(texts: impl IntoIterator<Item = &'a str>) -> Vec<Version> {
    let mut versions: Vec<Version> = texts.into_iter().filter_map(Version::parse).collect();
    versions.sort_by(Version::total_order);
    versions.dedup_by(|a, b| a.raw == b.raw);
    versions
}

/// The version that was asked for: the one spelled exactly so, else the highest that the constraint allows; without a wish the
/// highest release. `None` where nothing fits or the wish is no constraint.
pub fn pick<'a>(wanted: Option<&str>, there: impl IntoIterator<Item = &'a str> + Clone) -> Option<String> {
    let wanted = wanted.unwrap_or("*");
    if let Some(exact) = there.clone().into_iter().find(|version| *version == wanted) {
        return Some(exact.to_owned());
    }
    let constraint = Constraint::parse(wanted).ok()?;
    sorted(there).into_iter().rfind(|version| constraint.allows(version)).map(|version| version.raw)
}

/// Whether the wish can only mean one version, so that no list of versions is needed.
pub fn is_exact(wanted: &str) -> bool {
    Version::parse(wanted).is_some_and(|version| {
        let core = wanted.split(['-', '+']).next().unwrap_or_default();
        core.matches('.').count() == 2 && version.raw == wanted
    })
}

/// The tag of a version: `+` cannot be in a tag (ocm.md 3.1).
pub fn to_tag(version: &str) -> String {
    version.replace('+', ".build-")
}

/// The version of a tag: the last `.build-` was a `+`.
pub fn from_tag(tag: &str) -> String {
    match tag.rfind(".build-") {
        Some(at) => format!("{}+{}", &tag[..at], &tag[at + ".build-".len()..]),
        None => tag.to_owned(),
    }
}

/// Whether a version that was made of a tag may have been another one: a prerelease that has `.build-` in it.
pub fn is_ambiguous(version: &str) -> bool {
    let literal = to_tag(version);
    literal != version && Version::parse(&literal).is_some()
}

fn split_tail(text: &str, sign: char) -> Option<(&str, &str)> {
    match text.split_once(sign) {
        Some((_, "")) => None,
        Some(parts) => Some(parts),
        None => Some((text, "")),
    }
}

fn number(part: &str) -> Option<u64> {
    let is_number = !part.is_empty() && part.bytes().all(|byte| byte.is_ascii_digit());
    if is_number { part.parse().ok() } else { None }
}

fn is_part(part: &str) -> bool {
    !part.is_empty() && part.bytes().all(|byte| byte.is_ascii_alphanumeric() || byte == b'-')
}

fn is_prerelease_part(part: &str) -> bool {
    let is_padded_number = part.len() > 1 && part.starts_with('0') && part.bytes().all(|byte| byte.is_ascii_digit());
    is_part(part) && !is_padded_number
}

/// A release is higher than its prereleases; numbers are lower than words, longer is higher.
fn compare_prereleases(a: &str, b: &str) -> Ordering {
    match (a.is_empty(), b.is_empty()) {
        (true, true) => return Ordering::Equal,
        (true, false) => return Ordering::Greater,
        (false, true) => return Ordering::Less,
        (false, false) => {}
    }
    let (mut left, mut right) = (a.split('.'), b.split('.'));
    loop {
        let order = match (left.next(), right.next()) {
            (None, None) => return Ordering::Equal,
            (None, Some(_)) => Ordering::Less,
            (Some(_), None) => Ordering::Greater,
            (Some(a), Some(b)) => compare_parts(a, b),
        };
        if order.is_ne() {
            return order;
        }
    }
}

fn compare_parts(a: &str, b: &str) -> Ordering {
    match (number(a), number(b)) {
        (Some(a), Some(b)) => a.cmp(&b),
        (Some(_), None) => Ordering::Less,
        (None, Some(_)) => Ordering::Greater,
        (None, None) => a.cmp(b),
    }
}

#[cfg(test)]
pub(crate) mod tests;
