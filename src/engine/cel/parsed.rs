//! Expressions that were parsed already. A loop compiles the same definitions whenever a kind that they use changes, and parsing
//! is most of that.

use std::{
    collections::HashMap,
    sync::{Mutex, PoisonError},
};

use super::expression::{Expression, SyntaxError};

/// Most expressions that are remembered; then all are forgotten.
const MOST: usize = 1024;
/// Longest text that is remembered, in bytes: together with [`MOST`] it bounds the memory.
const LONGEST: usize = 1024;

/// The expressions by their text.
#[derive(Default)]
pub(super) struct Parsed(Mutex<HashMap<String, Expression>>);

impl Parsed {
    /// The expression of a text, parsed where it is not known. Mistakes are not remembered.
    pub(super) fn or_parse(
        &self,
        source: &str,
        parse: impl FnOnce() -> Result<Expression, SyntaxError>,
    ) -> Result<Expression, SyntaxError> {
        if source.len() > LONGEST {
            return parse();
        }
        if let Some(known) = self.0.lock().unwrap_or_else(PoisonError::into_inner).get(source) {
            return Ok(known.clone());
        }
        let expression = parse()?;
        let mut all = self.0.lock().unwrap_or_else(PoisonError::into_inner);
        if all.len() >= MOST {
            all.clear();
        }
        all.insert(source.to_owned(), expression.clone());
        Ok(expression)
    }

    pub(super) fn forget(&self) {
        self.0.lock().unwrap_or_else(PoisonError::into_inner).clear();
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    /// Answers whether it was parsed.
    fn ask(parsed: &Parsed, source: &str) -> bool {
        let mut asked = false;
        let found = parsed.or_parse(source, || {
            asked = true;
            Expression::parse(source)
        });
        assert!(found.is_ok_and(|found| found.source() == source));
        asked
    }

    #[test]
    fn an_expression_is_parsed_once_and_memory_is_bounded() {
        let parsed = Parsed::default();
        assert_eq!([ask(&parsed, "1 + 1"), ask(&parsed, "1 + 1"), ask(&parsed, "1 + 2")], [true, false, true]);
        let long = format!("1 +{}1", " ".repeat(LONGEST));
        assert_eq!([ask(&parsed, &long), ask(&parsed, &long)], [true, true]);
        for number in 0..MOST {
            ask(&parsed, &number.to_string());
        }
        assert!(parsed.0.lock().unwrap().len() <= MOST);
        assert!(ask(&parsed, "1 + 1"), "it was forgotten");
    }

    #[test]
    fn mistakes_are_found_each_time() {
        let parsed = Parsed::default();
        for _ in 0..2 {
            assert!(parsed.or_parse("1 +", || Expression::parse("1 +")).is_err());
        }
    }
}
