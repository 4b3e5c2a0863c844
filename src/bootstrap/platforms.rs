//! Which platforms a cluster has.

use std::collections::BTreeSet;

use futures::{StreamExt, stream};
use plinth_api::{ClusterKey, GroupVersionKind};
use plinth_engine::{
    naming::keys,
    ports::{Query, ReadError, Reader},
};

use crate::{install, ports::Schemas, preflight::AT_ONCE, removal};

/// Names of the platforms that a cluster has, as the label of what a run writes itself says them: definitions, Repositories, CRDs and
/// namespaces, whatever the distribution.
pub async fn platforms(reader: &dyn Reader) -> Result<BTreeSet<String>, ReadError> {
    let answers = ask(reader, removal::own_kinds()).await;
    let names: Vec<BTreeSet<String>> = answers.into_iter().collect::<Result<_, _>>()?;
    Ok(names.into_iter().flatten().collect())
}

/// The same, looking through every kind that can be listed: of a platform that was removed in part, or by hand, anything may be left.
/// A Platform counts that somebody made and nothing came of. What cannot be looked at is passed over.
pub async fn remains(reader: &dyn Reader, schemas: &dyn Schemas) -> BTreeSet<String> {
    let kinds = schemas.listable().await.unwrap_or_default();
    let answers = ask(reader, kinds.into_iter().map(|kind| kind.gvk).collect()).await;
    // Nothing came of a Platform yet, and something may at any time.
    let gvk = install::platform_kind();
    let query = Query { cluster: ClusterKey::host(), gvk, namespace: None, selector: String::new() };
    let asked = removal::ask(reader, &query).await.unwrap_or_default().into_iter().map(|found| found.key.name);
    answers.into_iter().flatten().flatten().chain(asked).collect()
}

/// The platforms that objects of these kinds belong to.
async fn ask(reader: &dyn Reader, kinds: Vec<GroupVersionKind>) -> Vec<Result<BTreeSet<String>, ReadError>> {
    let query = |gvk| Query { cluster: ClusterKey::host(), gvk, namespace: None, selector: keys::PLATFORM.to_owned() };
    let asked = stream::iter(kinds).map(async |gvk| {
        let found = removal::ask(reader, &query(gvk)).await?;
        Ok(found.iter().filter_map(|found| found.object.label(keys::PLATFORM).map(str::to_owned)).collect())
    });
    asked.buffered(AT_ONCE).collect().await
}

#[cfg(test)]
mod tests {
    use serde_json::json;

    use super::*;
    use crate::testing::{Bench, object};

    #[tokio::test(start_paused = true)]
    async fn a_cluster_tells_its_platforms() {
        let bench = Bench::new();
        let named = async || platforms(bench.cluster.as_ref()).await.unwrap().into_iter().collect::<Vec<_>>();
        assert_eq!(named().await, [""; 0]);
        let unlabelled = json!({"apiVersion": "v1", "kind": "Namespace", "metadata": {"name": "somebody"}});
        bench.cluster.put(&object(unlabelled));
        assert_eq!(named().await, [""; 0]);
        bench.up().await;
        assert_eq!(named().await, ["default"]);
        let other = json!({"apiVersion": "v1", "kind": "Namespace",
            "metadata": {"name": "other", "labels": {"plinth.dev/platform": "sample"}}});
        bench.cluster.put(&object(other));
        assert_eq!(named().await, ["default", "sample"]);
    }

    #[tokio::test(start_paused = true)]
    async fn a_platform_that_never_came_up_is_found() {
        let bench = Bench::new();
        let asked = json!({"apiVersion": "plinth.dev/v1alpha1", "kind": "Platform", "metadata": {"name": "mine"}, "spec": {}});
        bench.cluster.put(&plinth_api::crds::PLATFORM.object());
        bench.cluster.put(&object(asked));
        let left = remains(bench.cluster.as_ref(), bench.cluster.as_ref()).await;
        assert_eq!(left.into_iter().collect::<Vec<_>>(), ["mine"]);
    }

    #[tokio::test(start_paused = true)]
    async fn what_is_left_of_a_platform_is_found_in_every_kind() {
        let bench = Bench::new();
        bench.up().await;
        for key in bench.cluster.objects().into_keys().filter(|key| key.gvk.group != "apps") {
            bench.cluster.take(&key);
        }
        assert_eq!(platforms(bench.cluster.as_ref()).await.unwrap().len(), 0);
        let left = remains(bench.cluster.as_ref(), bench.cluster.as_ref()).await;
        assert_eq!(left.into_iter().collect::<Vec<_>>(), ["default"]);
    }
}
