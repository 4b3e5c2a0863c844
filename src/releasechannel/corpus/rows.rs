//! Tables that the tools' behaviour was written down in, row by row.

use super::read::{contents, repository};
use super::{Verdict, text};
use crate::access::Access;
use crate::config::tests as configurations;
use crate::repository::{ComponentRepository, ComponentVersion, Content};
use crate::testing::data;
use crate::versions::tests as versions;

/// Whether each configuration opens the registry, for each tool.
pub(super) fn credentials(file: &str) -> Vec<(String, Verdict)> {
    let mut rows = Vec::new();
    for row in text(file).lines().skip(1) {
        let fields: Vec<&str> = row.split('\t').collect();
        let ours = match configurations::opens(&format!("{}.yaml", fields[0])) {
            Ok(opened) => opened,
            // Only that it is asked for can be seen here: it is not installed.
            Err(error) => error.helper == "docker-credential-plinth-test-missing",
        };
        for (tool, code) in [("v1", fields[1]), ("v2", fields[2])] {
            let verdict = match (ours, code == "0") {
                (ours, theirs) if ours == theirs => Verdict::Equal,
                (true, false) if fields[0].contains("helper") || fields[0].contains("store") => {
                    Verdict::Listed("credential helpers")
                }
                (true, false) => Verdict::Listed("consumer without port, `pathprefix`, `path` with a wildcard"),
                (false, true) if fields[0] == "auth-scheme-https" => {
                    Verdict::Listed("consumer with `scheme: https`, registry without TLS (`auth-scheme-https`)")
                }
                _ => Verdict::Wrong(format!("ours {ours}, {tool} {code}")),
            };
            rows.push((format!("{file} {} {tool}", fields[0]), verdict));
        }
    }
    rows
}

/// Every configuration of the corpus is one that we can read.
pub(super) fn configuration(file: &str) -> Verdict {
    let name = file.trim_start_matches("cfg/").to_owned();
    let read = std::panic::catch_unwind(|| configurations::configuration(&name));
    Verdict::of(read.is_ok(), || "it cannot be read".to_owned())
}

pub(super) fn semver(file: &str) -> Vec<(String, Verdict)> {
    let table = text(file);
    let parsed: Vec<&str> = table.lines().filter(|line| line.starts_with("parse")).filter_map(versions::quoted).collect();
    let row = |line: &str| {
        let found = if line.starts_with("parse") { versions::parse_row(line) } else { versions::constraint_row(line, &parsed) };
        (line.to_owned(), Verdict::from(found))
    };
    table.lines().filter(|line| !line.is_empty()).map(row).collect()
}

/// Exit codes of both tools for each hand-made archive and verb.
pub(super) async fn hand(file: &str) -> Vec<(String, Verdict)> {
    let mut rows = Vec::new();
    for row in text(file).lines().skip(1) {
        let fields: Vec<&str> = row.split('\t').collect();
        let (case, component, verb) = (fields[0], fields[1], fields[2]);
        if !data().join("ocm/ctf/hand").join(case).exists() {
            rows.push((format!("{case} {verb}"), Verdict::Absent));
            continue;
        }
        let ours = done(case, component, verb).await;
        for (tool, code) in [("v1", fields[3]), ("v2", fields[5])].into_iter().filter(|(_, code)| !code.is_empty()) {
            let theirs = code == "0";
            let verdict = match listed(case) {
                _ if ours.is_ok() == theirs => Verdict::Equal,
                Some(words) => Verdict::Listed(words),
                None => Verdict::Wrong(format!("ours {ours:?}, {tool} {code}")),
            };
            rows.push((format!("{case} {component} {verb} {tool}"), verdict));
        }
    }
    rows
}

/// Where docs/differences.md speaks of a hand-made archive.
fn listed(case: &str) -> Option<&'static str> {
    Some(match case {
        "tampered-descriptor" => "a changed descriptor in an archive (`tampered-descriptor`)",
        "tampered-blob" => "a changed blob (`tampered-blob`)",
        "unknown-schema" => "a schema that nobody knows (`unknown-schema`)",
        "unknown-access" => "an access type with two slashes (`unknown-access`)",
        "v3alpha1" => "v3alpha1 (17.11)",
        "index-first" => "an index as component version (17.8, 17.12)",
        "blob-not-a-layer" => "a blob that no layer names (`blob-not-a-layer`)",
        "no-annotation" | "wrong-annotation" => "a missing or wrong `software.ocm.componentversion` annotation",
        "versions" => "tags that are no versions",
        _ => return None,
    })
}

/// What the verb does, done by us.
async fn done(case: &str, component: &str, verb: &str) -> Result<(), String> {
    let repository = repository(contents(&format!("ctf/hand/{case}")));
    let versions = repository.versions(component).await.map_err(|error| error.to_string())?;
    for version in &versions {
        let at = ComponentVersion::new(component, version);
        let found = repository.descriptor(&at).await.map_err(|error| error.to_string())?;
        if verb == "list" || verb == "get" || verb.starts_with("hash") {
            continue;
        }
        for resource in found.descriptor.resources.iter().filter(|resource| resource.identity.name == "rgd") {
            let Access::LocalBlob { reference, .. } = Access::read(&resource.access) else { continue };
            let stream = repository.open(component, &reference, Content::Blob).await.map_err(|error| error.to_string())?;
            stream.drain().await.map_err(|error| error.to_string())?;
        }
    }
    if versions.is_empty() { Err("there is no version".to_owned()) } else { Ok(()) }
}
