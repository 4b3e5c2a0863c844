//! The API server's audit log: who asked for what (contracts 26).

use std::{
    collections::BTreeMap,
    fs, io,
    path::{Path, PathBuf},
};

use serde::Deserialize;

/// Verbs that change objects.
const WRITES: [&str; 5] = ["create", "update", "patch", "delete", "deletecollection"];

/// The object of a request.
#[derive(Clone, Debug, Default, PartialEq, Eq, PartialOrd, Ord, Deserialize)]
#[serde(rename_all = "camelCase", default)]
pub struct AuditObject {
    /// API group, empty for the core group.
    pub api_group: String,
    /// Plural of the kind.
    pub resource: String,
    /// Subresource, such as `status`.
    pub subresource: String,
    /// Namespace, empty for objects of the cluster.
    pub namespace: String,
    /// Name, empty for requests about many objects.
    pub name: String,
}

/// One finished request.
#[derive(Clone, Debug)]
pub struct AuditEvent {
    /// Such as `get` or `patch`.
    pub verb: String,
    /// Who asked.
    pub user: String,
    /// In whose name, where that is somebody else.
    pub acting_as: Option<String>,
    /// Path and query.
    pub uri: String,
    /// Whether it was a dry run.
    pub dry_run: bool,
    /// HTTP status.
    pub code: u16,
    /// What it was about.
    pub object: Option<AuditObject>,
}

impl AuditEvent {
    /// Whether it changed something: a write verb, not a dry run, and accepted.
    ///
    /// Access reviews are `create` requests by name, and change nothing.
    pub fn is_write(&self) -> bool {
        let is_review = self.object.as_ref().is_some_and(|object| object.resource.ends_with("reviews"));
        WRITES.contains(&self.verb.as_str()) && !self.dry_run && !is_review && (200..300).contains(&self.code)
    }
}

/// Reader of an audit log file; each call reads the file again.
#[derive(Clone, Debug)]
pub struct AuditLog {
    path: PathBuf,
    skip: usize,
}

impl AuditLog {
    /// Reads from `path`.
    pub fn new(path: PathBuf) -> Self {
        Self { path, skip: 0 }
    }

    /// The same log from its present end on.
    pub fn from_now(&self) -> io::Result<Self> {
        let skip = text(&self.path)?.matches('\n').count();
        Ok(Self { path: self.path.clone(), skip })
    }

    /// All finished requests in the server's order.
    pub fn events(&self) -> io::Result<Vec<AuditEvent>> {
        let text = text(&self.path)?;
        // The server may be writing the last line just now; it is whole only with its newline.
        let whole = text.rfind('\n').map_or("", |end| &text[..end]);
        whole.lines().skip(self.skip).map(|line| Line::parse(line).map(AuditEvent::from)).collect()
    }

    /// Requests of `user` that changed something.
    pub fn writes_by(&self, user: &str) -> io::Result<Vec<AuditEvent>> {
        Ok(self.events()?.into_iter().filter(|event| event.user == user && event.is_write()).collect())
    }

    /// How often `user` wrote each object, subresources apart.
    pub fn write_counts(&self, user: &str) -> io::Result<BTreeMap<AuditObject, usize>> {
        let mut counts = BTreeMap::new();
        for object in self.writes_by(user)?.into_iter().filter_map(|event| event.object) {
            *counts.entry(object).or_default() += 1;
        }
        Ok(counts)
    }
}

fn text(path: &Path) -> io::Result<String> {
    match fs::read_to_string(path) {
        Err(error) if error.kind() == io::ErrorKind::NotFound => Ok(String::new()),
        other => other,
    }
}

#[derive(Deserialize)]
#[serde(rename_all = "camelCase")]
struct Line {
    verb: String,
    #[serde(rename = "requestURI")]
    request_uri: String,
    #[serde(default)]
    user: User,
    impersonated_user: Option<User>,
    #[serde(default)]
    response_status: Status,
    object_ref: Option<AuditObject>,
}

#[derive(Default, Deserialize)]
#[serde(default)]
struct User {
    username: String,
}

#[derive(Default, Deserialize)]
#[serde(default)]
struct Status {
    code: u16,
}

impl Line {
    fn parse(line: &str) -> io::Result<Self> {
        serde_json::from_str(line).map_err(|error| io::Error::new(io::ErrorKind::InvalidData, format!("{error}: {line}")))
    }
}

impl From<Line> for AuditEvent {
    fn from(line: Line) -> Self {
        let query = line.request_uri.split_once('?').map_or("", |(_, query)| query);
        let dry_run = query.split('&').any(|pair| pair.starts_with("dryRun="));
        Self {
            verb: line.verb,
            user: line.user.username,
            acting_as: line.impersonated_user.map(|user| user.username),
            dry_run,
            uri: line.request_uri,
            code: line.response_status.code,
            object: line.object_ref,
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    fn log(lines: &str) -> (tempfile::TempDir, AuditLog) {
        let folder = tempfile::tempdir().unwrap();
        let path = folder.path().join("audit.log");
        fs::write(&path, lines).unwrap();
        (folder, AuditLog::new(path))
    }

    const PATCH: &str = r#"{"verb":"patch","requestURI":"/api/v1/namespaces/d/configmaps/a?fieldManager=x","user":{"username":"admin"},"responseStatus":{"code":200},"objectRef":{"resource":"configmaps","namespace":"d","name":"a"}}"#;

    #[test]
    fn dry_runs_reviews_refusals_and_other_users_are_not_writes() {
        let dry = PATCH.replace("fieldManager=x", "fieldManager=x&dryRun=All");
        let refused = PATCH.replace("200", "403");
        let other = PATCH.replace("admin", "cluster");
        let review = PATCH.replace("patch", "create").replace("\"configmaps\"", "\"selfsubjectaccessreviews\"");
        let (_folder, log) = log(&format!("{PATCH}\n{dry}\n{refused}\n{other}\n{review}\n"));
        assert_eq!(log.events().unwrap().len(), 5);
        assert_eq!(log.write_counts("admin").unwrap().into_values().collect::<Vec<_>>(), [1]);
    }

    #[test]
    fn a_half_written_line_is_left_for_the_next_reading() {
        let (_folder, log) = log(&format!("{PATCH}\n{}", &PATCH[..40]));
        assert_eq!(log.events().unwrap().len(), 1);
        assert_eq!(log.from_now().unwrap().events().unwrap().len(), 0);
    }
}
