//! Texts and their encodings.

use cel::common::types::{CelBytes, CelString};

use super::{
    Entry,
    arguments::{Arguments, Outcome, fail, give, give_text, int, list, no_overload, text},
    instead, theirs,
};
use crate::cel::{budget::spend, value::decode_base64};

pub(super) fn entries() -> Vec<Entry> {
    vec![
        instead("base64.decode", &["base64.decode(string) -> bytes"], base64_decode),
        theirs("base64.encode", &["base64.encode(bytes) -> string"]),
        theirs("charAt", &["string.charAt(int) -> string"]),
        theirs("format", &["string.format(list(dyn)) -> string"]),
        theirs("indexOf", &["string.indexOf(string) -> int", "string.indexOf(string, int) -> int"]),
        instead("join", &["list(string).join() -> string", "list(string).join(string) -> string"], join),
        theirs("lastIndexOf", &["string.lastIndexOf(string) -> int", "string.lastIndexOf(string, int) -> int"]),
        theirs("lowerAscii", &["string.lowerAscii() -> string"]),
        instead(
            "replace",
            &["string.replace(string, string) -> string", "string.replace(string, string, int) -> string"],
            replace,
        ),
        theirs("reverse", &["string.reverse() -> string"]),
        theirs("split", &["string.split(string) -> list(string)", "string.split(string, int) -> list(string)"]),
        theirs("strings.quote", &["strings.quote(string) -> string"]),
        theirs("substring", &["string.substring(int) -> string", "string.substring(int, int) -> string"]),
        theirs("trim", &["string.trim() -> string"]),
        theirs("upperAscii", &["string.upperAscii() -> string"]),
    ]
}

/// `text.replace(old, new)`, at most `n` times where given: the result may be the product of two sizes, so it is paid first.
fn replace<'b, 'v>(arguments: Arguments<'b, 'v>) -> Outcome<'b, 'v> {
    let (text, old, new) = (text(&arguments, 0)?, text(&arguments, 1)?, text(&arguments, 2)?);
    let most = if arguments.len() > 3 { usize::try_from(int(&arguments, 3)?).unwrap_or(usize::MAX) } else { usize::MAX };
    let times = text.matches(old).take(most).count();
    spend((text.len() + times.saturating_mul(new.len())) as u64 / 64)?;
    give_text(text.replacen(old, new, most))
}

fn join<'b, 'v>(arguments: Arguments<'b, 'v>) -> Outcome<'b, 'v> {
    let separator = if arguments.len() > 1 { text(&arguments, 1)? } else { "" };
    let mut joined = String::new();
    for (index, element) in list(&arguments, 0)?.iter().enumerate() {
        let element = element.downcast_ref::<CelString>().ok_or_else(no_overload)?.inner();
        if index > 0 {
            joined.push_str(separator);
        }
        joined.push_str(element);
        spend(1 + (element.len() + separator.len()) as u64 / 64)?;
    }
    give_text(joined)
}

fn base64_decode<'b, 'v>(arguments: Arguments<'b, 'v>) -> Outcome<'b, 'v> {
    match decode_base64(text(&arguments, 0)?) {
        Ok(bytes) => give(CelBytes::from(bytes)),
        Err(at) => fail(format!("illegal base64 data at input byte {at}")),
    }
}
