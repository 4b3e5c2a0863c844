use proptest::prelude::*;

use super::*;

const FLUX: Facts<'_> = Facts {
    name: "team-a-flux",
    kind: "HelmRelease.helm.toolkit.fluxcd.io",
    plane: "consumer",
    cluster: "root:org:team-a",
    namespace: "team-a",
    state: "failed",
    reason: "BuildFailed",
};
const VM: Facts<'_> =
    Facts { name: "db", kind: "VM.example.dev", plane: "host", cluster: "host", namespace: "", state: "ready", reason: "" };

#[test]
fn terms_are_read_as_people_mean_them() {
    for (text, flux, vm) in [
        ("", true, true),
        ("tmflx", true, false),
        ("flux team", true, false),
        ("!flux", false, true),
        ("kind:helm", true, false),
        ("kind:helm kind:vm", true, true),
        ("kind:helm plane:host", false, false),
        ("state:FAILED", true, false),
        ("!state:ready", true, false),
        ("state:failed !reason:build", false, false),
        ("ns:team-a", true, false),
        ("plane:org:team-a", true, false),
        ("!plane:host !plane:consumer", false, false),
    ] {
        let filter = Filter::parse(text).unwrap();
        assert_eq!((filter.matches(&FLUX), filter.matches(&VM)), (flux, vm), "{text}");
    }
}

#[test]
fn what_is_wrong_is_said() {
    let unknown = Filter::parse("colour:red").unwrap_err().to_string();
    assert!(unknown.contains("colour: is no key") && unknown.contains("reason:"), "{unknown}");
    assert!(matches!(Filter::parse("kind:"), Err(FilterError::Empty { .. })));
    assert!(matches!(Filter::parse("!"), Err(FilterError::Empty { .. })));
    assert_eq!(Filter::parse(&"x".repeat(MAX_FILTER + 1)), Err(FilterError::TooLong));
}

#[test]
fn a_term_that_finds_nothing_is_named() {
    let filter = Filter::parse("kind:helm !state:gone ns:team-b").unwrap();
    let mut search = Search::new(&filter);
    assert_eq!([FLUX, VM].iter().filter(|facts| search.matches(facts)).count(), 0);
    let idle: Vec<String> = search.inactive().iter().map(ToString::to_string).collect();
    assert_eq!(idle, ["!state:gone", "ns:team-b"]);
}

#[test]
fn letters_together_and_at_the_start_of_words_win() {
    assert!(fuzzy("why", "why not ready") > fuzzy("why", "who has you"));
    assert_eq!(fuzzy("ab", "ba"), None);
}

proptest! {
    #[test]
    fn no_text_panics_and_a_filter_prints_as_it_reads(text in ".{0,60}") {
        if let Ok(filter) = Filter::parse(&text) {
            let printed: Vec<String> = filter.terms.iter().map(ToString::to_string).collect();
            let again = Filter::parse(&printed.join(" "));
            prop_assert_eq!(again.as_ref(), Ok(&filter));
            filter.matches(&FLUX);
        }
    }
}
