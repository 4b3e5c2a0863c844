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

    /// Text of a role with the escape sequences of its style around it, for text that is only appended (ECMA-48, SGR).
    pub fn paint(self, role: Role, text: &str) -> String {
        let style = self.style(role);
        let bold = style.add_modifier.contains(Modifier::BOLD).then_some(1);
        let codes: Vec<String> = bold.into_iter().chain(style.fg.and_then(code)).map(|code| code.to_string()).collect();
        if codes.is_empty() { text.to_owned() } else { format!("\u{1b}[{}m{text}\u{1b}[0m", codes.join(";")) }
    }

    fn colour(self, style: Style, dark: Color, light: Color) -> Style {
        match self {
            Self::Dark => style.fg(dark),
            Self::Light => style.fg(light),
            Self::Mono => style,
        }
    }
}

/// The code of a foreground colour; `None` for those that no theme has.
fn code(colour: Color) -> Option<u8> {
    Some(match colour {
        Color::Red => 31,
        Color::Green => 32,
        Color::Yellow => 33,
        Color::Blue => 34,
        Color::Magenta => 35,
        Color::Cyan => 36,
        Color::Gray => 37,
        Color::DarkGray => 90,
        _ => return None,
    })
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn every_colour_of_a_theme_has_its_code() {
        use Role::{Dim, Failed, Progressing, Ready, Waiting};
        for theme in [Theme::Dark, Theme::Light] {
            for role in [Ready, Progressing, Waiting, Failed, Dim] {
                let painted = theme.paint(role, "word");
                assert!(painted.starts_with("\u{1b}[") && painted.ends_with("mword\u{1b}[0m"), "{theme:?} {role:?}");
                assert!(theme.style(role).fg.and_then(code).is_some(), "{theme:?} {role:?}");
            }
        }
        assert_eq!(Theme::Dark.paint(Failed, "x"), "\u{1b}[1;31mx\u{1b}[0m");
        assert_eq!((Theme::Dark.paint(Role::Plain, "x"), Theme::Mono.paint(Ready, "x")), ("x".to_owned(), "x".to_owned()));
    }
}
