//! What is refused before the parser sees it.
//!
//! The parser builds left-nested trees for chains such as `1+1+…` and `a[0][0]…`, and everything that walks them recurses: a few
//! thousand links overflow the stack, which ends the process. Brackets are bounded by the parser itself; chains are counted here.
//! To the parser, which goes on after errors, what follows a text that does not end is code, and so it is here.

use super::literal::{is_word, literal};

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
        if literal.as_ref().is_some_and(|literal| !literal.closed) || glued(bytes, start, at) {
            return wreck(&bytes[start..], tallest + height.outer.len() + height.here.chain, code).map_err(|why| (why, start));
        }
        code += if literal.is_some() { 1 } else { at - start };
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

/// How tall the tree is at most when nobody knows any more where texts begin and end: everything left is taken for code, each mark
/// for a link of one chain. The parser reads short ones, because its words are better.
fn wreck(rest: &[u8], so_far: usize, code: usize) -> Result<usize, String> {
    let marks = rest.iter().filter(|byte| byte.is_ascii_punctuation() && **byte != b'_').count();
    let height = so_far + marks + rest.windows(2).filter(|pair| pair == b"in").count();
    if height > MAX_CHAIN || code + rest.len() > MAX_CODE {
        return Err(
            "Syntax error: token recognition error: a text that does not end, has an unknown escape, or follows a name".into()
        );
    }
    Ok(height)
}

/// Whether a quote stands right after a name or number, which no expression has: only the lexer knows whether such a text is raw.
fn glued(bytes: &[u8], start: usize, end: usize) -> bool {
    let quote = matches!(bytes.get(end), Some(b'"' | b'\''));
    quote && is_word(bytes[start]) && &bytes[start..end] != b"in"
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
            first if is_word(first) => return self.word(bytes, at),
            _ => {}
        }
        at + 1
    }

    /// Takes a word or number; `in` is an operator.
    fn word(&mut self, bytes: &[u8], at: usize) -> usize {
        let length = bytes[at..].iter().take_while(|byte| is_word(**byte)).count();
        self.here.chain += usize::from(&bytes[at..at + length] == b"in");
        at + length
    }
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
        for quoted in ["'{}'", "\"{}\"", "'''{}'''", "r'{}'", "\"\"\"{}\"\"\"", "b'{}'", "br'{}'"] {
            assert!(height(&quoted.replace("{}", &"+(".repeat(1500))).is_ok(), "{quoted}");
        }
        assert!(height(&format!("1 // {}", "+".repeat(1500))).is_ok());
        assert!(height(&format!("'\\'' {}", "+1".repeat(1500))).is_err());
        assert!(height(&"a".repeat(MAX_CODE + 1)).is_err());
        assert!(height(&format!("'{}'", "a".repeat(MAX_CODE + 1))).is_ok());
        assert!(height(&format!("'{}'", "a".repeat(MAX_LENGTH))).is_err());
    }

    #[test]
    fn a_chain_behind_what_is_no_text_is_not_missed() {
        let chain = ".a".repeat(20_000);
        assert!(height("'a").is_ok() && height(r"'\q' + 1").is_ok(), "the parser says what is wrong");
        let openings = [
            "'",
            "'\r",
            "'\n",
            r"'\q",
            "r'\r",
            "\"\"\"",
            "'''",
            r"'''\q'''",
            "`a//b`",
            r"rb'\' + '",
            r"0xar'\' + '",
            r"1r'\' + '",
            r"xr'\' + '",
        ];
        for before in openings {
            assert!(height(&format!("{before}{chain}")).is_err(), "{before}");
        }
        assert!(height("1 in'ab'.c").is_ok());
    }
}
