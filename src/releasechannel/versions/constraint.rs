//! Constraints: `>=1.2 <2 || ~3.1`.

use std::fmt;

use super::Version;

/// Bytes of a constraint.
const LONGEST: usize = 512;
const MOST_ALTERNATIVES: usize = 32;

/// Alternatives of conjunctions of comparisons.
///
/// A conjunction in which no part has a prerelease never allows prereleases; `-0` opens it (ocm.md section 12).
#[derive(Clone, Debug)]
pub struct Constraint {
    raw: String,
    alternatives: Vec<Vec<Comparison>>,
}

/// The text is no constraint.
#[derive(Clone, Debug, PartialEq, Eq, thiserror::Error)]
#[error("`{text}` is not a version constraint")]
pub struct BadConstraint {
    /// What was given, shortened.
    pub text: String,
}

#[derive(Clone, Copy, Debug, PartialEq, Eq)]
enum Operator {
    Equal,
    NotEqual,
    Greater,
    Less,
    GreaterOrEqual,
    LessOrEqual,
    Tilde,
    Caret,
}

/// How much of the version was given; a wildcard counts as not given.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
enum Given {
    Nothing,
    Major,
    Minor,
    All,
}

#[derive(Clone, Debug)]
struct Comparison {
    operator: Operator,
    version: Version,
    given: Given,
}

impl Constraint {
    /// Reads a constraint. Space or comma is "and", `||` is "or". As long and of as many alternatives as the library takes.
    pub fn parse(raw: &str) -> Result<Self, BadConstraint> {
        let bad = || BadConstraint { text: raw.chars().take(120).collect() };
        if raw.len() > LONGEST || raw.split("||").count() > MOST_ALTERNATIVES {
            return Err(bad());
        }
        let alternatives: Option<Vec<_>> = raw.split("||").map(conjunction).collect();
        Ok(Self { raw: raw.to_owned(), alternatives: alternatives.ok_or_else(bad)? })
    }

    /// Whether the version satisfies the constraint.
    pub fn allows(&self, version: &Version) -> bool {
        self.alternatives.iter().any(|all| {
            let takes_prereleases = all.iter().any(|comparison| !comparison.version.prerelease.is_empty());
            (version.prerelease.is_empty() || takes_prereleases) && all.iter().all(|comparison| comparison.holds(version))
        })
    }
}

impl fmt::Display for Constraint {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.write_str(&self.raw)
    }
}

impl Comparison {
    fn holds(&self, version: &Version) -> bool {
        let order = version.precedence(&self.version);
        match self.operator {
            Operator::Equal if self.given == Given::All => order.is_eq(),
            Operator::Equal | Operator::Tilde => order.is_ge() && self.is_tilde_range(version),
            Operator::NotEqual => self.differs(version),
            Operator::Greater => self.is_above(version),
            Operator::Less => order.is_lt(),
            Operator::GreaterOrEqual => order.is_ge(),
            Operator::LessOrEqual => self.is_at_most(version),
            Operator::Caret => order.is_ge() && self.is_caret_range(version),
        }
    }

    fn is_tilde_range(&self, version: &Version) -> bool {
        let is_everything = self.version.numbers == [0; 3] && matches!(self.given, Given::Nothing | Given::All);
        let same_minor = version.numbers[1] == self.version.numbers[1] || self.given == Given::Major;
        is_everything || (version.numbers[0] == self.version.numbers[0] && same_minor)
    }

    fn is_caret_range(&self, version: &Version) -> bool {
        let ([major, minor, patch], [v_major, v_minor, v_patch]) = (self.version.numbers, version.numbers);
        match (major, minor, self.given) {
            (1.., _, _) | (_, _, Given::Major) => v_major == major,
            (0, 1.., _) | (0, _, Given::Minor) => v_major == 0 && v_minor == minor,
            // `^*` is `^0.0.0` to the library.
            (0, 0, Given::Nothing | Given::All) => v_major == 0 && v_minor == 0 && v_patch == patch,
        }
    }

    fn is_above(&self, version: &Version) -> bool {
        let ([major, minor, _], [v_major, v_minor, _]) = (self.version.numbers, version.numbers);
        match self.given {
            Given::Major => v_major > major,
            Given::Minor => (v_major, v_minor) > (major, minor),
            Given::Nothing | Given::All => version.precedence(&self.version).is_gt(),
        }
    }

    fn is_at_most(&self, version: &Version) -> bool {
        let ([major, minor, _], [v_major, v_minor, _]) = (self.version.numbers, version.numbers);
        match self.given {
            Given::Major => v_major <= major,
            // `<=*` is `<=0.0` to the library.
            Given::Nothing | Given::Minor => (v_major, v_minor) <= (major, minor),
            Given::All => version.precedence(&self.version).is_le(),
        }
    }

    fn differs(&self, version: &Version) -> bool {
        let ([major, minor, _], [v_major, v_minor, _]) = (self.version.numbers, version.numbers);
        match self.given {
            Given::Major => v_major != major,
            // Of one minor version the library compares prereleases alone.
            Given::Minor if (v_major, v_minor) == (major, minor) => {
                super::compare_prereleases(&version.prerelease, &self.version.prerelease).is_ne()
            }
            Given::Minor => true,
            // `!=*` is `!=0.0.0` to the library.
            Given::Nothing | Given::All => version.precedence(&self.version).is_ne(),
        }
    }
}

/// Comparisons parted by spaces or one comma.
fn conjunction(text: &str) -> Option<Vec<Comparison>> {
    let parts: Option<Vec<_>> = text.split(',').map(spaced).collect();
    Some(parts?.into_iter().flatten().collect())
}

/// Comparisons parted by spaces; the first may be a hyphen range, `a - b`.
fn spaced(text: &str) -> Option<Vec<Comparison>> {
    let words: Vec<&str> = text.split_whitespace().collect();
    let (mut all, mut rest) = (Vec::new(), words.as_slice());
    if let [lower, "-", upper, after @ ..] = rest {
        all.push(comparison(Operator::GreaterOrEqual, lower)?);
        all.push(comparison(Operator::LessOrEqual, upper)?);
        rest = after;
    }
    while let Some((first, after)) = rest.split_first() {
        rest = after;
        let (operator, mut version) = operator(first)?;
        // The operator stood alone: `>= 1.0`.
        if version.is_empty() {
            (version, rest) = rest.split_first().map(|(version, after)| (*version, after))?;
        }
        all.push(comparison(operator, version)?);
    }
    (!all.is_empty()).then_some(all)
}

fn operator(word: &str) -> Option<(Operator, &str)> {
    let end = word.find(|c: char| !"=!<>~^".contains(c)).unwrap_or(word.len());
    let (sign, rest) = word.split_at(end);
    let operator = match sign {
        "" | "=" => Operator::Equal,
        "!=" => Operator::NotEqual,
        ">" => Operator::Greater,
        "<" => Operator::Less,
        ">=" | "=>" => Operator::GreaterOrEqual,
        "<=" | "=<" => Operator::LessOrEqual,
        "~" | "~>" => Operator::Tilde,
        "^" => Operator::Caret,
        _ => return None,
    };
    Some((operator, rest))
}

fn comparison(operator: Operator, text: &str) -> Option<Comparison> {
    let tail = text.find(['-', '+']).unwrap_or(text.len());
    let (core, tail) = text.split_at(tail);
    let core = core.strip_prefix('v').unwrap_or(core);
    let parts: Vec<&str> = core.split('.').collect();
    if parts.len() > 3 || !parts.iter().all(|part| is_wildcard(part) || super::number(part).is_some()) {
        return None;
    }
    let count = parts.iter().take_while(|part| !is_wildcard(part)).count();
    let given = [Given::Nothing, Given::Major, Given::Minor, Given::All][count];
    let mut numbers: Vec<&str> = parts[..count].to_vec();
    numbers.resize(3, "0");
    let version = Version::parse(&format!("{}{tail}", numbers.join(".")))?;
    Some(Comparison { operator, version, given })
}

fn is_wildcard(part: &str) -> bool {
    matches!(part, "x" | "X" | "*")
}
