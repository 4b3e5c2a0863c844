//! Text in columns.

/// The text in exactly `width` columns, with an ellipsis where it does not fit. Control characters never reach the terminal.
pub(super) fn fit(text: &str, width: usize) -> String {
    let clean: Vec<char> = text.chars().map(|c| if c.is_control() { ' ' } else { c }).collect();
    if clean.len() <= width {
        return format!("{:<width$}", clean.into_iter().collect::<String>());
    }
    clean.into_iter().take(width.saturating_sub(1)).chain(['…']).take(width).collect()
}

/// A title with a line after it, over the whole width.
pub(super) fn rule(title: &str, width: u16) -> String {
    let rest = usize::from(width).saturating_sub(title.chars().count());
    format!("{title}{}", "─".repeat(rest))
}
