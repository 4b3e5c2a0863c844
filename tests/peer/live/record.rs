//! Bringing a case up on a server, and writing down what came of it.

use std::{
    collections::BTreeMap,
    time::{Duration, Instant},
};

use kube::{
    Api, Client, Discovery,
    api::{ApiResource, DynamicObject, ListParams},
    discovery::Scope,
};
use plinth_engine::naming::keys;
use serde_json::Value;

use super::{Case, Stage, case::NAMESPACE};
use crate::{Result, objects};

/// An instance that has not moved for this long is settled: kro looks again every three seconds.
const QUIET: Duration = Duration::from_secs(4);
/// The same for one that is ACTIVE and Ready.
const QUIET_READY: Duration = Duration::from_millis(1200);
/// The same for one that is ACTIVE and not Ready: kro says so between two passes.
const QUIET_ACTIVE: Duration = Duration::from_secs(12);
/// What has not settled by then is recorded as it is.
const LIMIT: Duration = Duration::from_secs(25);

/// What came of a case.
#[derive(Clone, Debug, Default, PartialEq)]
pub struct Recorded {
    /// `state` of the definition.
    pub definition: String,
    /// The instance.
    pub instance: Value,
    /// Its children by kind, namespace and name.
    pub children: BTreeMap<String, Value>,
    /// UID of the definition.
    pub definition_uid: String,
}

impl Stage {
    /// Creates definition and instance, waits until nothing moves, records, and removes everything.
    pub(super) async fn record(&self, case: &Case) -> Result<Recorded> {
        self.running.usage()?;
        let definitions = objects::api(&self.client, &objects::definitions(), None);
        objects::create(&definitions, &case.definition).await.map_err(|error| format!("{}: {error}", case.name))?;
        let definition = self.accepted(&definitions, case).await?;
        let mut recorded = Recorded {
            definition: objects::state(&definition).to_owned(),
            definition_uid: definition.metadata.uid.clone().unwrap_or_default(),
            ..Recorded::default()
        };
        if recorded.definition == "Active" {
            self.instance(case, &mut recorded).await?;
        }
        objects::remove(&definitions, case.definition.name(), Duration::from_secs(15)).await?;
        self.remove_crds().await?;
        Ok(recorded)
    }

    async fn accepted(&self, definitions: &Api<DynamicObject>, case: &Case) -> Result<DynamicObject> {
        let began = Instant::now();
        loop {
            let definition = definitions.get(case.definition.name()).await?;
            if objects::holds(&definition, "Ready") || began.elapsed() > LIMIT {
                return Ok(definition);
            }
            tokio::time::sleep(Duration::from_millis(100)).await;
        }
    }

    async fn instance(&self, case: &Case, recorded: &mut Recorded) -> Result<()> {
        let kinds = Discovery::new(self.client.clone()).run_aggregated().await?;
        let gvk = case.instance.gvk().ok_or("an instance without a type")?;
        let (kind, scope) = find(&kinds, &gvk.group, &gvk.kind).ok_or_else(|| format!("{gvk} is not served"))?;
        let namespace = (scope == Scope::Namespaced).then(|| case.instance.namespace().unwrap_or(NAMESPACE).to_owned());
        let instances = objects::api(&self.client, &kind, namespace.as_deref());
        objects::create(&instances, &case.instance).await.map_err(|error| format!("{}: {error}", case.name))?;
        let instance = settled(&instances, case.instance.name()).await?;
        let uid = instance.metadata.uid.clone().unwrap_or_default();
        recorded.children = children(&self.client, &kinds, &instance, &uid).await?;
        recorded.instance = serde_json::to_value(instance)?;
        objects::remove(&instances, case.instance.name(), Duration::from_secs(20)).await?;
        // Whatever a faulty removal left must not meet the next case.
        for child in recorded.children.values() {
            let Some(child) = plinth_api::Object::from_value(child.clone()) else { continue };
            let Some((kind, _)) = child.gvk().and_then(|gvk| find(&kinds, &gvk.group, &gvk.kind)) else { continue };
            objects::remove(&objects::api(&self.client, &kind, child.namespace()), child.name(), Duration::from_secs(5)).await?;
        }
        Ok(())
    }

    /// kro leaves CRDs behind; the next definition of the same kind would meet them.
    async fn remove_crds(&self) -> Result<()> {
        let crds = objects::api(&self.client, &objects::crds(), None);
        let owned = ListParams::default().labels(&format!("{}=true", keys::OWNED));
        for crd in crds.list(&owned).await? {
            objects::remove(&crds, &crd.metadata.name.unwrap_or_default(), Duration::from_secs(10)).await?;
        }
        Ok(())
    }
}

fn find(kinds: &Discovery, group: &str, kind: &str) -> Option<(ApiResource, Scope)> {
    let group = kinds.groups().find(|served| served.name() == group)?;
    let (resource, capabilities) = group.recommended_kind(kind)?;
    Some((resource, capabilities.scope))
}

async fn settled(instances: &Api<DynamicObject>, name: &str) -> Result<DynamicObject> {
    let (began, mut since) = (Instant::now(), Instant::now());
    let mut before: Option<DynamicObject> = None;
    loop {
        let now = instances.get(name).await?;
        if before.as_ref().map(|before| &before.metadata.resource_version) != Some(&now.metadata.resource_version) {
            since = Instant::now();
        }
        let quiet = match (objects::state(&now) == "ACTIVE", objects::holds(&now, "Ready")) {
            (true, true) => QUIET_READY,
            (true, false) => QUIET_ACTIVE,
            (false, _) => QUIET,
        };
        let stated = !objects::state(&now).is_empty();
        if (stated && since.elapsed() > quiet) || began.elapsed() > LIMIT {
            return Ok(now);
        }
        before = Some(now);
        tokio::time::sleep(Duration::from_millis(200)).await;
    }
}

/// Everything that carries the instance's UID in its label, of the kinds that its inventory names.
async fn children(client: &Client, kinds: &Discovery, instance: &DynamicObject, uid: &str) -> Result<BTreeMap<String, Value>> {
    let annotations = instance.metadata.annotations.clone().unwrap_or_default();
    let named = annotations.get(keys::APPLYSET_GROUP_KINDS).cloned().unwrap_or_default();
    let mut children = BTreeMap::new();
    for kind in named.split(',').filter(|kind| !kind.is_empty()) {
        let (name, group) = kind.split_once('.').unwrap_or((kind, ""));
        let Some((resource, _)) = find(kinds, group, name) else { continue };
        let of_instance = ListParams::default().labels(&format!("{}={uid}", keys::INSTANCE_ID));
        for mut child in objects::api(client, &resource, None).list(&of_instance).await? {
            child.types = Some(kube::api::TypeMeta { api_version: resource.api_version.clone(), kind: resource.kind.clone() });
            let place = child.metadata.namespace.clone().unwrap_or_default();
            let key = format!("{kind} {place}/{}", child.metadata.name.clone().unwrap_or_default());
            children.insert(key, serde_json::to_value(child)?);
        }
    }
    Ok(children)
}
