//! Draws the model. Only reads.
//!
//! Narrow rules (ux.md section 4): the header is never dropped; below 100 columns there is one pane, the why strip under it;
//! below 60 columns the age goes and a plane is one letter; below 40x10 there is a list of states; below 20x4 one word.

mod banner;
mod body;
mod detail;
mod header;
mod overlay;
mod text;
mod why;

use ratatui::{
    Frame,
    layout::{Constraint, Layout, Rect},
    widgets::Paragraph,
};

use crate::model::Model;

/// Lines of the why strip, its rule included, and where there are few rows.
const WHY_HEIGHT: (u16, u16) = (5, 4);
/// From this height on the strip has all its lines.
const TALL: u16 = 20;
/// From this width on there are two panes.
const WIDE: u16 = 100;

/// Where everything is.
struct Places {
    header: Rect,
    tabs: Rect,
    /// What is wrong with the connection, where that is so and rows are shown all the same.
    banner: Rect,
    /// Rows; without area where an open object takes their place.
    body: Rect,
    /// What is beside the rows, or in their place.
    side: Option<Rect>,
    why: Rect,
    footer: Rect,
}

impl Places {
    fn of(model: &Model, area: Rect) -> Self {
        let wide = area.width >= WIDE;
        let strip = model.ui.why && !(wide && model.ui.detail.is_none());
        let [header, tabs, banner, main, why, footer] = Layout::vertical([
            Constraint::Length(1),
            Constraint::Length(1),
            Constraint::Length(banner::height(model, area)),
            Constraint::Min(0),
            Constraint::Length(match strip {
                true if area.height >= TALL => WHY_HEIGHT.0,
                true => WHY_HEIGHT.1,
                false => 0,
            }),
            Constraint::Length(1),
        ])
        .areas(area);
        let (body, side) = if wide && (model.ui.why || model.ui.detail.is_some()) {
            // Lines of an object are long; an explanation is broken into as many as it takes.
            let shares = if model.ui.detail.is_some() { (3, 2) } else { (2, 1) };
            let [body, side] =
                Layout::horizontal([Constraint::Fill(shares.0), Constraint::Fill(shares.1)]).spacing(1).areas(main);
            (body, Some(side))
        } else if model.ui.detail.is_some() && model.ui.in_detail {
            (Rect { height: 0, ..main }, Some(main))
        } else {
            (main, None)
        };
        Self { header, tabs, banner, body, side, why, footer }
    }
}

fn is_tiny(width: u16, height: u16) -> bool {
    width < 20 || height < 4
}

fn is_small(width: u16, height: u16) -> bool {
    width < 40 || height < 10
}

/// Draws the whole screen.
pub fn draw(model: &Model, frame: &mut Frame<'_>) {
    let area = frame.area();
    if is_tiny(area.width, area.height) {
        frame.render_widget(Paragraph::new(header::word(model)), area);
        return;
    }
    if is_small(area.width, area.height) {
        let [top, body] = Layout::vertical([Constraint::Length(1), Constraint::Min(0)]).areas(area);
        header::draw(model, frame, top);
        body::draw(model, frame, body);
        overlay::draw(model, frame, body);
        return;
    }
    let places = Places::of(model, area);
    header::draw(model, frame, places.header);
    header::draw_tabs(model, frame, places.tabs);
    banner::draw(model, frame, places.banner);
    body::draw(model, frame, places.body);
    match (places.side, &model.ui.detail) {
        (Some(side), Some(open)) => detail::draw(model, open, frame, side),
        (Some(side), None) => why::draw(model, frame, side),
        (None, _) => {}
    }
    why::draw(model, frame, places.why);
    overlay::draw_footer(model, frame, places.footer);
    let main = Rect { height: places.why.bottom().saturating_sub(places.body.y), width: area.width, ..places.body };
    overlay::draw(model, frame, main);
}

/// The places at the model's size.
fn places(model: &Model) -> Places {
    let (width, height) = model.ui.size;
    Places::of(model, Rect::new(0, 0, width, height))
}

/// Rows that the body has room for at the model's size.
pub fn body_height(model: &Model) -> u16 {
    let (width, height) = model.ui.size;
    if is_small(width, height) { height.saturating_sub(1) } else { places(model).body.height }
}

/// Lines that an open object has room for at the model's size, its title not counted.
pub fn detail_height(model: &Model) -> u16 {
    places(model).side.map_or(0, |side| side.height.saturating_sub(1))
}
