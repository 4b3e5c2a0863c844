//! Texts taken apart: words that may be images, and expressions that are never touched.

/// A bare word such as `nginx` is a word, not an image: it must have a path or a tag.
pub(super) fn is_reference(word: &str) -> bool {
    word.contains('/') || word.contains(':')
}

/// Parts of a text: words and what is between them. A word stands alone where no CEL touches it; CEL itself is never a word.
pub(super) fn words(text: &str) -> Vec<(&str, bool)> {
    let mut parts = Vec::new();
    let mut rest = text;
    let mut touches_cel = false;
    while !rest.is_empty() {
        if rest.starts_with("${") {
            let (cel, after) = rest.split_at(cel_length(rest));
            // What was written just before the expression belongs to it.
            if let Some(last) = parts.last_mut() {
                let (word, stands_alone): &mut (&str, bool) = last;
                *stands_alone &= word.ends_with(is_between);
            }
            parts.push((cel, false));
            (rest, touches_cel) = (after, true);
            continue;
        }
        let is_gap = rest.starts_with(is_between);
        let end = rest
            .char_indices()
            .find(|(at, c)| is_between(*c) != is_gap || rest[*at..].starts_with("${"))
            .map_or(rest.len(), |(at, _)| at);
        let (part, after) = rest.split_at(end);
        parts.push((part, !is_gap && !touches_cel));
        (rest, touches_cel) = (after, false);
    }
    parts
}

fn is_between(c: char) -> bool {
    c.is_whitespace() || matches!(c, '"' | '\'' | '=' | ',' | ';' | '(' | ')' | '[' | ']' | '{' | '}' | '<' | '>' | '|')
}

/// Length of the expression that a text begins with: to its closing brace, braces in quotes not counted.
fn cel_length(text: &str) -> usize {
    let (mut depth, mut quote) = (0_usize, None);
    let mut characters = text.char_indices().skip(1);
    while let Some((at, c)) = characters.next() {
        match (quote, c) {
            (Some(_), '\\') => {
                characters.next();
            }
            (Some(open), c) if c == open => quote = None,
            (None, '"' | '\'') => quote = Some(c),
            (None, '{') => depth += 1,
            (None, '}') if depth <= 1 => return at + 1,
            (None, '}') => depth -= 1,
            // Inside of quotes, and everything else.
            _ => {}
        }
    }
    text.len()
}

/// Texts in quotes inside of an expression.
pub(super) fn literals(cel: &str) -> Vec<&str> {
    let mut found = Vec::new();
    let mut rest = cel;
    while let Some(start) = rest.find(['"', '\'']) {
        let quote = rest.as_bytes()[start] as char;
        let inside = &rest[start + 1..];
        let Some(end) = inside.find(quote) else { break };
        found.push(&inside[..end]);
        rest = &inside[end + 1..];
    }
    found
}
