//! Texts of the Secrets that a Platform names: credentials, and keys of signatures.

use plinth_api::{
    ClusterKey, GroupVersionKind, Object, ObjectKey,
    artifact::PullSecretRef,
    platform::{NAMESPACE, PlatformSpec},
};
use plinth_engine::permission;
use serde_json::{Value, json};

use crate::{
    delivery::{
        config,
        report::{Failed, Reason},
        sources::Credentials,
        verify::text_in_secret,
    },
    world::World,
};

/// The spec with keys in the place of references to them, and the credentials for its source.
pub(crate) async fn read(
    world: &World,
    cluster: &ClusterKey,
    mut spec: PlatformSpec,
) -> Result<(PlatformSpec, Credentials), Failed> {
    let mut credentials = Credentials::default();
    if let Some(secret) = pull_secret(&spec) {
        let object = one(world, cluster, &secret.name, &secret.namespace).await?;
        let (ocm, docker) = config::texts(&object).map_err(|reason| {
            let message = format!("Secret {}/{} {reason}", secret.namespace, secret.name);
            Failed::retry(Reason::GetConfigurationFailed, message)
        })?;
        credentials.ocm.extend(ocm);
        credentials.docker.extend(docker);
    }
    for entry in spec.verify.iter_mut().flat_map(|verify| &mut verify.keys) {
        let text = |value: &Value, field: &str| value.get(field).and_then(Value::as_str).map(str::to_owned);
        let Some(reference) = entry.get("secretRef").cloned() else { continue };
        let (name, signature) = (text(&reference, "name").unwrap_or_default(), text(entry, "signature").unwrap_or_default());
        let namespace = text(&reference, "namespace").unwrap_or_else(|| NAMESPACE.to_owned());
        let object = one(world, cluster, &name, &namespace).await?;
        let pem = text_in_secret(object.0.get("data"), &signature)
            .map_err(|reason| Failed::retry(Reason::GetConfigurationFailed, format!("Secret {namespace}/{name} {reason}")))?;
        *entry = json!({"signature": signature, "value": pem});
    }
    Ok((spec, credentials))
}

/// As with the OCM controllers the source's Secret goes down to every artifact.
pub(crate) fn pull_secret(spec: &PlatformSpec) -> Option<PullSecretRef> {
    let secret = spec.source.credentials_ref.as_ref()?;
    let namespace = secret.namespace.clone().filter(|namespace| !namespace.is_empty()).unwrap_or_else(|| NAMESPACE.to_owned());
    Some(PullSecretRef { name: secret.name.clone(), namespace })
}

async fn one(world: &World, cluster: &ClusterKey, name: &str, namespace: &str) -> Result<Object, Failed> {
    let gvk = GroupVersionKind::new("", "v1", "Secret");
    let secret = ObjectKey { cluster: cluster.clone(), gvk, namespace: Some(namespace.to_owned()), name: name.to_owned() };
    let retry = |message: String| Failed::retry(Reason::GetConfigurationFailed, message);
    let found = world.reader.get(&secret).await.map_err(|error| match permission::of_read(&error) {
        Some(missing) => Failed::unpermitted([missing].into()),
        None => retry(error.to_string()),
    })?;
    found.ok_or_else(|| retry(format!("{secret} does not exist")))
}
