//! What the text of a Platform file says besides the channel: the platform's name, and where its values are.

use std::path::Path;

use plinth_bootstrap::{ValuesFile, settings::DEFAULT_PLATFORM};
use plinth_engine::{
    Diagnostic,
    yaml::{self, Document},
};
use plinth_releasechannel::platform_file;
use serde_json::Value;

use super::refusal;
use crate::{exit::Failure, files, platform};

/// A Platform file as it is written.
#[derive(Clone, Debug)]
pub(crate) struct PlatformFile {
    /// `metadata.name`; `default` where there is none.
    pub(crate) name: String,
    /// Where its values are.
    pub(crate) values: ValuesFile,
}

/// Reads SOURCE where it is a Platform file. Contacts nobody.
pub(crate) fn read(source: &str) -> Result<Option<PlatformFile>, Failure> {
    let path = Path::new(source);
    if platform_file(path).map_err(|error| refusal(&error))?.is_none() {
        return Ok(None);
    }
    let text = files::text(path).map_err(Failure::refused)?;
    // `FILE:line:column`, as compilers write it.
    let misread = |finding: Diagnostic| Failure::refused(format!("{source}:{}", finding.quoted()));
    let document = yaml::documents(&text).map_err(misread)?.pop().unwrap_or_default();
    let name = name(&document).map_err(misread)?;
    let values = ValuesFile { name: source.to_owned(), locations: document.locations, under: "spec.values" };
    Ok(Some(PlatformFile { name, values }))
}

/// The name of the platform that SOURCE is, `default` for any other SOURCE and where it cannot be read.
pub(crate) fn named(source: &str) -> String {
    read(source).ok().flatten().map_or_else(|| DEFAULT_PLATFORM.to_owned(), |platform| platform.name)
}

fn name(document: &Document) -> Result<String, Diagnostic> {
    const PATH: &str = "metadata.name";
    let message = match document.value.pointer("/metadata/name") {
        None | Some(Value::Null) => return Ok(DEFAULT_PLATFORM.to_owned()),
        Some(Value::String(name)) if platform::is_name(name) => return Ok(name.clone()),
        Some(other) => format!("{other} is no name for a platform: {}", platform::NAME_RULE),
    };
    let mut finding = Diagnostic::error(PATH, message);
    finding.location = document.locations.nearest(PATH);
    Err(finding)
}

#[cfg(test)]
mod tests {
    use plinth_run::Outcome;

    use super::*;

    fn of(metadata: &str) -> Result<String, Failure> {
        let folder = tempfile::tempdir().unwrap();
        let file = folder.path().join("platform.yaml");
        let text = format!("apiVersion: plinth.dev/v1alpha1\nkind: Platform\n{metadata}spec:\n  source: {{channel: x.tgz}}\n");
        std::fs::write(&file, text).unwrap();
        read(file.to_str().unwrap()).map(|platform| platform.unwrap().name)
    }

    #[test]
    fn a_platform_has_the_name_of_its_file() {
        assert_eq!(of("metadata: {name: sample}\n").unwrap(), "sample");
        assert_eq!(of("metadata:\n  name: a-1\n").unwrap(), "a-1");
        assert_eq!(of("").unwrap(), "default");
        assert_eq!(named("nowhere.tgz"), "default");
        assert!(read("nowhere.tgz").unwrap().is_none());
    }

    #[test]
    fn a_name_that_is_no_dns_label_is_refused_with_its_place() {
        let long = "a".repeat(64);
        for name in ["Upper", "a.b", "a_b", "-a", "''", "17", "a/../b", &long] {
            let failure = of(&format!("metadata:\n  name: {name}\n")).unwrap_err();
            assert_eq!(failure.outcome, Outcome::Refused);
            assert!(failure.message.contains("platform.yaml:4:9 metadata.name: "), "{}", failure.message);
            assert!(failure.message.contains("lower-case letters, digits and -"), "{}", failure.message);
        }
    }
}
