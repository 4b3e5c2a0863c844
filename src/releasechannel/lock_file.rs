//! Saved release locks. A file is from outside: what does not hold together is refused where it is read, not where it would do harm.

use std::collections::BTreeSet;
use std::path::Path;

use plinth_api::lock::ReleaseLock;
use plinth_api::platform::API_VERSION;
use serde_json::Value;

use crate::error::ResolveError;
use crate::text;

const LIMIT: u64 = 256 << 20;

/// The release lock in this file, if the file is one; `None` where it is something else.
pub fn lock_file(path: &Path) -> Result<Option<ReleaseLock>, ResolveError> {
    let is_text = path.extension().is_some_and(|end| end == "json" || end == "yaml" || end == "yml" || end == "lock");
    if !is_text || !path.is_file() {
        return Ok(None);
    }
    let document: Value = text::document(&crate::ctf::archive::read_file(path, LIMIT)?)
        .map_err(|error| ResolveError::Option { option: error.place_in(path.display()), reason: error.message })?;
    if is_lock(&document) { read(document, path).map(Some) } else { Ok(None) }
}

/// The release lock in this file, which must be one.
pub fn the_lock_file(path: &Path) -> Result<ReleaseLock, ResolveError> {
    let document: Option<Value> = text::document(&crate::ctf::archive::read_file(path, LIMIT)?).ok();
    match document.filter(is_lock) {
        Some(document) => read(document, path),
        None => Err(refused(path, "that is no release lock, as `plinth channel lock` prints one")),
    }
}

fn is_lock(document: &Value) -> bool {
    document.get("kind").and_then(Value::as_str) == Some("ReleaseLock")
}

fn read(document: Value, path: &Path) -> Result<ReleaseLock, ResolveError> {
    let lock: ReleaseLock =
        serde_json::from_value(document).map_err(|error| refused(path, &format!("it is no release lock: {error}")))?;
    check(&lock).map_err(|reason| refused(path, &format!("the release lock does not hold together: {reason}")))?;
    Ok(lock)
}

fn refused(path: &Path, reason: &str) -> ResolveError {
    ResolveError::Option { option: path.display().to_string(), reason: reason.to_owned() }
}

/// Whether all that is named is there, and nothing twice.
fn check(lock: &ReleaseLock) -> Result<(), String> {
    if lock.api_version != API_VERSION {
        return Err(format!("its apiVersion is `{}`, known is {API_VERSION}", lock.api_version));
    }
    if lock.components.is_empty() {
        return Err("it has no components".to_owned());
    }
    let mut there = BTreeSet::new();
    for component in &lock.components {
        let at = format!("{}:{}", component.name, component.version);
        if component.repository >= lock.repositories.len() {
            return Err(format!("{at} is in repository {}, and it has {}", component.repository, lock.repositories.len()));
        }
        if !there.insert((&component.name, &component.version)) {
            return Err(format!("it has {at} twice"));
        }
    }
    if !there.contains(&(&lock.root.name, &lock.root.version)) {
        return Err(format!("its root {}:{} is not among its components", lock.root.name, lock.root.version));
    }
    for component in &lock.components {
        let is_there = |target: &plinth_api::lock::ReferenceTarget| there.contains(&(&target.component_name, &target.version));
        if let Some(reference) = component.references.iter().find(|reference| !is_there(&reference.target)) {
            let target = &reference.target;
            return Err(format!(
                "the reference {} of {}:{} leads to {}:{}, which is not among its components",
                reference.name, component.name, component.version, target.component_name, target.version
            ));
        }
    }
    Ok(())
}

#[cfg(test)]
mod tests {
    use serde_json::json;

    use super::*;

    fn reason(change: impl FnOnce(&mut Value)) -> Option<String> {
        let component = |name: &str| json!({"name": name, "version": "1.0.0", "repository": 0, "digest": "sha256:00"});
        let mut root = component("a.test/root");
        root["references"] = json!([{"name": "leaf", "componentName": "a.test/leaf", "version": "1.0.0"}]);
        let mut document = json!({"apiVersion": API_VERSION, "kind": "ReleaseLock", "root": {"name": "a.test/root", "version": "1.0.0"},
            "repositories": [{"type": "OCIRegistry"}], "components": [component("a.test/leaf"), root]});
        change(&mut document);
        let folder = tempfile::tempdir().unwrap();
        let path = folder.path().join("lock.json");
        std::fs::write(&path, document.to_string()).unwrap();
        let error = the_lock_file(&path).err().map(|error| error.to_string());
        assert_eq!(error, lock_file(&path).err().map(|error| error.to_string()));
        error
    }

    #[test]
    fn what_does_not_hold_together_is_refused() {
        assert_eq!(reason(|_| ()), None);
        for (change, words) in [
            (&(|lock: &mut Value| lock["components"] = json!([])) as &dyn Fn(&mut Value), "has no components"),
            (&|lock| lock["root"]["version"] = "2.0.0".into(), "its root a.test/root:2.0.0 is not among its components"),
            (
                &|lock| drop(lock["components"].as_array_mut().unwrap().remove(0)),
                "the reference leaf of a.test/root:1.0.0 leads to",
            ),
            (&|lock| lock["components"][0]["repository"] = 3.into(), "a.test/leaf:1.0.0 is in repository 3, and it has 1"),
            (&|lock| lock["components"][1] = lock["components"][0].clone(), "it has a.test/leaf:1.0.0 twice"),
            (&|lock| lock["apiVersion"] = "plinth.dev/v2".into(), "its apiVersion is `plinth.dev/v2`"),
            (&|lock| lock["components"] = "x".into(), "it is no release lock"),
        ] {
            let found = reason(change).unwrap_or_default();
            assert!(found.contains(words), "{found}: {words}");
        }
    }

    #[test]
    fn another_file_is_none_and_says_so_where_one_is_wanted() {
        let folder = tempfile::tempdir().unwrap();
        let path = folder.path().join("page.html");
        assert!(the_lock_file(&path).unwrap_err().to_string().contains("page.html"));
        std::fs::write(&path, "<html>secret</html>").unwrap();
        let error = the_lock_file(&path).unwrap_err().to_string();
        assert!(error.contains("that is no release lock") && !error.contains("secret"), "{error}");
        assert_eq!(lock_file(&path).unwrap(), None);
    }
}
