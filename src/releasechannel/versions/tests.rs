use proptest::prelude::*;

use super::*;

/// The table of the real library: what it parses and what each constraint allows.
#[test]
fn show_04_semver() {
    let table = std::fs::read_to_string(crate::testing::data().join("ocm/golden/semver-masterminds-v3.5.0.txt")).unwrap();
    let texts: Vec<&str> = table.lines().filter(|line| line.starts_with("parse")).filter_map(quoted).collect();
    let mut wrong = Vec::new();
    let mut rows = 0;
    for line in table.lines().filter(|line| !line.is_empty()) {
        rows += 1;
        let found = if line.starts_with("parse") { parse_row(line) } else { constraint_row(line, &texts) };
        if let Err(found) = found {
            wrong.push(format!("{line}\n   ours: {found}"));
        }
    }
    eprintln!("SHOW 04 semver {}/{rows}", rows - wrong.len());
    assert!(wrong.is_empty(), "{}", wrong.join("\n"));
    assert!(rows >= 39);
}

pub(crate) fn quoted(line: &str) -> Option<&str> {
    line.split('"').nth(1)
}

pub(crate) fn parse_row(line: &str) -> Result<(), String> {
    let ours = Version::parse(quoted(line).unwrap()).map(|version| version.canonical());
    let theirs = line.split("-> ").nth(1).map(|rest| rest.split(' ').next().unwrap().to_owned());
    if ours == theirs { Ok(()) } else { Err(format!("{ours:?}")) }
}

pub(crate) fn constraint_row(line: &str, texts: &[&str]) -> Result<(), String> {
    let constraint = Constraint::parse(quoted(line).unwrap());
    let Some((_, list)) = line.split_once("-> [") else {
        return if constraint.is_err() { Ok(()) } else { Err("accepted".into()) };
    };
    let mut theirs: Vec<&str> = list.trim_end_matches(']').split(' ').collect();
    let constraint = constraint.map_err(|error| error.to_string())?;
    let allowed: Vec<Version> = sorted(texts.iter().copied()).into_iter().filter(|version| constraint.allows(version)).collect();
    let mut ours: Vec<&str> = allowed.iter().map(Version::raw).collect();
    // The library's own order among equals is not defined.
    theirs.sort_unstable();
    ours.sort_unstable();
    if ours == theirs { Ok(()) } else { Err(format!("{ours:?}")) }
}

/// More of the same library's answers: every operator before every form of a version, and how comparisons may be parted.
#[test]
fn show_04_semver_forms() {
    let mut rows = include_str!("masterminds-v3.5.0.tsv").lines().filter(|line| !line.starts_with('#'));
    let versions: Vec<Version> = rows.next().unwrap().split(' ').map(|text| Version::parse(text).unwrap()).collect();
    let (mut wrong, mut count) = (Vec::new(), 0);
    for row in rows {
        let (constraint, theirs) = row.split_once('\t').unwrap();
        let constraint: String = serde_json::from_str(constraint).unwrap();
        let ours = Constraint::parse(&constraint).map_or_else(
            |_| "ERR".to_owned(),
            |constraint| versions.iter().map(|version| if constraint.allows(version) { '1' } else { '0' }).collect(),
        );
        count += 1;
        if ours != theirs {
            wrong.push(format!("{constraint:?}\n  ours   {ours}\n  theirs {theirs}"));
        }
    }
    eprintln!("SHOW 04 semver-forms {}/{count}", count - wrong.len());
    assert!(wrong.is_empty(), "{}", wrong.join("\n"));
    assert!(count >= 287);
}

#[test]
fn tags_escape_build_metadata() {
    assert_eq!(to_tag("2.0.0-rc.1+build.7"), "2.0.0-rc.1.build-build.7");
    assert_eq!(from_tag("2.0.0-rc.1.build-build.7"), "2.0.0-rc.1+build.7");
    assert_eq!(from_tag("1.0.0"), "1.0.0");
}

#[test]
fn picks_the_exact_spelling_before_the_range() {
    let there = ["1.2.0", "1.2.0+a", "1.10.0", "1.9.0", "2.0.0-rc.1", "latest"];
    assert_eq!(pick(Some("1.2.0+a"), there).as_deref(), Some("1.2.0+a"));
    assert_eq!(pick(Some("1.x"), there).as_deref(), Some("1.10.0"));
    assert_eq!(pick(None, there).as_deref(), Some("1.10.0"));
    assert_eq!(pick(Some(">=1.0.0-0"), there).as_deref(), Some("2.0.0-rc.1"));
    assert_eq!(pick(Some("3"), there), None);
    assert_eq!(pick(Some("latest"), there).as_deref(), Some("latest"));
}

#[test]
fn a_prerelease_opens_its_whole_conjunction() {
    let constraint = Constraint::parse(">=1.0.0-0 <2").unwrap();
    assert!(constraint.allows(&Version::parse("1.2.0-alpha.1").unwrap()));
    assert!(!Constraint::parse(">=1.0.0 <2").unwrap().allows(&Version::parse("1.2.0-alpha.1").unwrap()));
}

#[test]
fn refuses_what_is_no_constraint() {
    for text in [
        "",
        " ",
        "||",
        ">=",
        "1.2.3.4",
        "a",
        ">>1",
        "1 ||",
        "=!1",
        "1.2.3-",
        "- 1",
        "1 -",
        ">=1.0.0 -",
        "99999999999999999999999",
    ] {
        assert!(Constraint::parse(text).is_err(), "{text:?} was accepted");
    }
}

#[test]
fn knows_when_no_list_is_needed() {
    assert!(is_exact("1.2.3") && is_exact("v1.2.3") && is_exact("2.0.0-rc.1+build.7"));
    assert!(!is_exact("1.2") && !is_exact("1") && !is_exact("~1.2.3") && !is_exact("1.2.x") && !is_exact("latest"));
}

proptest! {
    #[test]
    fn never_panics(text in "\\PC{0,40}", near in "[v0-9xX*.,|<>=~^! +-]{0,24}") {
        for text in [text, near] {
            let version = Version::parse(&text);
            if let (Ok(constraint), Some(version)) = (Constraint::parse(&text), version) {
                let _ = constraint.allows(&version);
            }
        }
    }

    #[test]
    fn precedence_is_an_order(a in "[0-2](\\.[0-2]){0,2}(-[a0-2](\\.[a0-2])?)?", b in "[0-2](\\.[0-2]){0,2}(-[a0-2](\\.[a0-2])?)?", c in "[0-2]\\.[0-2]\\.0(-[a0-2])?") {
        let [a, b, c] = [a, b, c].map(|text| Version::parse(&text).unwrap());
        prop_assert_eq!(a.precedence(&b), b.precedence(&a).reverse());
        if a.precedence(&b).is_le() && b.precedence(&c).is_le() {
            prop_assert!(a.precedence(&c).is_le());
        }
    }

    #[test]
    fn a_version_satisfies_itself(text in "[0-9]{1,3}\\.[0-9]{1,3}\\.[0-9]{1,3}(-[a-z]{1,4})?") {
        let version = Version::parse(&text).unwrap();
        for operator in ["", "=", ">=", "<=", "~", "^"] {
            prop_assert!(Constraint::parse(&format!("{operator}{text}")).unwrap().allows(&version), "{}{}", operator, text);
        }
    }
}
