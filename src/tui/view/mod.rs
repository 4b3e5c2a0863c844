//! Draws the model. Only reads.
//!
//! Narrow rules (ux.md section 4): the header is never dropped; below 60 columns the age goes; below 40x10 there is a list of
//! states; below 20x4 one word.

mod body;
mod header;
mod overlay;
mod why;

use ratatui::{
    Frame,
    layout::{Constraint, Layout},
    widgets::Paragraph,
};

use crate::model::Model;

/// Lines of the why strip, its rule included.
const WHY_HEIGHT: u16 = 4;

/// Draws the whole screen.
pub fn draw(model: &Model, frame: &mut Frame<'_>) {
    let area = frame.area();
    if area.width < 20 || area.height < 4 {
        frame.render_widget(Paragraph::new(header::word(model)), area);
        return;
    }
    if area.width < 40 || area.height < 10 {
        let [top, body] = Layout::vertical([Constraint::Length(1), Constraint::Min(0)]).areas(area);
        header::draw(model, frame, top);
        body::draw(model, frame, body);
        overlay::draw(model, frame, body);
        return;
    }
    let [top, tabs, body, why, footer] = Layout::vertical([
        Constraint::Length(1),
        Constraint::Length(1),
        Constraint::Min(0),
        Constraint::Length(why_height(model)),
        Constraint::Length(1),
    ])
    .areas(area);
    header::draw(model, frame, top);
    header::draw_tabs(model, frame, tabs);
    body::draw(model, frame, body);
    why::draw(model, frame, why);
    overlay::draw_footer(model, frame, footer);
    overlay::draw(model, frame, body);
}

/// Rows that the body has room for at the model's size.
pub fn body_height(model: &Model) -> u16 {
    let (width, height) = model.ui.size;
    if width < 40 || height < 10 { height.saturating_sub(1) } else { height.saturating_sub(3 + why_height(model)) }
}

fn why_height(model: &Model) -> u16 {
    if model.ui.why { WHY_HEIGHT } else { 0 }
}
