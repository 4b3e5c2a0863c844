//! What the user prefers: flags before the environment, the environment before the file, the file before defaults. Every setting
//! knows where it comes from.

use std::{
    io::IsTerminal,
    path::{Path, PathBuf},
};

use plinth_api::platform::API_VERSION;
use plinth_engine::{
    Diagnostic,
    template::nearest,
    yaml::{self, Document},
};
use plinth_tui::{terminal, theme::Theme};
use serde_json::Value;

use crate::{
    args::{Color, Global},
    exit::Failure,
    files,
    out::Out,
};

/// The variable that names the file.
const FILE: &str = "PLINTH_CONFIG";
/// What a file may hold.
const KEYS: [&str; 6] = ["apiVersion", "kind", "color", "theme", "plain", "why"];

/// All settings.
#[derive(Clone, Debug, PartialEq, Eq)]
pub(crate) struct Config {
    /// When to use colour.
    pub(crate) color: Setting<Color>,
    /// Colours for which background.
    pub(crate) theme: Setting<Background>,
    /// Append-only text, no terminal view.
    pub(crate) plain: Setting<bool>,
    /// The explanation is open from the start.
    pub(crate) why: Setting<bool>,
    /// What is wrong with the file: with its place, and the first finding only. The settings at fault keep their defaults.
    pub(crate) problem: Option<String>,
}

/// One setting.
#[derive(Clone, Debug, PartialEq, Eq)]
pub(crate) struct Setting<T> {
    /// Its value.
    pub(crate) value: T,
    /// Where it comes from.
    pub(crate) origin: String,
}

/// Which background the colours are for.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(crate) enum Background {
    /// A dark one.
    Dark,
    /// A light one.
    Light,
    /// Any: no colours, as with NO_COLOR.
    Mono,
}

impl<T> Setting<T> {
    fn default_of(value: T) -> Self {
        Self { value, origin: "default".to_owned() }
    }

    fn set(&mut self, value: Option<T>, origin: &str) {
        if let Some(value) = value {
            *self = Self { value, origin: origin.to_owned() };
        }
    }
}

impl Config {
    /// Whether the file that the environment names is there: who names one wants it, and defaults would hide that.
    pub(crate) fn check() -> Result<(), Failure> {
        let named = std::env::var_os(FILE).filter(|value| !value.is_empty()).map(PathBuf::from);
        match named.filter(|path| !path.exists()) {
            Some(path) => Err(Failure::refused(format!("{FILE} names {}, which does not exist", path.display()))
                .hint(format!("unset {FILE}, or write the file"))),
            None => Ok(()),
        }
    }

    /// Reads the environment and the file. Never fails: what cannot be used is said in [`Config::problem`].
    pub(crate) fn load(global: &Global) -> Self {
        let set = |name: &str| std::env::var(name).ok().filter(|value| !value.is_empty());
        let path = file(set);
        let text = path.filter(|path| path.exists()).map(|path| (files::text(&path), path));
        let mut config = Self::defaults();
        match text {
            Some((Ok(text), path)) => config.take_file(&text, &path),
            Some((Err(problem), _)) => config.problem = Some(problem),
            None => {}
        }
        config.take_environment(set);
        config.color.set(global.color, "--color");
        config.plain.set(global.plain.then_some(true), "--plain");
        config
    }

    fn defaults() -> Self {
        Self {
            color: Setting::default_of(Color::Auto),
            theme: Setting::default_of(Background::Dark),
            plain: Setting::default_of(false),
            why: Setting::default_of(true),
            problem: None,
        }
    }

    fn take_environment(&mut self, set: impl Fn(&str) -> Option<String>) {
        self.color.set(set("NO_COLOR").map(|_| Color::Never), "NO_COLOR");
    }

    fn take_file(&mut self, text: &str, path: &Path) {
        let origin = path.display().to_string();
        let documents = match yaml::documents(text) {
            Ok(documents) => documents,
            Err(finding) => {
                self.problem = Some(format!("{origin}:{finding}; defaults are used"));
                return;
            }
        };
        let mut findings = Vec::new();
        for document in &documents {
            let mut file = File { document, findings: &mut findings };
            file.unknown();
            self.color
                .set(file.word("color", &[("auto", Color::Auto), ("always", Color::Always), ("never", Color::Never)]), &origin);
            self.theme.set(
                file.word("theme", &[("dark", Background::Dark), ("light", Background::Light), ("mono", Background::Mono)]),
                &origin,
            );
            self.plain.set(file.switch("plain"), &origin);
            self.why.set(file.switch("why"), &origin);
        }
        self.problem = findings.first().map(|finding| format!("{origin}:{finding}; its default is used"));
    }

    /// Says what is wrong with the file, where there is no footer to say it in.
    pub(crate) fn tell(&self, out: Out) {
        self.problem.iter().for_each(|problem| out.talk(&format!("note: {problem}")));
    }

    /// The colours of text on standard output; `None` where it is to have none: it is no terminal that understands them, or one that a
    /// screen reader reads.
    pub(crate) fn theme_of_text(&self) -> Option<Theme> {
        let understands = || {
            let term = std::env::var("TERM").ok();
            std::io::stdout().is_terminal() && terminal::is_capable(term.as_deref()) && !self.plain.value
        };
        let is_wanted = match self.color.value {
            Color::Always => true,
            Color::Auto => understands(),
            Color::Never => false,
        };
        Some(self.palette()).filter(|theme| is_wanted && *theme != Theme::Mono)
    }

    /// The colours of the terminal view.
    pub(crate) fn palette(&self) -> Theme {
        match (self.color.value, self.theme.value) {
            (Color::Never, _) | (_, Background::Mono) => Theme::Mono,
            (_, Background::Dark) => Theme::Dark,
            (_, Background::Light) => Theme::Light,
        }
    }

    /// Name, value and origin of every setting.
    pub(crate) fn rows(&self) -> Vec<(&'static str, String, &str)> {
        let color = match self.color.value {
            Color::Auto => "auto",
            Color::Always => "always",
            Color::Never => "never",
        };
        let theme = match self.theme.value {
            Background::Dark => "dark",
            Background::Light => "light",
            Background::Mono => "mono",
        };
        vec![
            ("color", color.to_owned(), &self.color.origin),
            ("theme", theme.to_owned(), &self.theme.origin),
            ("plain", self.plain.value.to_string(), &self.plain.origin),
            ("why", self.why.value.to_string(), &self.why.origin),
        ]
    }
}

/// `PLINTH_CONFIG`, else `plinth/config.yaml` in the user's configuration folder.
fn file(set: impl Fn(&str) -> Option<String>) -> Option<PathBuf> {
    if let Some(path) = set(FILE) {
        return Some(PathBuf::from(path));
    }
    let folder = set("XDG_CONFIG_HOME").map(PathBuf::from).or_else(|| Some(PathBuf::from(set("HOME")?).join(".config")))?;
    Some(folder.join("plinth/config.yaml"))
}

/// One document of the file, and what is wrong with it.
struct File<'a> {
    document: &'a Document,
    findings: &'a mut Vec<Diagnostic>,
}

impl File<'_> {
    fn wrong(&mut self, key: &str, message: String) {
        let mut finding = Diagnostic::error(key, message);
        finding.location = self.document.locations.nearest(key);
        self.findings.push(finding);
    }

    fn unknown(&mut self) {
        let Some(fields) = self.document.value.as_object() else {
            return self.wrong("", "a configuration is a list of settings".to_owned());
        };
        for (key, value) in fields {
            let wanted = match key.as_str() {
                "apiVersion" => API_VERSION,
                "kind" => "Config",
                _ => "",
            };
            if !KEYS.contains(&key.as_str()) {
                let near = nearest(key, KEYS).map(|near| format!("; did you mean {near}?")).unwrap_or_default();
                self.wrong(key, format!("there is no setting {key}{near}"));
            } else if !wanted.is_empty() && value != wanted {
                self.wrong(key, format!("{key} is {value}, not {wanted}"));
            }
        }
    }

    fn word<T: Copy>(&mut self, key: &str, words: &[(&str, T)]) -> Option<T> {
        let value = self.document.value.get(key)?;
        let found = words.iter().find(|(word, _)| value == word).map(|(_, value)| *value);
        if found.is_none() {
            let words: Vec<&str> = words.iter().map(|(word, _)| *word).collect();
            self.wrong(key, format!("{key} is {value}, but can be {}", words.join(", ")));
        }
        found
    }

    fn switch(&mut self, key: &str) -> Option<bool> {
        let value = self.document.value.get(key)?;
        if let Value::Bool(value) = value {
            return Some(*value);
        }
        self.wrong(key, format!("{key} is {value}, but can be true or false"));
        None
    }
}

#[cfg(test)]
mod tests;
