//! From a place in a scalar's value back to the text that it was written in: quotes, escapes, folded and indented lines.

/// The byte of `text` where byte `offset` of `value` was written; `at` is where the scalar begins (a quote, a block's `|` or
/// `>`, or its first character). `None` where the text there does not read as `value`, such as behind an alias.
pub(crate) fn place_of(text: &str, at: usize, value: &str, offset: usize) -> Option<usize> {
    let rest = text.get(at..)?;
    let inside = value.get(..offset)?;
    let read = match rest.as_bytes().first()? {
        b'"' => flow(rest, 1, inside, Some('"')),
        b'\'' => flow(rest, 1, inside, Some('\'')),
        _ => flow(rest, 0, inside, None),
    };
    read.map(|found| at + found).or_else(|| block(text, at, value, offset))
}

/// Reads `wanted` off a quoted or plain scalar, from byte `at` on; answers with the byte behind it.
fn flow(text: &str, mut at: usize, wanted: &str, quote: Option<char>) -> Option<usize> {
    let mut left = wanted;
    while !left.is_empty() {
        let (decoded, length) = step(&text[at..], quote)?;
        left = left.strip_prefix(decoded.as_str())?;
        at += length;
    }
    // What is wanted next is behind a line that goes on.
    while let Some((decoded, length)) = step(&text[at..], quote) {
        if !decoded.is_empty() {
            break;
        }
        at += length;
    }
    Some(at)
}

/// What the text at the beginning stands for, and how long it is there. Empty for what stands for nothing.
fn step(text: &str, quote: Option<char>) -> Option<(String, usize)> {
    let first = text.chars().next()?;
    if let Some(folded) = fold(text) {
        return Some(folded);
    }
    match (quote, first) {
        (Some('"'), '\\') => escape(text),
        (Some('\''), '\'') if text.starts_with("''") => Some(("'".to_owned(), 2)),
        (Some(end), first) if first == end => None,
        _ => Some((first.to_string(), first.len_utf8())),
    }
}

/// A line break with the blanks around it: one is a space, of several all but the first stay.
fn fold(text: &str) -> Option<(String, usize)> {
    let blank = |text: &str| text.len() - text.trim_start_matches([' ', '\t']).len();
    let mut length = blank(text);
    let mut breaks = 0;
    while let Some(found) = line_break(&text[length..]) {
        breaks += 1;
        length += found;
        length += blank(&text[length..]);
    }
    match breaks {
        0 => None,
        1 => Some((" ".to_owned(), length)),
        _ => Some(("\n".repeat(breaks - 1), length)),
    }
}

fn line_break(text: &str) -> Option<usize> {
    ["\r\n", "\n"].into_iter().find(|found| text.starts_with(found)).map(str::len)
}

/// An escape of a double-quoted scalar.
fn escape(text: &str) -> Option<(String, usize)> {
    let letter = text[1..].chars().next()?;
    let plain = match letter {
        '0' => '\0',
        'a' => '\u{7}',
        'b' => '\u{8}',
        't' | '\t' => '\t',
        'n' => '\n',
        'v' => '\u{b}',
        'f' => '\u{c}',
        'r' => '\r',
        'e' => '\u{1b}',
        'N' => '\u{85}',
        '_' => '\u{a0}',
        'L' => '\u{2028}',
        'P' => '\u{2029}',
        'x' => return coded(text, 2),
        'u' => return coded(text, 4),
        'U' => return coded(text, 8),
        '\n' | '\r' => {
            let broken = 1 + line_break(&text[1..])?;
            let rest = &text[broken..];
            return Some((String::new(), broken + rest.len() - rest.trim_start_matches([' ', '\t']).len()));
        }
        other => other,
    };
    Some((plain.to_string(), 1 + letter.len_utf8()))
}

fn coded(text: &str, digits: usize) -> Option<(String, usize)> {
    let code = u32::from_str_radix(text.get(2..2 + digits)?, 16).ok()?;
    Some((char::from_u32(code)?.to_string(), 2 + digits))
}

/// Reads a block scalar line by line until byte `offset` of its value is met. Between lines the value has a space (folded) or
/// line breaks; lines without content are among them. `at` is in its first line, or where its `|` or `>` is.
fn block(text: &str, at: usize, value: &str, offset: usize) -> Option<usize> {
    let spaces = |line: &str| line.len() - line.trim_start_matches(' ').len();
    let first = value.lines().find(|line| !line.trim().is_empty())?;
    let mut at = match text.as_bytes().get(at)? {
        b'|' | b'>' => at + text[at..].find('\n')? + 1,
        _ => text[..at].rfind('\n').map_or(0, |before| before + 1),
    };
    let (mut decoded, mut indent) = (0, None);
    for line in text[at..].split_inclusive('\n') {
        let start = at;
        at += line.len();
        let bare = line.trim_end_matches(['\n', '\r']);
        if bare.trim().is_empty() {
            continue;
        }
        let indent = *indent.get_or_insert(spaces(bare).checked_sub(spaces(first))?);
        let content = bare.get(indent..)?;
        let rest = &value[decoded..];
        let is_folded = decoded > 0 && rest.strip_prefix(' ').is_some_and(|rest| rest.starts_with(content));
        decoded += if is_folded { 1 } else { rest.len() - rest.trim_start_matches('\n').len() };
        if !value[decoded..].starts_with(content) {
            return None;
        }
        if offset <= decoded + content.len() {
            return Some(start + indent + offset.saturating_sub(decoded));
        }
        decoded += content.len();
    }
    None
}

#[cfg(test)]
mod tests {
    use super::*;

    /// Where `needle` of the value is, as line and column of the text from `at` on.
    fn found(text: &str, value: &str, needle: &str) -> Option<String> {
        let offset = value.find(needle).unwrap();
        let place = place_of(text, 0, value, offset)?;
        Some(text[place..].chars().take(needle.chars().count()).collect())
    }

    #[test]
    fn a_place_in_the_value_is_a_place_in_the_text() {
        for (text, value) in [
            ("plain needle", "plain needle"),
            ("plain\n   on needle", "plain on needle"),
            ("'it''s a needle'", "it's a needle"),
            ("'two\n\n  lines needle'", "two\nlines needle"),
            (r#""say \"x\" \u00e9 \x41 needle""#, "say \"x\" é A needle"),
            (r#""\\${needle}\n""#, "\\${needle}\n"),
            ("\"one \\\n   two needle\"", "one two needle"),
            ("|\n  one\n\n    two\n  needle\n", "one\n\n  two\nneedle\n"),
            ("|-\r\n  one\r\n  needle\r\n", "one\nneedle"),
            ("|2-\n    one\n  needle\n", "  one\nneedle"),
            (">\n  one\n  two needle\n\n  three\n", "one two needle\nthree\n"),
            (">-  # why\n  one\n    more\n  needle\n", "one\n  more\nneedle"),
        ] {
            assert_eq!(found(text, value, "needle").as_deref(), Some("needle"), "{text:?}");
        }
    }

    #[test]
    fn what_is_not_written_there_has_no_place() {
        for text in ["other", "\"ot\\q\"", "|\n  other\n", "*alias", ""] {
            assert_eq!(place_of(text, 0, "value ${x}", 8), None, "{text}");
        }
        assert_eq!(place_of("x", 7, "x", 0), None);
    }
}
