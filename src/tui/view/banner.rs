//! What nobody may overlook: the cluster does not answer, and what is shown is what was known before.

use ratatui::{
    Frame,
    layout::Rect,
    text::{Line, Span},
    widgets::{Paragraph, Wrap},
};

use super::{
    TALL,
    text::{fit_to, lines_of},
};
use crate::{model::Model, theme::Role};

/// Most lines that it takes where there are many.
const MOST: usize = 3;

/// How many lines it takes. Without rows the sentence stands in their place, and there is no banner.
pub(super) fn height(model: &Model, area: Rect) -> u16 {
    let Some(text) = told(model) else { return 0 };
    let most = if area.height >= TALL { MOST } else { 1 };
    u16::try_from(lines_of(&text, usize::from(area.width).max(1)).min(most)).unwrap_or(1)
}

pub(super) fn draw(model: &Model, frame: &mut Frame<'_>, area: Rect) {
    let Some(text) = told(model).filter(|_| area.height > 0) else { return };
    let room = usize::from(area.width);
    // One line is cut with a sign that there is more; of several the last one is.
    let text = if area.height == 1 { fit_to(&text, room) } else { fit_to(&text, room * usize::from(area.height)) };
    let line = Line::from(Span::styled(text, model.ui.theme.style(Role::Waiting)));
    frame.render_widget(Paragraph::new(line).wrap(Wrap { trim: false }), area);
}

fn told(model: &Model) -> Option<String> {
    let lost = model.ui.lost.as_ref().filter(|_| !model.rows.is_empty())?;
    Some(format!(" {}", crate::why::clean(&lost.told(model.ui.now))))
}
