//! Which version of a component is wanted. Pure.

use plinth_api::delivery::ComponentSpec;
use plinth_releasechannel::versions::{self, Constraint, Version};

use super::report::{Failed, Reason};

/// How many versions a message lists.
const LISTED: usize = 10;

/// Whether the versions there are have to be listed at all.
pub fn needs_list(spec: &ComponentSpec) -> bool {
    !versions::is_exact(&spec.semver)
}

/// The version to take: the wanted one itself, or the highest that the constraint (and `semverFilter`) allows.
///
/// `current` is the version taken before: going below it needs `downgradePolicy: Allow`.
/// Unlike the OCM controllers, `semverFilter` filters (ocm.md section 16).
pub fn choose(spec: &ComponentSpec, there: &[String], current: Option<&str>) -> Result<String, Failed> {
    let chosen = if needs_list(spec) { highest(spec, there)? } else { spec.semver.clone() };
    let downgrade = match (Version::parse(&chosen), current.and_then(Version::parse)) {
        (Some(chosen), Some(current)) => chosen.precedence(&current).is_lt(),
        _ => false,
    };
    if downgrade && spec.downgrade_policy.as_deref() != Some("Allow") {
        let current = current.unwrap_or_default();
        let message =
            format!("{}: version {chosen} is lower than {current}, which is in use, and downgradePolicy is Deny", spec.component);
        // In a range a higher version may be published.
        let failed = if needs_list(spec) { Failed::repair } else { Failed::wrong };
        return Err(failed(Reason::CheckVersionFailed, message));
    }
    Ok(chosen)
}

fn highest(spec: &ComponentSpec, there: &[String]) -> Result<String, Failed> {
    let wrong = |message: String| Failed::wrong(Reason::CheckVersionFailed, format!("{}: {message}", spec.component));
    let constraint = Constraint::parse(&spec.semver).map_err(|error| wrong(error.to_string()))?;
    let filter = match spec.semver_filter.as_deref().filter(|filter| !filter.is_empty()) {
        None => None,
        Some(text) => Some(pattern(text).map_err(|error| wrong(format!("semverFilter: {error}")))?),
    };
    let fits =
        |version: &Version| constraint.allows(version) && filter.as_ref().is_none_or(|filter| filter.is_match(version.raw()));
    let sorted = versions::sorted(there.iter().map(String::as_str));
    if let Some(version) = sorted.iter().rev().find(|version| fits(version)) {
        return Ok(version.raw().to_owned());
    }
    let known: Vec<&str> = sorted.iter().rev().take(LISTED).map(Version::raw).collect();
    let known = if known.is_empty() { "there are none".to_owned() } else { format!("there are {}", known.join(", ")) };
    // A version may be published later: this is worth another look.
    let message = format!("{}: no version satisfies {:?}; {known}", spec.component, spec.semver);
    Err(Failed::retry(Reason::CheckVersionFailed, message))
}

fn pattern(text: &str) -> Result<regex::Regex, String> {
    regex::RegexBuilder::new(text).size_limit(1 << 20).build().map_err(|_| format!("{text:?} is not a pattern"))
}

#[cfg(test)]
mod tests {
    use super::*;

    fn spec(semver: &str, filter: Option<&str>, policy: Option<&str>) -> ComponentSpec {
        ComponentSpec {
            component: "a.test/c".into(),
            semver: semver.into(),
            semver_filter: filter.map(str::to_owned),
            downgrade_policy: policy.map(str::to_owned),
            ..ComponentSpec::default()
        }
    }

    #[test]
    fn versions_are_chosen_as_the_range_says() {
        let there = ["v0.9.0", "v1.0.0", "v1.2.0", "v2.0.0-rc.1", "latest"].map(str::to_owned);
        let cases = [
            ("v1.0.0", None, None, None, Ok("v1.0.0")),
            (">=1.0.0 <2", None, None, None, Ok("v1.2.0")),
            ("*", Some("^v1\\.0"), None, None, Ok("v1.0.0")),
            (">=1.0.0-0", None, None, None, Ok("v2.0.0-rc.1")),
            (">=3", None, None, None, Err("there are v2.0.0-rc.1, v1.2.0, v1.0.0, v0.9.0")),
            ("v1.0.0", None, Some("v1.2.0"), None, Err("downgradePolicy is Deny")),
            ("v1.0.0", None, Some("v1.2.0"), Some("Allow"), Ok("v1.0.0")),
            ("=>", None, None, None, Err("a.test/c: ")),
            ("*", Some("("), None, None, Err("is not a pattern")),
        ];
        for (semver, filter, current, policy, expected) in cases {
            match (choose(&spec(semver, filter, policy), &there, current), expected) {
                (Ok(found), Ok(version)) => assert_eq!(found, version, "{semver}"),
                (Err(failed), Err(words)) => assert!(failed.message.contains(words), "{semver}: {}", failed.message),
                (found, _) => panic!("{semver}: {found:?} instead of {expected:?}"),
            }
        }
    }

    #[test]
    fn an_exact_version_needs_no_list() {
        assert!(!needs_list(&spec("v0.19.1", None, None)));
        assert!(needs_list(&spec(">=0.19", None, None)));
        assert_eq!(choose(&spec("v0.19.1", None, None), &[], None).unwrap(), "v0.19.1");
    }
}
