//! One instance of the corpus with the definitions that it needs.

use std::path::Path;

use plinth_api::Object;
use plinth_engine::yaml;
use serde_json::Value;

use crate::Result;

/// Where instances live.
pub(super) const NAMESPACE: &str = "golden";

/// An instance and its definition.
pub struct Case {
    /// Name of the file that it comes from.
    pub name: String,
    /// The definition.
    pub definition: Object,
    /// The instance as a user creates it.
    pub instance: Object,
}

impl Case {
    /// The cases of the corpus, in the order of their names.
    pub fn read_all(data: &Path, filter: &str) -> Result<Vec<Self>> {
        let folder = data.join("golden-instances");
        let listed = std::fs::read_dir(&folder).map_err(|error| format!("{}: {error}", folder.display()))?;
        let mut paths: Vec<_> = listed.map(|entry| Ok(entry?.path())).collect::<Result<_>>()?;
        paths.retain(|path| path.to_string_lossy().contains(filter));
        paths.sort();
        paths.iter().map(|path| Self::read(data, path)).collect()
    }

    fn read(data: &Path, path: &Path) -> Result<Self> {
        let golden: Value = serde_json::from_str(&std::fs::read_to_string(path)?)?;
        let source = data.join(golden["path"].as_str().ok_or("a case without `path`")?);
        let text = std::fs::read_to_string(&source).map_err(|error| format!("{}: {error}", source.display()))?;
        let documents = yaml::documents_with_duplicates(&text).map_err(|finding| format!("{}: {finding}", source.display()))?;
        let definition = documents.into_iter().find(|document| document.value["kind"] == plinth_api::rgd::KIND);
        let definition = definition.and_then(|document| Object::from_value(document.value));
        Ok(Self {
            name: path.file_name().unwrap_or_default().to_string_lossy().into_owned(),
            definition: definition.ok_or_else(|| format!("{} holds no definition", source.display()))?,
            instance: Object::from_value(golden["input"].clone()).ok_or("a case without `input`")?,
        })
    }
}
