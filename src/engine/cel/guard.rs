//! What is refused before the parser sees it.
//!
//! The parser builds left-nested trees for chains such as `1+1+…` and `a[0][0]…`, and everything that walks them recurses: a few
//! thousand links overflow the stack, which ends the process. Brackets are bounded by the parser itself; chains are counted here.

/// Longest expression in bytes, texts in it included: a template with a long text is one expression, and no object is longer.
pub const MAX_LENGTH: usize = 1_500_000;

/// Most bytes of an expression that are not in a text or a comment.
pub const MAX_CODE: usize = 64_000;

/// Most operators, selections, indexes and calls on any one way from the root of an expression to a leaf.
pub const MAX_CHAIN: usize = 1000;

/// How tall the tree of an expression will be at most; else why it is not parsed, and the byte offset where that was seen.
pub(super) fn height(source: &str) -> Result<usize, (String, usize)> {
    if source.len() > MAX_LENGTH {
        return Err((format!("expression of {} bytes is over the limit of {MAX_LENGTH}", source.len()), MAX_LENGTH));
    }
    let mut height = Height::default();
    let mut tallest = 0;
    let bytes = source.as_bytes();
    let mut at = 0;
    let mut code = 0;
    while at < bytes.len() {
        let start = at;
        let literal = literal(bytes, at);
        at = literal.as_ref().map_or_else(|| height.step(bytes, start), |literal| literal.end);
        // To the parser a text that does not end is code.
        code += if literal.is_some_and(|literal| literal.closed) { 1 } else { at - start };
        if code > MAX_CODE {
            return Err((format!("expression of more than {MAX_CODE} bytes without its texts, split it"), at.min(bytes.len())));
        }
        tallest = tallest.max(height.here.chain).max(height.outer.len());
        if height.here.chain > MAX_CHAIN {
            return Err((format!("expression chains more than {MAX_CHAIN} operations, split it"), at.min(bytes.len())));
        }
    }
    Ok(tallest)
}

/// Height of the tree that the parser will build, one [`Level`] for each open bracket.
#[derive(Default)]
struct Height {
    outer: Vec<Level>,
    here: Level,
}

#[derive(Clone, Copy, Default)]
struct Level {
    /// Height of the element that is being read: chains nest to the left, so each link adds one.
    chain: usize,
    /// Greatest height among the elements before it.
    tallest: usize,
}

impl Height {
    /// Takes the token that starts at `at`; the offset after it.
    fn step(&mut self, bytes: &[u8], at: usize) -> usize {
        match bytes[at] {
            b'(' | b'[' | b'{' => {
                self.here.chain += 1;
                self.outer.push(std::mem::take(&mut self.here));
            }
            b')' | b']' | b'}' => {
                let inner = self.here.chain.max(self.here.tallest);
                self.here = self.outer.pop().unwrap_or_default();
                self.here.chain = self.here.chain.max(inner + 1);
            }
            b',' => self.here = Level { chain: 0, tallest: self.here.tallest.max(self.here.chain) },
            b'.' | b'+' | b'-' | b'*' | b'/' | b'%' | b'<' | b'>' | b'=' | b'!' | b'&' | b'|' | b'?' => {
                let doubled = matches!((bytes[at], bytes.get(at + 1)), (b'&', Some(b'&')) | (b'|', Some(b'|')) | (_, Some(b'=')));
                self.here.chain += 1;
                return at + 1 + usize::from(doubled);
            }
            first if first.is_ascii_alphabetic() || first == b'_' => return self.word(bytes, at),
            _ => {}
        }
        at + 1
    }

    /// Takes a word; `in` is an operator.
    fn word(&mut self, bytes: &[u8], at: usize) -> usize {
        let length = bytes[at..].iter().take_while(|byte| byte.is_ascii_alphanumeric() || **byte == b'_').count();
        self.here.chain += usize::from(&bytes[at..at + length] == b"in");
        at + length
    }
}

/// A comment or text; brackets and operators in it do not count.
pub(super) struct Literal {
    /// Offset after it.
    pub(super) end: usize,
    /// Whether it ends as it must.
    pub(super) closed: bool,
}

/// The comment or text that starts at `at`.
pub(super) fn literal(bytes: &[u8], at: usize) -> Option<Literal> {
    if bytes[at..].starts_with(b"//") {
        let end = bytes[at..].iter().position(|byte| *byte == b'\n').map_or(bytes.len(), |line| at + line);
        return Some(Literal { end, closed: true });
    }
    let prefix = bytes[at..].iter().take(2).take_while(|byte| b"rRbB".contains(byte)).count();
    let mid_word = at > 0 && (bytes[at - 1].is_ascii_alphanumeric() || bytes[at - 1] == b'_');
    let open = at + if mid_word { 0 } else { prefix };
    let quote = *bytes.get(open)?;
    if quote != b'"' && quote != b'\'' {
        return None;
    }
    let raw = bytes[at..open].iter().any(|byte| b"rR".contains(byte));
    let triple = bytes[open..].starts_with(&[quote; 3]);
    Some(closing(bytes, open + if triple { 3 } else { 1 }, quote, triple, raw))
}

fn closing(bytes: &[u8], mut at: usize, quote: u8, triple: bool, raw: bool) -> Literal {
    while at < bytes.len() {
        if bytes[at] == b'\\' && !raw {
            at += 2;
        } else if triple && bytes[at..].starts_with(&[quote; 3]) {
            return Literal { end: at + 3, closed: true };
        } else if !triple && (bytes[at] == quote || bytes[at] == b'\n') {
            return Literal { end: at + 1, closed: bytes[at] == quote };
        } else {
            at += 1;
        }
    }
    Literal { end: bytes.len(), closed: false }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn counts_chains_and_not_breadth() {
        assert!(height(&vec!["1"; 900].join("+")).is_ok());
        assert!(height(&vec!["1"; 1500].join("+")).is_err());
        assert!(height(&format!("a{}", "[0]".repeat(1500))).is_err());
        assert!(height(&format!("a{}", ".b".repeat(1500))).is_err());
        assert!(height(&vec!["1"; 1500].join(" in ")).is_err());
        assert!(height(&format!("[{}]", vec!["a.b.c + 1"; 2000].join(","))).is_ok());
        let nested = format!("({}) + {}", vec!["1"; 600].join("+"), vec!["1"; 600].join("+"));
        assert!(height(&nested).is_err(), "the chain in brackets is the first operand of the other");
    }

    #[test]
    fn text_in_literals_does_not_count() {
        for quoted in ["'{}'", "\"{}\"", "'''{}'''", "r'{}'", "\"\"\"{}\"\"\"", "b'{}'", "rb'{}'"] {
            assert!(height(&quoted.replace("{}", &"+(".repeat(1500))).is_ok(), "{quoted}");
        }
        assert!(height(&format!("1 // {}", "+".repeat(1500))).is_ok());
        assert!(height(&format!("'\\'' {}", "+1".repeat(1500))).is_err());
        assert!(height(&"a".repeat(MAX_CODE + 1)).is_err());
        assert!(height(&format!("'{}'", "a".repeat(MAX_CODE + 1))).is_ok());
        assert!(height(&format!("'{}", "a".repeat(MAX_CODE + 1))).is_err(), "a text that does not end is none");
        assert!(height(&format!("'{}'", "a".repeat(MAX_LENGTH))).is_err());
    }
}
