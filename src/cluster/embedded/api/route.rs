//! What a request is about: its path and its query.

use plinth_api::ClusterKey;
use plinth_engine::naming::is_label;

use super::problem::Problem;
use crate::embedded::filter::{Reach, is_logical};

/// A path of the API.
#[derive(Clone, Debug, PartialEq, Eq)]
pub enum Route {
    /// `/api`.
    Core,
    /// `/apis`.
    Groups,
    /// `/apis/GROUP`.
    Group(String),
    /// `/api/v1`, `/apis/GROUP/VERSION`.
    Resources(String, String),
    /// `/openapi/v3`.
    OpenApiIndex,
    /// `/openapi/v3/api/v1`, `/openapi/v3/apis/GROUP/VERSION`.
    OpenApi(String, String),
    /// `/version`.
    Version,
    /// `/healthz`, `/livez`, `/readyz`.
    Health,
    /// A collection or an object.
    Resource(Target),
    /// Nothing.
    Unknown,
}

/// A collection, an object, or a part of one.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Target {
    /// API group.
    pub group: String,
    /// Version.
    pub version: String,
    /// Plural.
    pub plural: String,
    /// Namespace in the path.
    pub namespace: Option<String>,
    /// Object's name in the path.
    pub name: Option<String>,
    /// Such as `status`.
    pub subresource: Option<String>,
}

/// Which clusters a path is about, and the path there: `/clusters/NAME` is a logical cluster, `/clusters/*` all of them.
pub fn split(path: &str) -> Result<(Reach, String), Problem> {
    let Some(below) = path.strip_prefix("/clusters/") else { return Ok((Reach::default(), path.to_owned())) };
    let (name, rest) = below.find('/').map_or((below, "/"), |at| below.split_at(at));
    let name = decode(name);
    if name == "*" {
        return Ok((Reach::Logical, rest.to_owned()));
    }
    if !is_cluster_name(&name) {
        return Err(Problem::bad_request(format!("invalid cluster: {name:?} does not match the regex")));
    }
    Ok((Reach::One(ClusterKey(name)), rest.to_owned()))
}

/// Whether a logical cluster can have this name: labels with colons between them, as kcp's names and paths. `host` is taken by
/// the default cluster, which has no name in paths.
pub fn is_cluster_name(name: &str) -> bool {
    name.len() <= 253 && name.split(':').all(is_label) && is_logical(&ClusterKey(name.to_owned()))
}

/// Reads the path in a cluster.
pub fn parse(path: &str) -> Route {
    let path = path.strip_prefix('/').unwrap_or(path);
    let parts: Vec<String> = path.strip_suffix('/').unwrap_or(path).split('/').map(decode).collect();
    let parts: Vec<&str> = parts.iter().map(String::as_str).collect();
    route(&parts)
}

fn route(parts: &[&str]) -> Route {
    let own = |text: &str| text.to_owned();
    match parts {
        ["api"] => Route::Core,
        ["apis"] => Route::Groups,
        ["apis", group] => Route::Group(own(group)),
        ["api", version] => Route::Resources(String::new(), own(version)),
        ["apis", group, version] if !group.is_empty() => Route::Resources(own(group), own(version)),
        ["openapi", "v3"] => Route::OpenApiIndex,
        ["openapi", "v3", "api", version] => Route::OpenApi(String::new(), own(version)),
        ["openapi", "v3", "apis", group, version] => Route::OpenApi(own(group), own(version)),
        ["version"] => Route::Version,
        ["healthz" | "livez" | "readyz", ..] => Route::Health,
        ["api", version, rest @ ..] => resource("", version, rest),
        ["apis", group, version, rest @ ..] if !group.is_empty() => resource(group, version, rest),
        _ => Route::Unknown,
    }
}

fn resource(group: &str, version: &str, parts: &[&str]) -> Route {
    let target = |namespace: Option<&str>, plural: &str, rest: &[&str]| {
        Route::Resource(Target {
            group: group.to_owned(),
            version: version.to_owned(),
            plural: plural.to_owned(),
            namespace: namespace.map(str::to_owned),
            name: rest.first().map(|name| (*name).to_owned()),
            subresource: rest.get(1).map(|name| (*name).to_owned()),
        })
    };
    match parts {
        // A namespace's own subresources look like a collection in it.
        ["namespaces", name, part @ ("status" | "finalize")] if group.is_empty() => target(None, "namespaces", &[name, part]),
        ["namespaces", namespace, plural, rest @ ..] if !namespace.is_empty() && rest.len() <= 2 => {
            target(Some(namespace), plural, rest)
        }
        [plural, rest @ ..] if rest.len() <= 2 => target(None, plural, rest),
        _ => Route::Unknown,
    }
}

/// Names and values of a query, in order.
#[derive(Clone, Debug, Default, PartialEq, Eq)]
pub struct QueryText(Vec<(String, String)>);

impl QueryText {
    /// Reads what follows the question mark.
    pub fn parse(text: &str) -> Self {
        let pairs = text.split('&').filter(|pair| !pair.is_empty());
        Self(
            pairs.map(|pair| pair.split_once('=').unwrap_or((pair, ""))).map(|(name, value)| (form(name), form(value))).collect(),
        )
    }

    /// The first value of a name.
    pub fn get(&self, name: &str) -> Option<&str> {
        self.0.iter().find(|(known, _)| known == name).map(|(_, value)| value.as_str())
    }

    /// The value, where there is one that is not empty.
    pub fn some(&self, name: &str) -> Option<&str> {
        self.get(name).filter(|value| !value.is_empty())
    }

    /// All values of a name.
    pub fn all<'a>(&'a self, name: &'a str) -> impl Iterator<Item = &'a str> {
        self.0.iter().filter(move |(known, _)| known == name).map(|(_, value)| value.as_str())
    }

    /// Whether it is set, and not to false.
    pub fn is(&self, name: &str) -> bool {
        self.get(name).is_some_and(|value| value != "0" && !value.eq_ignore_ascii_case("false"))
    }
}

fn form(text: &str) -> String {
    if text.contains('+') { decode(&text.replace('+', " ")) } else { decode(text) }
}

/// Percent decoding; what is no UTF-8 is replaced.
fn decode(text: &str) -> String {
    if !text.contains('%') {
        return text.to_owned();
    }
    let bytes = text.as_bytes();
    let mut decoded = Vec::with_capacity(bytes.len());
    let mut at = 0;
    while at < bytes.len() {
        let hex = bytes.get(at + 1..at + 3).and_then(|hex| std::str::from_utf8(hex).ok());
        let byte = hex.filter(|_| bytes[at] == b'%').and_then(|hex| u8::from_str_radix(hex, 16).ok());
        decoded.push(byte.unwrap_or(bytes[at]));
        at += if byte.is_some() { 3 } else { 1 };
    }
    String::from_utf8_lossy(&decoded).into_owned()
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn paths_are_routed() {
        let resource = |path: &str| match parse(path) {
            Route::Resource(target) => (
                target.group,
                target.plural,
                target.namespace.unwrap_or_default(),
                target.name.unwrap_or_default(),
                target.subresource.unwrap_or_default(),
            ),
            other => panic!("{path}: {other:?}"),
        };
        for (path, wanted) in [
            ("/api/v1/namespaces", ["", "namespaces", "", "", ""]),
            ("/api/v1/namespaces/a", ["", "namespaces", "", "a", ""]),
            ("/api/v1/namespaces/a/status", ["", "namespaces", "", "a", "status"]),
            ("/api/v1/namespaces/a/pods", ["", "pods", "a", "", ""]),
            ("/apis/apps/v1/namespaces/a/deployments/b/status", ["apps", "deployments", "a", "b", "status"]),
            ("/api/v1/nodes/a%2Fb", ["", "nodes", "", "a/b", ""]),
        ] {
            let [group, plural, namespace, name, subresource] = wanted.map(str::to_owned);
            assert_eq!(resource(path), (group, plural, namespace, name, subresource), "{path}");
        }
        for path in ["/", "/foo", "/api/v1/namespaces/a/pods/b/c/d"] {
            assert_eq!(parse(path), Route::Unknown, "{path}");
        }
    }

    #[test]
    fn paths_say_which_cluster() {
        let one = |name: &str| Reach::One(ClusterKey(name.to_owned()));
        for (path, reach, below) in [
            ("/api/v1/pods", Reach::default(), "/api/v1/pods"),
            ("/clusters/c1/api/v1/pods", one("c1"), "/api/v1/pods"),
            ("/clusters/root:team:a/apis", one("root:team:a"), "/apis"),
            ("/clusters/c1", one("c1"), "/"),
            ("/clusters/*/api/v1/pods", Reach::Logical, "/api/v1/pods"),
            ("/clusters/%2A/api", Reach::Logical, "/api"),
            ("/clusters", Reach::default(), "/clusters"),
        ] {
            assert_eq!(split(path).unwrap(), (reach, below.to_owned()), "{path}");
        }
        for path in ["/clusters/root:Bad_Path/api", "/clusters//api", "/clusters/a:/api", "/clusters/host/api", "/clusters/a%2Fb"]
        {
            assert_eq!(split(path).unwrap_err().code, 400, "{path}");
        }
    }

    #[test]
    fn queries_are_decoded() {
        let query = QueryText::parse("labelSelector=a%3Db%2Cc&watch=1&x=a+b&y");
        assert_eq!((query.get("labelSelector"), query.is("watch"), query.get("x")), (Some("a=b,c"), true, Some("a b")));
        assert_eq!((query.get("y"), query.some("y")), (Some(""), None));
    }
}
