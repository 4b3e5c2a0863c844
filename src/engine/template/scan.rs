//! Finding `${…}` in a string, byte by byte as kro does (kro.md 3.1).

/// kro's words for an expression inside an expression.
pub const NESTED: &str = "nested expressions are not allowed unless inside string literals";

/// A part of a string.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Piece<'a> {
    /// Text that stands for itself.
    Literal(&'a str),
    /// The text between `${` and `}`, and where it starts in the string (in bytes).
    Expression {
        /// The expression, spaces included.
        text: &'a str,
        /// Offset of its first byte.
        start: usize,
    },
}

/// Cuts a string into its pieces; an unterminated `${` is literal. The error is [`NESTED`], at a byte offset.
pub fn scan(text: &str) -> Result<Vec<Piece<'_>>, usize> {
    let mut pieces = Vec::new();
    let mut literal = 0;
    let mut at = 0;
    let mut open_ends = 0;
    let mut ends = None;
    while let Some(found) = text[at..].find("${") {
        let open = at + found;
        let closed = match &ends {
            None => closing(text.as_bytes(), open + 2)?,
            Some(ends) => closing_by(ends, open + 2)?,
        };
        let Some(close) = closed else {
            at = open + 1;
            open_ends += 1;
            if open_ends == OPEN_ENDS {
                ends = Some(all_ends(text.as_bytes()));
            }
            continue;
        };
        if literal < open {
            pieces.push(Piece::Literal(&text[literal..open]));
        }
        pieces.push(Piece::Expression { text: &text[open + 2..close], start: open + 2 });
        at = close + 1;
        literal = at;
    }
    if literal < text.len() {
        pieces.push(Piece::Literal(&text[literal..]));
    }
    Ok(pieces)
}

/// Each expression that does not end is read to the end of the text; with more of them than this, the ends of all are found at once.
const OPEN_ENDS: usize = 16;
/// What lies ahead of a byte, outside and inside of double quotes: see [`all_ends`].
type Ends = [Vec<u32>; 2];
const NO_END: u32 = u32::MAX;
/// Marks the place of an expression inside an expression.
const NESTED_AT: u32 = 1 << 31;

/// [`closing`] for every place of a text, in one pass from its end: an expression that goes on from a byte, outside (0) or inside (1)
/// of double quotes, ends where this says. Texts have less than 2 GiB.
fn all_ends(bytes: &[u8]) -> Ends {
    let mut ends = [vec![NO_END; bytes.len() + 2], vec![NO_END; bytes.len() + 2]];
    for at in (0..bytes.len()).rev() {
        let place = u32::try_from(at).unwrap_or(NO_END);
        ends[1][at] = match bytes[at] {
            b'\\' => ends[1][at + 2],
            b'"' => ends[0][at + 1],
            _ => ends[1][at + 1],
        };
        ends[0][at] = match bytes[at] {
            b'"' => ends[1][at + 1],
            b'$' if bytes.get(at + 1) == Some(&b'{') && at > 0 && bytes[at - 1] != b'"' => place | NESTED_AT,
            b'}' => place,
            // What is inside of the braces ends first, then the rest goes on behind it.
            b'{' => match ends[0][at + 1] {
                inner if inner == NO_END || inner & NESTED_AT != 0 => inner,
                inner => ends[0][inner as usize + 1],
            },
            _ => ends[0][at + 1],
        };
    }
    ends
}

fn closing_by(ends: &Ends, start: usize) -> Result<Option<usize>, usize> {
    match ends[0].get(start).copied().unwrap_or(NO_END) {
        NO_END => Ok(None),
        nested if nested & NESTED_AT != 0 => Err((nested & !NESTED_AT) as usize),
        end => Ok(Some(end as usize)),
    }
}

/// Offset of the brace that ends the expression starting at `start`; only double quotes protect braces.
fn closing(bytes: &[u8], start: usize) -> Result<Option<usize>, usize> {
    let mut depth = 1_usize;
    let mut quoted = false;
    let mut at = start;
    while at < bytes.len() {
        match bytes[at] {
            b'\\' if quoted => at += 1,
            b'"' => quoted = !quoted,
            b'$' if !quoted && bytes.get(at + 1) == Some(&b'{') && bytes[at - 1] != b'"' => return Err(at),
            b'{' if !quoted => depth += 1,
            b'}' if !quoted => {
                depth -= 1;
                if depth == 0 {
                    return Ok(Some(at));
                }
            }
            _ => {}
        }
        at += 1;
    }
    Ok(None)
}

#[cfg(test)]
mod tests {
    use proptest::prelude::*;

    use super::*;
    use crate::{template::Text, testing::json_lines};

    #[test]
    fn unterminated_expressions_do_not_hide_later_ones() {
        let pieces = scan("a ${ b ${c}").unwrap_err();
        assert_eq!(pieces, 7, "the scanner meets the second `${{` inside the first expression");
        assert_eq!(scan("open ${ x").unwrap(), [Piece::Literal("open ${ x")]);
    }

    /// What kro's own scanner makes of these (random texts, 200 000 of which were compared).
    #[test]
    fn what_is_not_closed_stays_text_and_what_follows_is_read() {
        for (text, expected) in [
            (r#"${"${\}""#, vec![r"\"[..1].to_owned()]),
            (r#" a' ${a}${a}"${"#, vec!["a".to_owned(), "a".to_owned()]),
            (r#"a '${"${"}a"#, vec![r#""${""#.to_owned()]),
            (r#"${a "a}${a}${"#, vec!["a".to_owned()]),
            (r#"{$"${ }${"#, vec![" ".to_owned()]),
            (r#"${$}""${{"${'"#, vec!["$".to_owned()]),
            (r#"${"not closed}"#, vec![]),
        ] {
            let pieces = scan(text).unwrap();
            let found = pieces.iter().filter_map(|piece| match piece {
                Piece::Expression { text, .. } => Some((*text).to_owned()),
                Piece::Literal(_) => None,
            });
            assert_eq!(found.collect::<Vec<_>>(), expected, "{text}");
        }
        for nested in [r"${\${", "${${a}}", "${${a}"] {
            assert!(scan(nested).is_err(), "{nested}");
        }
    }

    #[test]
    fn a_brace_in_double_quotes_does_not_end_an_expression() {
        assert_eq!(scan(r#"${"x}y"}"#).unwrap(), [Piece::Expression { text: r#""x}y""#, start: 2 }]);
        assert_eq!(scan("${'x}").unwrap(), [Piece::Expression { text: "'x", start: 2 }]);
    }

    /// Every vector of the running controller's own scanner.
    #[test]
    fn vectors() {
        let (inputs, outputs) = (json_lines("kro/vectors/parse.in.jsonl"), json_lines("kro/vectors/parse.out.jsonl"));
        for (input, output) in inputs.iter().zip(&outputs) {
            vector(input["str"].as_str().unwrap(), output);
        }
        println!("SHOW 03 scanner-vectors {}/{}", inputs.len(), outputs.len());
    }

    fn vector(text: &str, expected: &serde_json::Value) {
        let Ok(pieces) = scan(text) else { return assert_eq!(expected["error"], NESTED, "{text}") };
        let found: Vec<_> =
            pieces.iter().filter_map(|p| if let Piece::Expression { text, .. } = p { Some(*text) } else { None }).collect();
        assert_eq!(serde_json::json!(found), expected["exprs"], "{text}");
        match Text::read(text).unwrap() {
            None => assert_eq!(expected["cel"], serde_json::Value::Null, "{text}"),
            Some(read) => {
                assert_eq!(read.cel, expected["cel"].as_str().unwrap(), "{text}");
                assert_eq!(read.standalone, expected["standalone"].as_bool().unwrap(), "{text}");
            }
        }
    }

    /// Texts with thousands of expressions that do not end are read in one pass.
    #[test]
    fn what_never_ends_is_read_once() {
        let text = "${\"".repeat(200_000);
        assert_eq!(scan(&text).unwrap(), [Piece::Literal(&text)]);
    }

    proptest! {
        /// The ends of all expressions, found at once, are those that are found one by one.
        #[test]
        fn ends_are_the_same_either_way(text in r#"([ab${}"'\\\\]|\$\{|\$\{"){0,40}"#) {
            let ends = all_ends(text.as_bytes());
            for (open, _) in text.match_indices("${") {
                prop_assert_eq!(closing_by(&ends, open + 2), closing(text.as_bytes(), open + 2), "{} at {}", text, open);
            }
        }

        /// Pieces put together again are the string, and scanning never panics.
        #[test]
        fn pieces_cover_the_string(text in r#"([a-zé${}"'\\ ]|\$\{){0,40}"#) {
            if let Ok(pieces) = scan(&text) {
                let whole: String = pieces.iter().map(|piece| match piece {
                    Piece::Literal(text) => (*text).to_owned(),
                    Piece::Expression { text, .. } => format!("${{{text}}}"),
                }).collect();
                prop_assert_eq!(whole, text);
            }
        }
    }
}
