//! Regular expressions with RE2's meaning.
//!
//! The crate `regex` has RE2's engine and most of its syntax. Where they differ, the pattern is translated: RE2's `\d \w \s \b`
//! know ASCII only, `\Q…\E` quotes, and brackets inside a class are plain letters.

use std::{cell::RefCell, collections::VecDeque};

use cel::ExecutionError;
use regex::{Regex, RegexBuilder};
use regex_syntax::ast::{self, Ast, RepetitionKind, RepetitionRange, Visitor, parse::Parser};

use super::{
    Entry,
    arguments::{Arguments, Outcome, boxed_text, fail, give_bool, give_list, give_text, int, text},
    instead, ours,
};
use crate::cel::budget::spend;

pub(super) fn entries() -> Vec<Entry> {
    vec![
        instead("matches", &["matches(string, string) -> bool", "string.matches(string) -> bool"], matches),
        ours("find", &["string.find(string) -> string"], find),
        ours("findAll", &["string.findAll(string) -> list(string)", "string.findAll(string, int) -> list(string)"], find_all),
    ]
}

fn matches<'b, 'v>(arguments: Arguments<'b, 'v>) -> Outcome<'b, 'v> {
    let subject = text(&arguments, 0)?;
    let found = compiled(text(&arguments, 1)?)?.is_match(subject);
    give_bool(found)
}

fn find<'b, 'v>(arguments: Arguments<'b, 'v>) -> Outcome<'b, 'v> {
    let pattern = compiled(text(&arguments, 1)?)?;
    give_text(pattern.find(text(&arguments, 0)?).map_or("", |found| found.as_str()))
}

fn find_all<'b, 'v>(arguments: Arguments<'b, 'v>) -> Outcome<'b, 'v> {
    let pattern = compiled(text(&arguments, 1)?)?;
    let most = if arguments.len() > 2 { usize::try_from(int(&arguments, 2)?).unwrap_or(usize::MAX) } else { usize::MAX };
    let mut found = Vec::new();
    for part in pattern.find_iter(text(&arguments, 0)?).take(most) {
        spend(1)?;
        found.push(boxed_text(part.as_str()));
    }
    give_list(found)
}

/// Longest program that a pattern may become, in bytes.
const MAX_PROGRAM: usize = 1 << 20;

thread_local! {
    /// The last patterns of this thread: an expression in a loop uses the same one again.
    static LAST: RefCell<VecDeque<(String, Regex)>> = const { RefCell::new(VecDeque::new()) };
}

/// Compiles a pattern; compiling is paid by its length.
pub(super) fn compiled(pattern: &str) -> Result<Regex, ExecutionError> {
    let kept = LAST.with_borrow(|last| last.iter().find(|(known, _)| known == pattern).map(|(_, regex)| regex.clone()));
    if let Some(regex) = kept {
        return Ok(regex);
    }
    spend(200 + 10 * pattern.len() as u64)?;
    let regex = match re2(pattern) {
        Ok(regex) => regex,
        Err(error) => return fail(error.to_string()),
    };
    LAST.with_borrow_mut(|last| {
        if last.len() == 16 {
            last.pop_front();
        }
        last.push_back((pattern.to_owned(), regex.clone()));
    });
    Ok(regex)
}

/// Why a text is no regular expression of RE2, in the words of Go's library where it alone refuses it.
#[derive(Clone, Debug, PartialEq, Eq, thiserror::Error)]
#[error("error parsing regexp: {0}")]
pub struct NoPattern(String);

/// Compiles a pattern in RE2's meaning, within bounds.
pub fn re2(pattern: &str) -> Result<Regex, NoPattern> {
    let translated = translated(pattern);
    if let Ok(ast) = Parser::new().parse(&translated) {
        ast::visit(&ast, Repetitions(&translated)).map_err(NoPattern)?;
    }
    RegexBuilder::new(&translated).size_limit(MAX_PROGRAM).build().map_err(|error| {
        // The crate draws the pattern over several lines; the last one says what is wrong.
        let reason = error.to_string();
        NoPattern(format!("{}: `{pattern}`", reason.lines().last().unwrap_or_default().trim_start_matches("error: ")))
    })
}

/// The repetition that Go refuses and the crate takes: one of another (`a**`), or one of more than a thousand.
struct Repetitions<'a>(&'a str);

impl Visitor for Repetitions<'_> {
    type Output = ();
    type Err = String;

    fn finish(self) -> Result<(), String> {
        Ok(())
    }

    fn visit_pre(&mut self, ast: &Ast) -> Result<(), String> {
        const MOST: u32 = 1000;
        let Ast::Repetition(repetition) = ast else { return Ok(()) };
        let at = &repetition.op.span;
        if let Ast::Repetition(inner) = repetition.ast.as_ref() {
            let both = &self.0[inner.op.span.start.offset..at.end.offset];
            return Err(format!("invalid nested repetition operator: `{both}`"));
        }
        let most = match &repetition.op.kind {
            RepetitionKind::Range(RepetitionRange::Exactly(count) | RepetitionRange::AtLeast(count)) => *count,
            RepetitionKind::Range(RepetitionRange::Bounded(least, most)) => *least.max(most),
            _ => 0,
        };
        let text = &self.0[at.start.offset..at.end.offset];
        if most > MOST { Err(format!("invalid repeat count: `{text}`")) } else { Ok(()) }
    }
}

/// A pattern of RE2 in the syntax of the crate `regex`.
fn translated(pattern: &str) -> String {
    let mut out = String::with_capacity(pattern.len() + 8);
    let mut rest = pattern.chars().peekable();
    let mut class_start = None;
    while let Some(letter) = rest.next() {
        match (letter, class_start) {
            ('\\', _) => match rest.next() {
                Some('Q') if class_start.is_none() => quoted(&mut rest, &mut out),
                Some(braced @ ('p' | 'P' | 'x')) if rest.peek() == Some(&'{') => {
                    out.extend(['\\', braced]);
                    through(&mut rest, &mut out, '}');
                }
                Some(escaped) => out.push_str(&escape(escaped, class_start.is_some())),
                None => out.push('\\'),
            },
            ('[', None) => {
                out.push('[');
                if rest.next_if_eq(&'^').is_some() {
                    out.push('^');
                }
                // A bracket that comes first is a letter.
                if rest.next_if_eq(&']').is_some() {
                    out.push_str("\\]");
                }
                class_start = Some(out.len());
            }
            ('[', Some(_)) if rest.peek() == Some(&':') => named_class(&mut rest, &mut out),
            ('[' | '&' | '~', Some(_)) => out.extend(['\\', letter]),
            ('-', Some(_)) if rest.peek() == Some(&'-') => out.push_str("\\-"),
            (']', Some(_)) => {
                class_start = None;
                out.push(']');
            }
            // A brace that begins no repetition is a letter.
            ('{', None) if !is_repetition(rest.clone()) => out.push_str("\\{"),
            _ => out.push(letter),
        }
    }
    out
}

/// Whether a repetition follows its opening brace: `2}`, `2,}` or `2,3}`.
fn is_repetition(mut rest: std::iter::Peekable<std::str::Chars<'_>>) -> bool {
    let digits =
        |rest: &mut std::iter::Peekable<std::str::Chars<'_>>| std::iter::from_fn(|| rest.next_if(char::is_ascii_digit)).count();
    if digits(&mut rest) == 0 {
        return false;
    }
    if rest.next_if_eq(&',').is_some() {
        digits(&mut rest);
    }
    rest.next() == Some('}')
}

fn escape(letter: char, in_class: bool) -> String {
    let class = |inside: &str| if in_class { inside.to_owned() } else { format!("[{inside}]") };
    match letter {
        'd' => class("0-9"),
        'w' => class("0-9A-Za-z_"),
        's' => class("\\t\\n\\f\\r "),
        'D' => "[^0-9]".to_owned(),
        'W' => "[^0-9A-Za-z_]".to_owned(),
        'S' => "[^\\t\\n\\f\\r ]".to_owned(),
        'b' | 'B' if !in_class => format!("(?-u:\\{letter})"),
        other => format!("\\{other}"),
    }
}

fn quoted(rest: &mut std::iter::Peekable<std::str::Chars<'_>>, out: &mut String) {
    while let Some(letter) = rest.next() {
        if letter == '\\' && rest.next_if_eq(&'E').is_some() {
            return;
        }
        out.push_str(&regex::escape(letter.encode_utf8(&mut [0; 4])));
    }
}

/// `[:alpha:]` inside a class, taken as it is.
fn named_class(rest: &mut std::iter::Peekable<std::str::Chars<'_>>, out: &mut String) {
    out.push('[');
    through(rest, out, ']');
}

/// Takes everything as it is up to and including a letter.
fn through(rest: &mut std::iter::Peekable<std::str::Chars<'_>>, out: &mut String, last: char) {
    for letter in rest.by_ref() {
        out.push(letter);
        if letter == last {
            return;
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn means_what_re2_means() {
        for (pattern, subject, matches) in [
            ("^\\d+$", "12", true),
            ("^\\d+$", "١٢", false),
            ("^\\w$", "é", false),
            ("^[\\w.]+$", "a.b", true),
            ("^[^\\d]$", "x", true),
            ("\\bab\\b", "x ab y", true),
            ("^[[]$", "[", true),
            ("^[]a]+$", "]a", true),
            ("^[[:alpha:]_]+$", "a_b", true),
            ("^[a&&b]+$", "a&b", true),
            ("^\\Qa.b\\E$", "a.b", true),
            ("^\\Qa.b\\E$", "axb", false),
            ("(?i)^ABC$", "abc", true),
            ("{\"a", "x{\"a", true),
            ("^x{}$", "x{}", true),
            ("^x{,2}$", "x{,2}", true),
            ("^a{2}b{1,}$", "aabbb", true),
            ("^\\p{Greek}\\x{61}$", "αa", true),
            ("a}", "a}", true),
        ] {
            assert_eq!(Regex::new(&translated(pattern)).unwrap().is_match(subject), matches, "{pattern} on {subject}");
        }
        assert!(Regex::new(&translated("(?=a)")).is_err());
    }

    /// Asked of Go's regexp, by kro's builder.
    #[test]
    fn refuses_what_go_refuses() {
        for (pattern, words) in [
            ("a**", "invalid nested repetition operator: `**`"),
            ("a+*", "invalid nested repetition operator: `+*`"),
            ("a{2}{3}", "invalid nested repetition operator: `{2}{3}`"),
            ("a???", "invalid nested repetition operator: `???`"),
            ("a{1001}", "invalid repeat count: `{1001}`"),
            ("a{2,1001}", "invalid repeat count: `{2,1001}`"),
        ] {
            assert_eq!(re2(pattern).unwrap_err().to_string(), format!("error parsing regexp: {words}"), "{pattern}");
        }
        for pattern in [
            "a+?",
            "a{2}?",
            "[*+?]+",
            "a*b*",
            "(?i)a*",
            "(?:a*)*",
            "\\**",
            "\\Q**\\E*",
            "a{1000}",
            "[]*]*",
            "a{x}*",
            "^*",
            "[[:alpha:]*+]+",
        ] {
            assert!(re2(pattern).is_ok(), "{pattern}: {:?}", re2(pattern));
        }
        assert!(re2("(").unwrap_err().to_string().starts_with("error parsing regexp: "));
    }
}
