//! What can go wrong, and what it means for the caller.

use std::path::PathBuf;

use crate::digest::Digest;
use crate::repository::ComponentVersion;
use crate::versions::Constraint;

/// What an error means for whoever has to react: the exit code and whether trying again can help.
#[derive(Clone, Copy, Debug, PartialEq, Eq, PartialOrd, Ord, Hash)]
pub enum ErrorKind {
    /// The input is wrong, incomplete or not proven: exit 4, trying again changes nothing.
    Refused,
    /// Something asked for is not there, and its repository answered so: exit 4.
    NotFound,
    /// The repository could not be reached or is overloaded: try again, then exit 3.
    Unavailable,
}

/// A repository could not give what was asked.
#[derive(Debug, thiserror::Error)]
pub enum RepositoryError {
    /// The repository answered that the thing is not there.
    #[error("{what} is not in {place}")]
    NotFound {
        /// The thing asked for.
        what: String,
        /// The repository.
        place: String,
    },
    /// No answer, or one that says "later", after all attempts.
    #[error("{place} could not be reached while reading {what} (attempts: {attempts}): {cause}")]
    Unavailable {
        /// The thing asked for.
        what: String,
        /// The host.
        place: String,
        /// How often it was tried.
        attempts: u32,
        /// The last answer or network error.
        cause: String,
    },
    /// The repository wants other credentials.
    #[error("{place} refused access to {what}: {reason}")]
    Denied {
        /// The thing asked for.
        what: String,
        /// The host.
        place: String,
        /// The status, and which credentials were offered (never their values).
        reason: String,
    },
    /// The other side is not who it should be.
    #[error("{place} is not trusted with {what}: {reason}")]
    Untrusted {
        /// The thing asked for.
        what: String,
        /// The host.
        place: String,
        /// What is wrong with its certificate.
        reason: String,
    },
    /// The other side does not speak TLS, and nobody said that it need not.
    #[error("{place} could not be asked for {what}: it speaks plain HTTP, without TLS")]
    Unencrypted {
        /// The thing asked for.
        what: String,
        /// The host.
        place: String,
    },
    /// Bytes do not have the digest they were asked by.
    #[error("{what} was tampered with or damaged: its digest is {found}, not {expected}")]
    Digest {
        /// The blob, with its place.
        what: String,
        /// What was asked for.
        expected: Digest,
        /// What the bytes have.
        found: Digest,
    },
    /// A document or archive is not what it should be.
    #[error("{what} cannot be used: {reason}")]
    Malformed {
        /// The document, with file, component or host.
        what: String,
        /// What is wrong, with line and column where there are any.
        reason: String,
    },
    /// Two artifacts want one name of a mirror.
    #[error("{what}")]
    Clash {
        /// The name, and both.
        what: String,
    },
    /// Tags of a registry lead to other content than what is to be pushed.
    #[error("{place} has other content under {} of the tags, and nothing was sent:{}", tags.len(), first_lines(tags))]
    Taken {
        /// The registry with its path.
        place: String,
        /// Each tag with what it leads to and should lead to.
        tags: Vec<String>,
    },
    /// A bound was passed.
    #[error("{what} is over the limit of {limit} {unit}")]
    Limit {
        /// What was being read.
        what: String,
        /// The bound.
        limit: u64,
        /// Its unit.
        unit: &'static str,
    },
    /// The access type or repository type is not one that plinth can read.
    #[error("{what} cannot be fetched: {reason}")]
    Unsupported {
        /// The resource or repository.
        what: String,
        /// Which type, and what is known.
        reason: String,
    },
    /// A file could not be read or written.
    #[error("{action} {path}: {cause}")]
    File {
        /// `read`, `write`, …
        action: &'static str,
        /// The file.
        path: PathBuf,
        /// The operating system's answer.
        cause: std::io::Error,
    },
}

impl RepositoryError {
    /// What the error means for the caller.
    pub fn kind(&self) -> ErrorKind {
        match self {
            Self::NotFound { .. } => ErrorKind::NotFound,
            Self::Unavailable { .. } => ErrorKind::Unavailable,
            Self::File { cause, .. } if cause.kind() == std::io::ErrorKind::NotFound => ErrorKind::NotFound,
            Self::Denied { .. }
            | Self::Untrusted { .. }
            | Self::Unencrypted { .. }
            | Self::Digest { .. }
            | Self::Malformed { .. }
            | Self::Clash { .. }
            | Self::Taken { .. }
            | Self::Limit { .. }
            | Self::Unsupported { .. }
            | Self::File { .. } => ErrorKind::Refused,
        }
    }

    pub(crate) fn malformed(what: impl Into<String>, reason: impl std::fmt::Display) -> Self {
        Self::Malformed { what: what.into(), reason: reason.to_string() }
    }
}

/// A channel could not be resolved.
#[derive(Debug, thiserror::Error)]
pub enum ResolveError {
    /// The SOURCE text is not one.
    #[error("`{text}` is not a source: {reason}")]
    Source {
        /// What was given.
        text: String,
        /// What is wrong with it.
        reason: String,
    },
    /// A repository's answer, while a component was being read. `path` leads from the root to it.
    #[error("{}{source}", prefix(path))]
    Repository {
        /// Root first; empty before the root is known.
        path: Vec<ComponentVersion>,
        /// What the repository said.
        source: RepositoryError,
    },
    /// A reference leads nowhere.
    #[error("the component reference {} leads to a version that is in none of: {}", arrows(path), searched.join(", "))]
    BrokenReference {
        /// Root first, the missing one last.
        path: Vec<ComponentVersion>,
        /// Repositories that were asked.
        searched: Vec<String>,
    },
    /// Component references form a circle.
    #[error("component references form a cycle: {}", arrows(path))]
    Cycle {
        /// The circle; first and last are the same.
        path: Vec<ComponentVersion>,
    },
    /// No version satisfies what was asked.
    #[error("no version of {component} satisfies `{wanted}`; there are: {}", list(there))]
    NoVersion {
        /// OCM component name.
        component: String,
        /// Version or constraint.
        wanted: String,
        /// Versions there are, lowest first.
        there: Vec<String>,
    },
    /// What was asked for is neither a version that there is nor a range of versions.
    #[error("`{wanted}` is not a range of versions of {component}, such as 1.2.3, ~1.2 or >=1.0 <2; there are: {}", list(there))]
    NotARange {
        /// OCM component name.
        component: String,
        /// What was asked for, shortened.
        wanted: String,
        /// Versions there are, lowest first.
        there: Vec<String>,
    },
    /// Several answers are possible and none was chosen.
    #[error("{question}; choose one of: {}", list(choices))]
    Choice {
        /// What is open.
        question: String,
        /// The possible answers.
        choices: Vec<String>,
        /// What chooses, as a hint.
        by: &'static str,
    },
    /// A bound was passed.
    #[error("{what} is over the limit of {limit}")]
    Limit {
        /// What was counted, and where.
        what: String,
        /// The bound.
        limit: usize,
    },
    /// A document inside the channel is wrong.
    #[error("resource {resource} of {component}: {reason}")]
    Document {
        /// Name and version.
        component: ComponentVersion,
        /// Resource name.
        resource: String,
        /// What is wrong, with line and column.
        reason: String,
    },
    /// A signature or a digest does not prove what it should.
    #[error("component {} is not proven: {reason}", arrows(path))]
    Unproven {
        /// Root first.
        path: Vec<ComponentVersion>,
        /// What is missing or wrong.
        reason: String,
    },
    /// Options cannot be used, such as a CA file that holds no certificate.
    #[error("{option} cannot be used: {reason}")]
    Option {
        /// Option or file.
        option: String,
        /// What is wrong with it.
        reason: String,
    },
}

impl ResolveError {
    /// The error for a version or range that none of the versions satisfies.
    pub(crate) fn no_version(component: &str, wanted: &str, there: Vec<String>) -> Self {
        let component = component.to_owned();
        match Constraint::parse(wanted) {
            Ok(_) => Self::NoVersion { component, wanted: wanted.to_owned(), there },
            Err(bad) => Self::NotARange { component, wanted: bad.text, there },
        }
    }

    /// Whether it is about the root itself.
    pub(crate) fn is_of_root(&self) -> bool {
        matches!(self, Self::Repository { path, .. } if path.len() <= 1)
    }

    /// What the error means for the caller.
    pub fn kind(&self) -> ErrorKind {
        match self {
            Self::Repository { source, .. } => source.kind(),
            Self::BrokenReference { .. } | Self::NoVersion { .. } => ErrorKind::NotFound,
            Self::Source { .. }
            | Self::NotARange { .. }
            | Self::Cycle { .. }
            | Self::Choice { .. }
            | Self::Limit { .. }
            | Self::Document { .. }
            | Self::Unproven { .. }
            | Self::Option { .. } => ErrorKind::Refused,
        }
    }

    /// What may help, where something general can be said.
    pub fn hint(&self) -> Option<&'static str> {
        match self {
            Self::Choice { by, .. } => Some(by),
            Self::Repository { source: RepositoryError::Denied { .. }, .. } => {
                Some("credentials come from --ocm-config and the docker config.json of the current user")
            }
            Self::Repository { source: RepositoryError::Untrusted { .. }, .. } => {
                Some("--ca PATH names a further authority for certificates")
            }
            Self::Repository { source: RepositoryError::Unencrypted { .. }, .. } => Some(
                "--plain-http HOST asks that host without TLS: what is read is still proven by its digests, logins are sent in the clear",
            ),
            Self::Repository { source: RepositoryError::Clash { .. }, .. } => Some(
                "a mirror drops the host of a name: --select one of the versions, or have the channel's maker tag one otherwise",
            ),
            Self::Repository { source: RepositoryError::Taken { .. }, .. } => {
                Some("--move-tags moves them; who pulls by tag gets the new content then")
            }
            Self::NoVersion { wanted, there, .. } if is_spelled_otherwise(wanted, there) => {
                Some("versions are compared as they are spelled: v1.2.0 is not 1.2.0")
            }
            Self::BrokenReference { .. } => Some(
                "the archive or mirror is incomplete: transfer the channel recursively, or give the --select that it was made with",
            ),
            Self::Repository { source: RepositoryError::Digest { .. }, .. } => Some(
                "the place gave other bytes than were published: bring them there again from where they were made, and ask who changed them",
            ),
            _ => None,
        }
    }
}

impl From<RepositoryError> for ResolveError {
    fn from(source: RepositoryError) -> Self {
        Self::Repository { path: Vec::new(), source }
    }
}

/// Whether there is the same version with, or without, a `v` before it.
fn is_spelled_otherwise(wanted: &str, there: &[String]) -> bool {
    let bare = |version: &str| version.trim_start_matches('v').to_owned();
    there.iter().any(|version| version != wanted && bare(version) == bare(wanted))
}

/// Each on a line of its own, indented. Of very many the first ones are enough for a person.
pub fn first_lines(lines: &[String]) -> String {
    const FIRST: usize = 50;
    let first: Vec<String> = lines.iter().take(FIRST).map(|line| format!("\n  {line}")).collect();
    match lines.len().saturating_sub(FIRST) {
        0 => first.concat(),
        more => format!("{}\n  … and {more} more", first.concat()),
    }
}

fn prefix(path: &[ComponentVersion]) -> String {
    if path.is_empty() { String::new() } else { format!("component {}: ", arrows(path)) }
}

fn arrows(path: &[ComponentVersion]) -> String {
    let steps: Vec<String> = path.iter().map(ToString::to_string).collect();
    steps.join(" → ")
}

fn list(items: &[String]) -> String {
    const SHOWN: usize = 40;
    match items.len() {
        0 => "none".to_owned(),
        n if n > SHOWN => format!("{} … ({n} in all)", items[..SHOWN].join(", ")),
        _ => items.join(", "),
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn of_very_many_lines_the_first_are_shown() {
        let tags: Vec<String> = (0..300_000).map(|number| format!("r.example/x:{number}")).collect();
        let text = RepositoryError::Taken { place: "r.example".to_owned(), tags }.to_string();
        assert!(
            text.starts_with("r.example has other content under 300000 of the tags, and nothing was sent:\n  r.example/x:0\n")
        );
        assert!(text.ends_with("\n  r.example/x:49\n  … and 299950 more"), "{text}");
        assert_eq!(first_lines(&["a".to_owned(), "b".to_owned()]), "\n  a\n  b");
    }
}
