//! Text in columns.

use crate::why::clean;

/// The text in exactly `width` columns, with an ellipsis where it does not fit. Control characters never reach the terminal.
pub(super) fn fit(text: &str, width: usize) -> String {
    let clean = clean(text);
    if clean.chars().count() <= width {
        return format!("{clean:<width$}");
    }
    clean.chars().take(width.saturating_sub(1)).chain(['…']).take(width).collect()
}

/// The same in no more than `width` columns.
pub(super) fn fit_to(text: &str, width: usize) -> String {
    fit(text, text.chars().count().min(width))
}

/// The same, cut in the middle: beginnings of names are alike, their ends tell them apart.
pub(super) fn fit_middle(text: &str, width: usize) -> String {
    let clean: Vec<char> = clean(text).chars().collect();
    if clean.len() <= width {
        return fit(text, width);
    }
    let end = width.saturating_sub(1) * 2 / 5;
    let beginning = clean.iter().take(width.saturating_sub(1) - end).copied();
    beginning.chain(['…']).chain(clean[clean.len() - end..].iter().copied()).take(width).collect()
}

/// Lines that a text takes, broken at its blanks.
pub(super) fn lines_of(text: &str, width: usize) -> usize {
    let (mut lines, mut column) = (1, 0);
    for length in text.split(' ').map(|word| word.chars().count()) {
        if column > 0 && column + 1 + length > width {
            (lines, column) = (lines + 1, 0);
        }
        column += length + usize::from(column > 0);
        while column > width {
            (lines, column) = (lines + 1, column - width);
        }
    }
    lines
}

/// A title with a line after it, over the whole width.
pub(super) fn rule(title: &str, width: u16) -> String {
    let rest = usize::from(width).saturating_sub(title.chars().count());
    format!("{title}{}", "─".repeat(rest))
}
