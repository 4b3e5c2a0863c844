//! Making new inputs of old ones, by chance that can be repeated.

/// Longest input.
const LONGEST: usize = 64 << 10;

/// What parsers of text take notice of.
const TOKENS: [&str; 40] = [
    "${",
    "}",
    "{",
    "[",
    "]",
    "(",
    ")",
    "\"",
    "'",
    ":",
    ": ",
    "- ",
    "\n",
    "\n  ",
    "|",
    "&a ",
    "*a",
    "<<: *a",
    "!!binary ",
    "---\n",
    "#",
    "@sha256:",
    "//",
    "::",
    "..",
    "~",
    "^1",
    ">=",
    "||",
    "null",
    "true",
    "1e999",
    "-1",
    "0x7fffffffffffffff",
    "9223372036854775808",
    "\\u0000",
    "\u{0}",
    "\u{feff}",
    "required=true",
    "map(x, x)",
];

/// Numbers that look random (xorshift), the same for the same seed.
pub(crate) struct Chance(u64);

impl Chance {
    pub(crate) fn new(seed: u64) -> Self {
        Self(seed.wrapping_mul(0x9e37_79b9_7f4a_7c15) | 1)
    }

    fn next(&mut self) -> u64 {
        self.0 ^= self.0 << 13;
        self.0 ^= self.0 >> 7;
        self.0 ^= self.0 << 17;
        self.0
    }

    /// A number below `bound`; 0 where there is none.
    fn below(&mut self, bound: usize) -> usize {
        let bound = u64::try_from(bound).unwrap_or(u64::MAX).max(1);
        usize::try_from(self.next() % bound).unwrap_or_default()
    }

    /// A piece of so many bytes.
    fn range(&mut self, length: usize) -> std::ops::Range<usize> {
        let start = self.below(length + 1);
        start..start + self.below(length - start + 1)
    }
}

/// One of the inputs, changed in one to eight places.
pub(crate) fn mutate(corpus: &[Vec<u8>], chance: &mut Chance) -> Vec<u8> {
    let mut input = corpus[chance.below(corpus.len())].clone();
    for _ in 0..=chance.below(8) {
        change(&mut input, corpus, chance);
    }
    input.truncate(LONGEST);
    input
}

fn change(input: &mut Vec<u8>, corpus: &[Vec<u8>], chance: &mut Chance) {
    let at = chance.below(input.len() + 1);
    match chance.below(8) {
        // A bit.
        0 if at < input.len() => input[at] ^= 1 << chance.below(8),
        // Any byte.
        1 => input.insert(at, u8::try_from(chance.below(256)).unwrap_or_default()),
        // A piece less.
        2 => drop(input.drain(chance.range(input.len()))),
        // A piece twice, or often: nesting and length.
        3 => {
            let piece = input[chance.range(input.len())].to_vec();
            let times = [1, 2, 8, 64][chance.below(4)];
            for _ in 0..times {
                if input.len() + piece.len() < LONGEST {
                    input.splice(at..at, piece.iter().copied());
                }
            }
        }
        // The end cut off.
        4 => input.truncate(at),
        // A piece of another input.
        5 => {
            let other = &corpus[chance.below(corpus.len())];
            let piece = other[chance.range(other.len())].to_vec();
            input.splice(at..at, piece);
        }
        // A word in the place of a byte, or between two.
        _ => {
            let token = TOKENS[chance.below(TOKENS.len())];
            let end = (at + chance.below(2)).min(input.len());
            input.splice(at..end, token.bytes());
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn chance_is_repeated_and_inputs_differ() {
        let corpus = vec![b"a: 1\n".to_vec(), b"- b\n".to_vec()];
        let made = |seed| {
            let mut chance = Chance::new(seed);
            (0..200).map(|_| mutate(&corpus, &mut chance)).collect::<Vec<_>>()
        };
        assert_eq!(made(7), made(7));
        assert_ne!(made(7), made(8));
        let different: std::collections::BTreeSet<_> = made(7).into_iter().collect();
        assert!(different.len() > 150, "{} of 200", different.len());
    }
}
