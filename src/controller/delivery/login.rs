//! By which configuration and logins an object asks its registry.

use std::collections::BTreeSet;

use plinth_api::{
    GroupVersionKind, Object, ObjectKey,
    delivery::{GROUP, VERSION},
};
use plinth_engine::permission;
use serde_json::Value;

use super::{
    config,
    reconcile::{Delivery, Pass},
    report::{Failed, Reason},
    sources::Credentials,
};

impl Delivery {
    /// Works out the configuration of an object and reads its texts.
    pub(super) async fn credentials(&self, pass: &mut Pass<'_>, parent: Option<&Object>) -> Result<Credentials, Failed> {
        let namespace = pass.key.namespace.clone().or_else(|| parent?.namespace().map(str::to_owned)).unwrap_or_default();
        let entries = pass.object.spec().get("ocmConfig").cloned().unwrap_or_else(|| Value::Array(Vec::new()));
        let entries: Vec<_> = serde_json::from_value(entries)
            .map_err(|error| Failed::wrong(Reason::GetConfigurationFailed, format!("spec.ocmConfig: {error}")))?;
        let mut effective = Vec::new();
        for source in config::sources(&entries, &namespace) {
            match source {
                config::Source::Data(entry) => config::merge(&mut effective, vec![entry]),
                config::Source::Inherited { kind, name, namespace, propagate } => {
                    let gvk = GroupVersionKind::new(GROUP, VERSION, kind);
                    let key = ObjectKey { cluster: pass.key.cluster.clone(), gvk, namespace: Some(namespace), name };
                    let from = self.ready_object(pass, key, Reason::GetConfigurationFailed).await?;
                    config::merge(&mut effective, config::inherited(&from, propagate));
                }
            }
        }
        if entries.is_empty() {
            config::merge(&mut effective, parent.map(config::handed_down).unwrap_or_default());
        }
        pass.config.clone_from(&effective);
        let mut credentials = Credentials::default();
        for entry in &effective {
            self.read_config(pass, entry, &mut credentials).await?;
        }
        Ok(credentials)
    }

    async fn read_config(&self, pass: &mut Pass<'_>, entry: &Value, into: &mut Credentials) -> Result<(), Failed> {
        let text = |field: &str| entry.get(field).and_then(Value::as_str).unwrap_or_default().to_owned();
        let key = ObjectKey {
            cluster: pass.key.cluster.clone(),
            gvk: GroupVersionKind::new("", "v1", text("kind")),
            namespace: Some(text("namespace")),
            name: text("name"),
        };
        // Read, not watched: a watch would hold every Secret of the cluster in memory.
        let found = self.world.reader.get(&key).await.map_err(|error| match permission::of_read(&error) {
            Some(missing) => Failed::unpermitted(BTreeSet::from([missing])),
            None => Failed::retry(Reason::GetConfigurationFailed, error.to_string()),
        })?;
        let Some(object) = found else {
            return Err(Failed::retry(Reason::GetConfigurationFailed, format!("{key} does not exist")));
        };
        match config::texts(&object) {
            Ok((ocm, docker)) => {
                into.ocm.extend(ocm);
                into.docker.extend(docker);
                Ok(())
            }
            Err(message) => Err(Failed::retry(Reason::GetConfigurationFailed, format!("{key}: {message}"))),
        }
    }
}
