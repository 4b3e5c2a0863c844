//! A parsed expression.

use std::{fmt, panic::AssertUnwindSafe, sync::Arc};

use cel::{
    IdedExpr,
    common::ast::SourceInfo,
    parser::{ParseError, ParseErrors},
};
use thiserror::Error;

use super::{
    environment::{Dialect, Environment},
    guard, lower,
    mask::Masked,
    references::References,
    stack,
};

/// A parsed expression; cheap to clone and to share.
#[derive(Clone)]
pub struct Expression(Arc<Parsed>);

struct Parsed {
    source: String,
    /// As written: macros are still calls, so that messages speak of what the author wrote.
    tree: IdedExpr,
    places: Places,
    /// With macros expanded and bounds woven in: what is evaluated.
    lowered: IdedExpr,
    references: References,
    environment: &'static Environment,
    /// How deep a walk of the tree may go.
    height: usize,
}

/// Why a text is not an expression, and where that was seen.
#[derive(Clone, Debug, PartialEq, Eq, Error)]
#[error("{line}:{column}: {message}")]
pub struct SyntaxError {
    /// What is wrong: kro's words without the list of every token that could have followed.
    pub message: String,
    /// Line, from 1.
    pub line: usize,
    /// Column in characters, from 1.
    pub column: usize,
    /// Characters before the place.
    pub offset: usize,
}

impl Expression {
    /// Parses a text in kro's environment; texts that were parsed lately are remembered.
    ///
    /// Fails on syntax, on misused macros (`has(1)`), and on texts over [`MAX_LENGTH`](super::MAX_LENGTH),
    /// [`MAX_CODE`](super::MAX_CODE) or with chains over [`MAX_CHAIN`](super::MAX_CHAIN).
    pub fn parse(source: &str) -> Result<Self, SyntaxError> {
        Self::parse_as(source, Dialect::Kro)
    }

    /// Parses a text in another environment.
    pub fn parse_as(source: &str, dialect: Dialect) -> Result<Self, SyntaxError> {
        let environment = Environment::of(dialect);
        environment.parsed().or_parse(source, || Self::parse_in(source, environment))
    }

    /// Forgets what was parsed, so that a measurement is one of parsing.
    pub fn forget_parsed() {
        [Dialect::Kro, Dialect::Delivery].into_iter().for_each(|dialect| Environment::of(dialect).parsed().forget());
    }

    pub(super) fn parse_in(source: &str, environment: &'static Environment) -> Result<Self, SyntaxError> {
        let height = guard::height(source).map_err(|(message, at)| SyntaxError::at_byte(source, at, message))?;
        let parsed = stack::roomy(height, || {
            let (tree, places) = read_masked(source)?;
            Self::of_tree(source, height, tree, places, environment)
        });
        parsed.unwrap_or_else(|| Err(SyntaxError::at(source, 0, "there is no thread to parse the expression in".to_owned())))
    }

    pub(super) fn of_tree(
        source: &str,
        height: usize,
        tree: IdedExpr,
        places: Places,
        environment: &'static Environment,
    ) -> Result<Self, SyntaxError> {
        let lowered =
            lower::lower(&tree, environment).map_err(|error| SyntaxError::at(source, places.of(error.id), error.message))?;
        let offset = |id| places.of(id);
        let references = References::of(&tree, environment, &offset);
        Ok(Self(Arc::new(Parsed { source: source.to_owned(), tree, places, lowered, references, environment, height })))
    }

    /// The text it was parsed from.
    pub fn source(&self) -> &str {
        &self.0.source
    }

    /// The variables and functions that it uses.
    pub fn references(&self) -> &References {
        &self.0.references
    }

    pub(super) fn environment(&self) -> &'static Environment {
        self.0.environment
    }

    pub(super) fn height(&self) -> usize {
        self.0.height
    }

    pub(super) fn tree(&self) -> &IdedExpr {
        &self.0.tree
    }

    pub(super) fn lowered(&self) -> &IdedExpr {
        &self.0.lowered
    }

    /// Characters before the node of this number.
    pub(super) fn offset(&self, id: u64) -> usize {
        self.0.places.of(id)
    }
}

impl fmt::Debug for Expression {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.debug_tuple("Expression").field(&self.0.source).finish()
    }
}

impl fmt::Display for Expression {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.write_str(&self.0.source)
    }
}

impl PartialEq for Expression {
    fn eq(&self, other: &Self) -> bool {
        self.0.source == other.0.source
    }
}

impl Eq for Expression {}

/// Places of nodes. The parser counts bytes, people count characters.
pub(super) struct Places {
    nodes: SourceInfo,
    /// Ends of the characters of more than one byte, with the bytes that they and those before them have too many.
    wide: Vec<(usize, usize)>,
}

impl Places {
    fn new(source: &str, nodes: SourceInfo) -> Self {
        let mut wide = Vec::new();
        let mut extra = 0;
        for (start, letter) in source.char_indices().filter(|(_, letter)| letter.len_utf8() > 1) {
            extra += letter.len_utf8() - 1;
            wide.push((start + letter.len_utf8(), extra));
        }
        Self { nodes, wide }
    }

    /// Characters before a node.
    fn of(&self, id: u64) -> usize {
        let byte = self.nodes.offset_for(id).map_or(0, |(start, _)| start as usize);
        let before = self.wide.partition_point(|(end, _)| *end <= byte);
        byte - before.checked_sub(1).map_or(0, |last| self.wide[last].1)
    }
}

fn read_masked(source: &str) -> Result<(IdedExpr, Places), SyntaxError> {
    let Some(masked) = Masked::new(source) else { return read(source) };
    let (mut tree, places) = read(&masked.source)?;
    masked.restore(&mut tree, &|id| places.of(id));
    Ok((tree, places))
}

/// The generated parser is not ours: a panic in it is an error about this text, not the end of the process.
pub(super) fn read(source: &str) -> Result<(IdedExpr, Places), SyntaxError> {
    let parser =
        cel::Env::default().parser().enable_optional_syntax(true).enable_ident_escape_syntax(true).error_recovery_limit(4);
    let (tree, nodes) = std::panic::catch_unwind(AssertUnwindSafe(|| parser.parse_with_source_info(source)))
        .map_err(|_| SyntaxError::at(source, 0, "expression cannot be parsed".to_owned()))?
        .map_err(|errors| first_error(source, errors))?;
    Ok((tree, Places::new(source, nodes)))
}

fn first_error(source: &str, errors: ParseErrors) -> SyntaxError {
    let first = errors.errors.into_iter().min_by_key(|error| error.pos);
    let Some(ParseError { pos: (line, column), msg, .. }) = first else {
        return SyntaxError::at(source, 0, "expression cannot be parsed".to_owned());
    };
    let line = usize::try_from(line).unwrap_or(1).max(1);
    let column = usize::try_from(column).unwrap_or(1).max(1);
    let before: usize = source.split_inclusive('\n').take(line - 1).map(|line| line.chars().count()).sum();
    SyntaxError { message: reworded(&msg), line, column, offset: before + column - 1 }
}

/// Leaves out the parser's list of every token that could have followed.
fn reworded(message: &str) -> String {
    if message.starts_with("invalid bytes literal") || message.starts_with("invalid string literal") {
        return "unable to unescape string".to_owned();
    }
    // The parser says these with its own types.
    if message.contains("Recursion limit") {
        return "expression is nested too deeply".to_owned();
    }
    if message.starts_with("Incomplete `") {
        return "expression is incomplete".to_owned();
    }
    match message.split_once(" expecting {") {
        Some((found, _)) => found.to_owned(),
        None => message.to_owned(),
    }
}

impl SyntaxError {
    fn at(source: &str, offset: usize, message: String) -> Self {
        let before: String = source.chars().take(offset).collect();
        let line = before.matches('\n').count() + 1;
        let column = before.rsplit('\n').next().unwrap_or_default().chars().count() + 1;
        Self { message, line, column, offset }
    }

    fn at_byte(source: &str, byte: usize, message: String) -> Self {
        let offset = source.char_indices().take_while(|(start, _)| *start < byte).count();
        Self::at(source, offset, message)
    }
}
