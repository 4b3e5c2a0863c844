//! Which version of a channel is to run, and which one is offered. Pure.
//!
//! | the Platform says | and nothing is installed | and a version in the range is installed |
//! | --- | --- | --- |
//! | an exact version | that one | that one: writing it is agreeing to it |
//! | a range, or nothing | the highest that it allows | that one; higher ones as the policy says |
//!
//! `Manual` (or nothing) moves by itself nowhere, `Patch` to higher patch versions of the same minor one, `Minor` to higher versions of
//! the same major one; both only while the window is open. What is allowed by the range and not gone to is offered.

use std::collections::BTreeSet;

use jiff::{Timestamp, civil::Weekday, tz::TimeZone};
use plinth_api::platform::UpgradePolicy;
use plinth_releasechannel::versions::{self, Constraint, Version};

/// How far a platform moves by itself.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Policy {
    /// Nowhere.
    Manual,
    /// To higher patch versions.
    Patch,
    /// To higher minor versions too.
    Minor,
}

/// When a platform moves by itself: `[DAYS ]HH:MM-HH:MM`, in UTC, such as `Sat,Sun 22:00-04:00`. The days are those on which it opens.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Window {
    days: BTreeSet<i8>,
    from: i32,
    to: i32,
}

/// What is to run, and what could.
#[derive(Clone, Debug, Default, PartialEq, Eq)]
pub struct Choice {
    /// The version that is to run; `None` where the channel has none that was asked for.
    pub version: Option<String>,
    /// A higher one that the range allows (any release, where an exact version was asked for).
    pub next: Option<String>,
}

/// Reads `spec.upgrade`.
pub fn read(upgrade: Option<&UpgradePolicy>) -> Result<(Policy, Option<Window>), String> {
    let Some(upgrade) = upgrade else { return Ok((Policy::Manual, None)) };
    let policy = match upgrade.policy.as_str() {
        "" | "Manual" => Policy::Manual,
        "Patch" => Policy::Patch,
        "Minor" => Policy::Minor,
        other => return Err(format!("spec.upgrade.policy: `{other}` is none of Manual, Patch, Minor")),
    };
    let window = upgrade.window.as_deref().filter(|window| !window.is_empty()).map(Window::parse).transpose()?;
    Ok((policy, window))
}

/// Chooses; `moves` says whether the policy may act now.
pub fn choose(wanted: Option<&str>, installed: Option<&str>, there: &[String], policy: Policy, moves: bool) -> Choice {
    let range = wanted.unwrap_or("*");
    let all = || there.iter().map(String::as_str);
    let best = versions::pick(Some(range), all());
    if versions::is_exact(range) || there.iter().any(|version| version == range) {
        let version = Some(best.unwrap_or_else(|| range.to_owned()));
        let next = versions::pick(None, all()).filter(|next| is_higher(next, version.as_deref()));
        return Choice { version, next };
    }
    let stays = installed.filter(|installed| Constraint::parse(range).is_ok_and(|range| is_allowed(&range, installed)));
    let Some(stays) = stays else { return Choice { version: best, next: None } };
    let reachable = |version: &&Version| {
        let Some(now) = Version::parse(stays) else { return false };
        let ([major, minor, _], [new_major, new_minor, _]) = (now.numbers(), version.numbers());
        match policy {
            Policy::Manual => false,
            Policy::Patch => (major, minor) == (new_major, new_minor),
            Policy::Minor => major == new_major,
        }
    };
    let range = Constraint::parse(range).ok();
    let higher: Vec<Version> = versions::sorted(all())
        .into_iter()
        .filter(|version| is_higher(version.raw(), Some(stays)) && range.as_ref().is_some_and(|range| range.allows(version)))
        .collect();
    let target = higher.iter().rfind(reachable).filter(|_| moves).map_or(stays, Version::raw).to_owned();
    let next = higher.last().map(|next| next.raw().to_owned()).filter(|next| *next != target);
    Choice { version: Some(target), next }
}

fn is_allowed(range: &Constraint, version: &str) -> bool {
    Version::parse(version).is_some_and(|version| range.allows(&version))
}

fn is_higher(version: &str, than: Option<&str>) -> bool {
    match (Version::parse(version), than.and_then(Version::parse)) {
        (Some(version), Some(than)) => version.precedence(&than).is_gt(),
        _ => false,
    }
}

const DAYS: [(&str, Weekday); 7] = [
    ("Mon", Weekday::Monday),
    ("Tue", Weekday::Tuesday),
    ("Wed", Weekday::Wednesday),
    ("Thu", Weekday::Thursday),
    ("Fri", Weekday::Friday),
    ("Sat", Weekday::Saturday),
    ("Sun", Weekday::Sunday),
];

impl Window {
    /// Reads its text.
    pub fn parse(text: &str) -> Result<Self, String> {
        let wrong = || format!("spec.upgrade.window: {text:?} is not `[DAYS ]HH:MM-HH:MM` in UTC, such as `Sat,Sun 22:00-04:00`");
        let (days, hours) = match text.trim().rsplit_once(' ') {
            Some((days, hours)) => (days.split(',').map(|day| day_of(day.trim())).collect::<Option<BTreeSet<i8>>>(), hours),
            None => (Some((1..=7).collect()), text.trim()),
        };
        let (from, to) = hours.split_once('-').ok_or_else(wrong)?;
        let (from, to) = (minutes(from).ok_or_else(wrong)?, minutes(to).ok_or_else(wrong)?);
        Ok(Self { days: days.ok_or_else(wrong)?, from, to })
    }

    /// Whether it is open. One that ends before it begins ends on the next day.
    pub fn is_open(&self, now: Timestamp) -> bool {
        let now = now.to_zoned(TimeZone::UTC);
        let minute = i32::from(now.hour()) * 60 + i32::from(now.minute());
        let today = now.weekday();
        let opens = |day: Weekday| self.days.contains(&day.to_monday_one_offset());
        if self.from < self.to {
            return opens(today) && (self.from..self.to).contains(&minute);
        }
        opens(today) && minute >= self.from || opens(today.previous()) && minute < self.to
    }
}

fn day_of(text: &str) -> Option<i8> {
    DAYS.iter().find(|(name, _)| *name == text).map(|(_, day)| day.to_monday_one_offset())
}

fn minutes(text: &str) -> Option<i32> {
    let (hour, minute) = text.split_once(':')?;
    let (hour, minute): (i32, i32) = (hour.parse().ok()?, minute.parse().ok()?);
    ((0..=24).contains(&hour) && (0..60).contains(&minute) && hour * 60 + minute <= 24 * 60).then_some(hour * 60 + minute)
}

#[cfg(test)]
mod tests {
    use super::*;

    fn chosen(wanted: Option<&str>, installed: Option<&str>, policy: Policy, moves: bool) -> (String, String) {
        let there = ["v1.0.0", "v1.0.1", "v1.1.0", "v1.1.1", "v2.0.0", "v2.1.0-rc.1"].map(str::to_owned);
        let Choice { version, next } = choose(wanted, installed, &there, policy, moves);
        (version.unwrap_or_default(), next.unwrap_or_default())
    }

    #[test]
    fn a_version_is_chosen_by_range_installation_and_policy() {
        let of = |version: &str, next: &str| (version.to_owned(), next.to_owned());
        let one = Some(">=1.0 <2");
        for (wanted, installed, policy, moves, expected) in [
            (None, None, Policy::Manual, true, of("v2.0.0", "")),
            (one, None, Policy::Manual, true, of("v1.1.1", "")),
            (one, Some("v1.0.0"), Policy::Manual, true, of("v1.0.0", "v1.1.1")),
            (one, Some("v1.0.0"), Policy::Patch, true, of("v1.0.1", "v1.1.1")),
            (one, Some("v1.0.0"), Policy::Patch, false, of("v1.0.0", "v1.1.1")),
            (one, Some("v1.0.0"), Policy::Minor, true, of("v1.1.1", "")),
            (None, Some("v1.0.0"), Policy::Minor, true, of("v1.1.1", "v2.0.0")),
            (Some("v1.0.0"), Some("v1.1.0"), Policy::Minor, true, of("v1.0.0", "v2.0.0")),
            (Some("v2.0.0"), Some("v1.1.0"), Policy::Manual, false, of("v2.0.0", "")),
            (Some("v9.0.0"), Some("v1.1.0"), Policy::Manual, true, of("v9.0.0", "")),
            (Some(">=9"), Some("v1.1.0"), Policy::Manual, true, of("", "")),
            (Some(">=2"), Some("v1.1.0"), Policy::Manual, true, of("v2.0.0", "")),
        ] {
            assert_eq!(chosen(wanted, installed, policy, moves), expected, "{wanted:?} {installed:?} {policy:?} {moves}");
        }
    }

    #[test]
    fn a_window_opens_on_its_days_and_ends_on_the_next() {
        let at = |text: &str| text.parse::<Timestamp>().unwrap();
        let night = Window::parse("Sat,Sun 22:00-04:00").unwrap();
        // 2026-12-05 is a Saturday.
        for (time, open) in [
            ("2026-12-05T21:59:00Z", false),
            ("2026-12-05T22:00:00Z", true),
            ("2026-12-06T03:59:00Z", true),
            ("2026-12-06T12:00:00Z", false),
            ("2026-12-07T03:00:00Z", true),
            ("2026-12-07T22:00:00Z", false),
            ("2026-12-05T03:00:00Z", false),
        ] {
            assert_eq!(night.is_open(at(time)), open, "{time}");
        }
        assert!(Window::parse("09:00-17:00").unwrap().is_open(at("2026-12-01T09:00:00Z")));
        for wrong in ["always", "Sat", "Caturday 01:00-02:00", "25:00-26:00", "1-2", "Sat 10:00"] {
            assert!(Window::parse(wrong).unwrap_err().contains("in UTC"), "{wrong}");
        }
        let policy = |policy: &str| read(Some(&UpgradePolicy { policy: policy.into(), window: None }));
        assert_eq!(policy("Minor").unwrap().0, Policy::Minor);
        assert!(policy("Major").unwrap_err().contains("none of Manual, Patch, Minor"));
    }
}
