//! What both OCM tools need of an archive, as far as reference/ocm.md says it: the tools themselves cannot be had here.

use std::collections::BTreeSet;

use super::*;
use crate::ctf::INDEX_FILE;
use crate::source::DESCRIPTORS;
use crate::versions::to_tag;

/// One archive, read without our own reader: plain JSON and files.
struct Written {
    index: Value,
    files: Vec<(String, Vec<u8>)>,
}

impl Written {
    /// From a tar: names as they stand in it, in order.
    fn read(path: &Path) -> Self {
        let mut tar = tar::Archive::new(std::fs::File::open(path).unwrap());
        let mut files = Vec::new();
        for entry in tar.entries().unwrap() {
            let mut entry = entry.unwrap();
            let name = String::from_utf8(entry.path_bytes().into_owned()).unwrap();
            let mut bytes = Vec::new();
            std::io::Read::read_to_end(&mut entry, &mut bytes).unwrap();
            files.push((name, bytes));
        }
        Self { index: serde_json::from_slice(&files[0].1).unwrap(), files }
    }

    fn json(&self, digest: &Value) -> Value {
        let name = format!("blobs/{}", digest.as_str().unwrap().replace(':', "."));
        let found = self.files.iter().find(|(file, _)| *file == name);
        serde_json::from_slice(&found.unwrap_or_else(|| panic!("{name} is not there")).1).unwrap()
    }

    fn entries(&self) -> &[Value] {
        self.index["artifacts"].as_array().unwrap()
    }

    fn is_listed(&self, repository: &Value, digest: &Value) -> bool {
        self.entries().iter().any(|entry| entry["repository"] == *repository && entry["digest"] == *digest)
    }
}

/// Index first, no `./`, a media type everywhere, every name of a blob its digest, each tag once.
fn check_form(written: &Written) {
    assert_eq!(written.files[0].0, INDEX_FILE);
    assert!(written.files.iter().all(|(name, _)| !name.starts_with(['.', '/'])), "{:?}", written.files[0].0);
    for (name, bytes) in written.files.iter().filter(|(name, _)| name.starts_with("blobs/") && name.len() > 6) {
        let digest: crate::Digest = name["blobs/".len()..].replacen('.', ":", 1).parse().unwrap();
        assert!(digest.matches(bytes), "{name}");
    }
    let mut tags = BTreeSet::new();
    for entry in written.entries() {
        assert!(entry["mediaType"].as_str().is_some_and(|kind| kind.starts_with("application/vnd.oci.image.")), "{entry}");
        written.json(&entry["digest"]);
        assert!(entry["tag"].is_null() || tags.insert((entry["repository"].clone().to_string(), entry["tag"].to_string())));
    }
}

/// The manifest of a component version: of an index its first member, and every member is listed for itself (ocm.md 3.2).
fn component_manifest(written: &Written, entry: &Value) -> (Value, Vec<Value>) {
    let top = written.json(&entry["digest"]);
    let Some(members) = top["manifests"].as_array() else { return (top, Vec::new()) };
    for member in members {
        assert!(written.is_listed(&entry["repository"], &member["digest"]), "{member} is in an index and not listed");
        written.json(&member["digest"]);
    }
    (written.json(&members[0]["digest"]), members[1..].to_vec())
}

/// Configuration and layers of a component version, and that every local blob is a layer or a member.
fn check_component(written: &Written, entry: &Value) {
    let (manifest, members) = component_manifest(written, entry);
    assert_eq!(manifest["config"]["mediaType"], "application/vnd.ocm.software.component.config.v1+json");
    let layers = manifest["layers"].as_array().unwrap();
    let named = written.json(&manifest["config"]["digest"])["componentDescriptorLayer"].clone();
    assert_eq!(
        (&named["digest"], &named["mediaType"], &named["size"]),
        (&layers[0]["digest"], &layers[0]["mediaType"], &layers[0]["size"])
    );
    let component = written.json(&layers[0]["digest"])["component"].clone();
    let spelled = format!("{}:{}", component["name"].as_str().unwrap(), component["version"].as_str().unwrap());
    assert_eq!(manifest["annotations"]["software.ocm.componentversion"], spelled.as_str());
    assert_eq!(entry["repository"], format!("component-descriptors/{}", component["name"].as_str().unwrap()));
    assert_eq!(entry["tag"], to_tag(component["version"].as_str().unwrap()));
    for list in ["resources", "sources", "componentReferences", "repositoryContexts"] {
        assert!(component[list].is_array() || component[list].is_null(), "{spelled}: {list}");
    }
    let carried: Vec<&Value> = layers[1..].iter().chain(&members).collect();
    for blob in &carried {
        let used_by: Vec<Value> = serde_json::from_str(blob["annotations"]["software.ocm.artifact"].as_str().unwrap()).unwrap();
        assert!(used_by.iter().all(|used| used["kind"].is_string() && used["identity"]["name"].is_string()), "{blob}");
    }
    let elements = ["resources", "sources"].into_iter().flat_map(|list| component[list].as_array().into_iter().flatten());
    for access in elements.map(|element| &element["access"]).filter(|access| access["type"] == "localBlob") {
        assert!(
            carried.iter().any(|blob| blob["digest"] == access["localReference"]),
            "{spelled}: {access} is no layer and no member"
        );
    }
}

#[tokio::test]
async fn show_04_written_for_both() {
    let folder = tempfile::tempdir().unwrap();
    let mut components = 0;
    for name in ["v1-byval", "v2-byval"] {
        let channel = channel_at(&archive(name), &offline()).await;
        let bundle = create(&channel, &folder.path().join("parts"), &Kept::default()).await.unwrap();
        let path = folder.path().join(format!("{name}.tar"));
        bundle.contents.write(&path, crate::Format::Tar).unwrap();
        let written = Written::read(&path);
        check_form(&written);
        let is_component =
            |entry: &&Value| entry["repository"].as_str().unwrap().starts_with(DESCRIPTORS) && !entry["tag"].is_null();
        for entry in written.entries().iter().filter(is_component) {
            check_component(&written, entry);
            components += 1;
        }
    }
    eprintln!(
        "SHOW 04 written-for-both {components} component versions in archives of plinth have what reference/ocm.md says both tools need; the tools were not run"
    );
    assert_eq!(components, 12);
}

/// A mistyped path is no reason for folders.
#[tokio::test]
async fn nothing_is_written_into_a_folder_that_is_not_there() {
    let folder = tempfile::tempdir().unwrap();
    let typo = folder.path().join("typo");
    for (name, format) in [("x", crate::Format::Folder), ("x.tar", crate::Format::Tar), ("x.tgz", crate::Format::Tgz)] {
        let error = Contents::default().write(&typo.join(name), format).unwrap_err();
        assert_eq!(error.kind(), ErrorKind::NotFound, "{error}");
        assert!(error.to_string().contains(&typo.join(name).display().to_string()), "{error}");
    }
    let held = crate::bundle::hold(&typo.join("x.tgz.parts")).unwrap_err();
    assert_eq!(held.kind(), ErrorKind::NotFound, "{held}");
    assert!(!typo.exists());
    drop(crate::bundle::hold(&folder.path().join("x.tgz.parts")).unwrap());
    Contents::default().write(&folder.path().join("x"), crate::Format::Folder).unwrap();
}
