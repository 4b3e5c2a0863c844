//! A screen as SVG, for documentation: what is drawn on a terminal, cell by cell.

use std::fmt::Write;

use ratatui::{
    buffer::{Buffer, Cell},
    style::{Color, Modifier},
};

/// A cell's size in pixels. Most monospaced fonts are 0.6 of their size wide, 13.3 pixels here; with the place of every run of cells
/// given, others fit, too.
const CELL: (f32, f32) = (8.0, 17.0);
const MARGIN: f32 = 10.0;
const BACKGROUND: &str = "#16181d";
const FOREGROUND: &str = "#d8dce4";

/// The buffer as an SVG document.
pub fn svg(buffer: &Buffer) -> String {
    let columns = usize::from(buffer.area.width).max(1);
    let width = f32::from(buffer.area.width) * CELL.0 + 2.0 * MARGIN;
    let height = f32::from(buffer.area.height) * CELL.1 + 2.0 * MARGIN;
    let mut svg = format!(
        "<svg xmlns=\"http://www.w3.org/2000/svg\" width=\"{width}\" height=\"{height}\" viewBox=\"0 0 {width} {height}\" \
         font-family=\"ui-monospace, 'DejaVu Sans Mono', Menlo, Consolas, monospace\" font-size=\"13.3\">\n\
         <rect width=\"100%\" height=\"100%\" rx=\"6\" fill=\"{BACKGROUND}\"/>\n"
    );
    let mut y = MARGIN;
    for line in buffer.content.chunks(columns) {
        draw_line(&mut svg, line, y);
        y += CELL.1;
    }
    svg.push_str("</svg>\n");
    svg
}

fn draw_line(svg: &mut String, line: &[Cell], y: f32) {
    let mut x = MARGIN;
    for run in line.chunk_by(|one, other| one.style() == other.style()) {
        let width = run.iter().fold(0.0, |width, _| width + CELL.0);
        let text: String = run.iter().map(Cell::symbol).collect();
        let style = run.first().map(Cell::style).unwrap_or_default();
        let (mut ink, mut paper) = (style.fg.and_then(hex).unwrap_or(FOREGROUND), style.bg.and_then(hex));
        if style.add_modifier.contains(Modifier::REVERSED) {
            (ink, paper) = (paper.unwrap_or(BACKGROUND), Some(ink));
        }
        if let Some(paper) = paper {
            let _ = writeln!(svg, "<rect x=\"{x}\" y=\"{y}\" width=\"{width}\" height=\"{}\" fill=\"{paper}\"/>", CELL.1);
        }
        if !text.trim().is_empty() {
            let bold = if style.add_modifier.contains(Modifier::BOLD) { " font-weight=\"bold\"" } else { "" };
            let base = y + 13.0;
            let _ = writeln!(
                svg,
                "<text x=\"{x}\" y=\"{base}\" fill=\"{ink}\"{bold} textLength=\"{width}\" xml:space=\"preserve\">{}</text>",
                escape(&text)
            );
        }
        x += width;
    }
}

/// The colours that the themes use; every other is the terminal's own.
fn hex(color: Color) -> Option<&'static str> {
    Some(match color {
        Color::Red => "#f07178",
        Color::Green => "#a5d075",
        Color::Yellow => "#e6c06a",
        Color::Blue => "#6ca8f0",
        Color::Magenta => "#c792ea",
        Color::Cyan => "#6fc8d6",
        Color::Gray => "#a9b0bc",
        Color::DarkGray => "#7d8590",
        _ => return None,
    })
}

fn escape(text: &str) -> String {
    text.replace('&', "&amp;").replace('<', "&lt;").replace('>', "&gt;")
}
