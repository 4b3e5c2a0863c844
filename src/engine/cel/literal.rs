//! Texts, comments and quoted names, as the lexer reads them (CEL.g4 of the CEL crate: `STRING`, `BYTES`, `COMMENT`,
//! `ESC_IDENTIFIER`).

/// A comment, text or quoted name; brackets and operators in it are none.
pub(super) struct Literal {
    /// Offset after it.
    pub(super) end: usize,
    /// Whether the lexer takes it as one.
    pub(super) closed: bool,
}

/// The comment, text or quoted name that starts at `at`.
pub(super) fn literal(bytes: &[u8], at: usize) -> Option<Literal> {
    if bytes[at..].starts_with(b"//") {
        let end = bytes[at..].iter().position(|byte| *byte == b'\n').map_or(bytes.len(), |line| at + line);
        return Some(Literal { end, closed: true });
    }
    if bytes[at] == b'`' {
        return quoted_name(bytes, at);
    }
    let mid_word = at > 0 && is_word(bytes[at - 1]);
    let (open, raw) = if mid_word { (at, false) } else { prefix(bytes, at) };
    let quote = *bytes.get(open)?;
    if quote != b'"' && quote != b'\'' {
        return None;
    }
    let triple = bytes[open..].starts_with(&[quote; 3]);
    let style = Style { quote, triple, raw };
    Some(style.text(bytes, open + if triple { 3 } else { 1 }))
}

/// Whether names and numbers have it.
pub(super) fn is_word(byte: u8) -> bool {
    byte.is_ascii_alphanumeric() || byte == b'_'
}

/// `b`, then `r`, each at most once, in either case; where they end, and whether there was an `r`.
fn prefix(bytes: &[u8], at: usize) -> (usize, bool) {
    let is = |at: usize, letter: u8| bytes.get(at).is_some_and(|byte| byte.eq_ignore_ascii_case(&letter));
    let after_b = at + usize::from(is(at, b'b'));
    let raw = is(after_b, b'r');
    (after_b + usize::from(raw), raw)
}

fn quoted_name(bytes: &[u8], at: usize) -> Option<Literal> {
    let within = |byte: &&u8| is_word(**byte) || b".-/ ".contains(*byte);
    let length = bytes[at + 1..].iter().take_while(within).count();
    let end = at + 1 + length;
    (length > 0 && bytes.get(end) == Some(&b'`')).then_some(Literal { end: end + 1, closed: true })
}

#[derive(Clone, Copy)]
struct Style {
    quote: u8,
    triple: bool,
    raw: bool,
}

impl Style {
    /// The text from `at`, its first byte after the opening quotes.
    fn text(self, bytes: &[u8], mut at: usize) -> Literal {
        while at < bytes.len() {
            if self.triple && bytes[at..].starts_with(&[self.quote; 3]) {
                return Literal { end: at + 3, closed: true };
            }
            match bytes[at] {
                byte if byte == self.quote && !self.triple => return Literal { end: at + 1, closed: true },
                b'\n' | b'\r' if !self.triple => return Literal { end: at + 1, closed: false },
                b'\\' if !self.raw => match escape(&bytes[at + 1..]) {
                    Some(length) => at += 1 + length,
                    None => return Literal { end: at + 1, closed: false },
                },
                _ => at += 1,
            }
        }
        Literal { end: bytes.len(), closed: false }
    }
}

/// Length of the escape whose backslash stands before `rest`; `None` for what is none.
fn escape(rest: &[u8]) -> Option<usize> {
    let hexadecimal =
        |count: usize| (rest.len() > count && rest[1..=count].iter().all(u8::is_ascii_hexdigit)).then_some(1 + count);
    match rest.first()? {
        b'a' | b'b' | b'f' | b'n' | b'r' | b't' | b'v' | b'"' | b'\'' | b'\\' | b'?' | b'`' => Some(1),
        b'x' | b'X' => hexadecimal(2),
        b'u' => hexadecimal(4),
        b'U' => hexadecimal(8),
        b'0'..=b'3' => (rest.len() > 2 && rest[1..3].iter().all(|digit| (b'0'..=b'7').contains(digit))).then_some(3),
        _ => None,
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    /// How much of it is one text, if any is.
    fn closed(source: &str) -> Option<&str> {
        literal(source.as_bytes(), 0).filter(|literal| literal.closed).map(|literal| &source[..literal.end])
    }

    #[test]
    fn a_text_ends_where_the_lexer_says() {
        for text in [
            "'a'",
            "\"a\"",
            r"'\''",
            r"r'\'",
            r"bR'\'",
            "'''a'\n'''",
            r#"r"""\""""#,
            r"'\x41\u00e9\U0001F600\101'",
            "`a.b/c-d e`",
            "''",
        ] {
            assert_eq!(closed(&format!("{text} + b")), Some(text), "{text}");
        }
    }

    #[test]
    fn what_the_lexer_does_not_take_is_none() {
        for text in ["'a", "'a\n'", "'a\r'", r"'\q'", r"'\x4'", r"'\u00g0'", r"'\477'", "'''a''", "rb'a'", "``", "`a+b`", "a'b'"]
        {
            assert_eq!(closed(text), None, "{text}");
        }
    }
}
