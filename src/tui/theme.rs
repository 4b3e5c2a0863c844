//! Colours by role. Every state has its own word, so no theme carries meaning alone.

use ratatui::style::{Color, Modifier, Style};

/// What a piece of text is.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub enum Role {
    /// Ordinary text.
    #[default]
    Plain,
    /// A heading.
    Heading,
    /// Ready.
    Ready,
    /// On its way.
    Progressing,
    /// Something else has to happen first. Never red.
    Waiting,
    /// Failed.
    Failed,
    /// Less important text.
    Dim,
    /// The selected row.
    Selected,
}

/// A set of styles.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Theme {
    /// For dark backgrounds.
    Dark,
    /// For light backgrounds.
    Light,
    /// Without colour: `NO_COLOR`, `--color never`.
    Mono,
}

impl Theme {
    /// The style of a role.
    pub fn style(self, role: Role) -> Style {
        let style = Style::new();
        match role {
            Role::Plain => style,
            Role::Heading => style.add_modifier(Modifier::BOLD),
            Role::Selected => style.add_modifier(Modifier::REVERSED),
            Role::Dim => self.colour(style, Color::DarkGray, Color::Gray),
            Role::Ready => self.colour(style, Color::Green, Color::Green),
            Role::Progressing => self.colour(style, Color::Cyan, Color::Blue),
            Role::Waiting => self.colour(style, Color::Yellow, Color::Magenta),
            Role::Failed => self.colour(style, Color::Red, Color::Red).add_modifier(Modifier::BOLD),
        }
    }

    fn colour(self, style: Style, dark: Color, light: Color) -> Style {
        match self {
            Self::Dark => style.fg(dark),
            Self::Light => style.fg(light),
            Self::Mono => style,
        }
    }
}
