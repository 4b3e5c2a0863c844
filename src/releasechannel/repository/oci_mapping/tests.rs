use std::path::{Path, PathBuf};

use super::*;
use crate::bundle::{Kept, create, missing};
use crate::channel::Channel;
use crate::error::{ErrorKind, ResolveError};
use crate::options::Options;
use crate::registry::{Registries, push};
use crate::resolve::inspect;
use crate::selection::Selection;
use crate::source::{RepositoryRef, SourceRef};
use crate::testing::{RealRegistry, data, offline};

const CHANNEL: &str = "acme.example/releasechannel/stable:2026.11.0";

async fn channel(place: &str, options: &Options) -> Result<Channel, ResolveError> {
    inspect(&SourceRef::parse(&format!("{place}//{CHANNEL}")).unwrap(), &Selection::default(), options).await
}

fn files(folder: &Path) -> Vec<PathBuf> {
    let mut found = Vec::new();
    for entry in std::fs::read_dir(folder).unwrap() {
        let path = entry.unwrap().path();
        if path.is_dir() { found.extend(files(&path)) } else { found.push(path) }
    }
    found
}

/// Flips one bit of every configuration of a component version below a folder, whatever the files are called.
fn tamper(folder: &Path) {
    let mut tampered = 0;
    for path in files(folder) {
        let mut bytes = std::fs::read(&path).unwrap();
        if bytes.starts_with(b"{\"componentDescriptorLayer\"") {
            bytes[3] ^= 1;
            std::fs::write(path, bytes).unwrap();
            tampered += 1;
        }
    }
    assert!(tampered > 0, "there is no configuration below {}", folder.display());
}

fn assert_refused(error: &ResolveError) {
    assert!(matches!(error, ResolveError::Repository { source: RepositoryError::Digest { .. }, .. }), "{error}");
    assert_eq!(error.kind(), ErrorKind::Refused);
}

#[tokio::test]
async fn a_changed_configuration_in_an_archive_is_refused() {
    let folder = tempfile::tempdir().unwrap();
    let original = data().join("ocm/ctf/v1");
    for path in files(&original) {
        let target = folder.path().join(path.strip_prefix(&original).unwrap());
        std::fs::create_dir_all(target.parent().unwrap()).unwrap();
        std::fs::write(target, std::fs::read(path).unwrap()).unwrap();
    }
    let place = format!("ctf::{}", folder.path().display());
    channel(&place, &offline()).await.unwrap();
    tamper(folder.path());
    assert_refused(&channel(&place, &offline()).await.unwrap_err());
}

/// In a registry it is not read where nothing of it is used, and proven where a whole channel is.
#[tokio::test]
async fn a_changed_configuration_in_a_registry_is_refused_by_what_proves_everything() {
    let registry = RealRegistry::start().await;
    let mut options = offline();
    options.plain_http.insert(registry.host.clone());
    let archive = channel(&format!("ctf::{}", data().join("ocm/ctf/v1-byval").display()), &offline()).await.unwrap();
    let folder = tempfile::tempdir().unwrap();
    let bundle = create(&archive, &folder.path().join("a"), &Kept::default()).await.unwrap();
    push(&bundle.contents, &RepositoryRef::parse(&registry.host).unwrap(), &Registries::new(&options).unwrap()).await.unwrap();
    tamper(&registry.folder.path().join("data"));
    let found = channel(&registry.host, &options).await.unwrap();
    assert_refused(&found.verify_resources().await.unwrap_err());
    assert_refused(&create(&found, &folder.path().join("b"), &Kept::default()).await.err().unwrap());
    let missing = missing(&found, &archive.lock).await.unwrap();
    assert!(missing.iter().any(|what| what.starts_with("configuration of component acme.example/")), "{missing:?}");
}
