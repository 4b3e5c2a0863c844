//! The contexts of a kubeconfig: the clusters that a person may look at.

use std::path::Path;

use plinth_cluster::{access::Source, chain};
use serde_json::Value;

use crate::{args::Global, files};

/// The contexts of one or more kubeconfigs.
#[derive(Clone, Debug, Default, PartialEq, Eq)]
pub(crate) struct Contexts {
    /// Their names, each once, sorted.
    pub names: Vec<String>,
    /// The one that is used where none is named.
    pub current: Option<String>,
}

impl Contexts {
    /// Reads what `--kubeconfig`, `KUBECONFIG` or the home directory names; inside a cluster there are none. Contacts nothing.
    pub(crate) fn read(kubeconfig: Option<&Path>) -> Result<Self, String> {
        let files = match Source::infer(kubeconfig).map_err(|error| chain(&error))? {
            Source::Files(files) => files,
            Source::Bytes { .. } | Source::InCluster => return Ok(Self::default()),
        };
        let mut all = Self::default();
        let mut unread = None;
        for file in files {
            let added =
                files::text(&file).and_then(|text| all.add(&text).map_err(|error| format!("read {}: {error}", file.display())));
            unread = unread.or(added.err());
        }
        // Of several files one may be missing, as for kubectl.
        unread.filter(|_| all.names.is_empty()).map_or(Ok(all), Err)
    }

    /// The context that the command line means: what a person calls the cluster. `None` where there is none.
    pub(crate) fn chosen(global: &Global) -> Option<String> {
        global.context.clone().or_else(|| Self::read(global.kubeconfig.as_deref()).unwrap_or_default().current)
    }

    /// Of two files that say it, the first one says which context is the current one, as for kubectl.
    fn add(&mut self, text: &str) -> Result<(), serde_saphyr::Error> {
        let config: Value = serde_saphyr::from_str(text)?;
        let contexts = config.get("contexts").and_then(Value::as_array).into_iter().flatten();
        self.names.extend(contexts.filter_map(|context| Some(context.get("name")?.as_str()?.to_owned())));
        self.names.sort();
        self.names.dedup();
        let current = config.get("current-context").and_then(Value::as_str).filter(|name| !name.is_empty());
        self.current = self.current.take().or_else(|| current.map(str::to_owned));
        Ok(())
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn contexts_of_several_files_are_one_list() {
        let mut all = Contexts::default();
        all.add("{contexts: [{name: two}, {name: one}], current-context: ''}").unwrap();
        all.add("{contexts: [{name: one}], current-context: one}").unwrap();
        all.add("{contexts: [{name: three}], current-context: three}").unwrap();
        assert_eq!(all.names, ["one", "three", "two"]);
        assert_eq!(all.current.as_deref(), Some("one"));
        assert!(all.add("- broken: [").is_err());
    }
}
