//! `semverCheck(version, constraint)`, for the selectors of a Discovery.

use super::{
    Entry,
    arguments::{Arguments, Outcome, fail, give_bool, text},
    ours,
};
use crate::cel::versions;

pub(super) fn entries() -> Vec<Entry> {
    vec![ours("semverCheck", &["semverCheck(string, string) -> bool"], semver_check)]
}

fn semver_check<'b, 'v>(arguments: Arguments<'b, 'v>) -> Outcome<'b, 'v> {
    match versions::check(text(&arguments, 0)?, text(&arguments, 1)?) {
        Ok(satisfied) => give_bool(satisfied),
        Err(reason) => fail(format!("semverCheck: {reason}")),
    }
}
