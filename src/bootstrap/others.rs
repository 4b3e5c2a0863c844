//! Controllers of others that write what a platform of ours would write too: kro, the OCM controllers, krop-controller, and Flux. They are
//! found by their Deployments; one without replicas writes nothing, and what it left can be taken over.

use std::fmt;

use plinth_api::{ClusterKey, GroupVersionKind, Object, ObjectKey, Permission};
use plinth_engine::{
    naming::keys,
    ports::{Query, ReadError, Reader},
};
use serde_json::Value;

use crate::{install, ports::Access};

/// A tool with a controller.
#[derive(Clone, Copy, Debug, PartialEq, Eq, PartialOrd, Ord)]
pub enum Tool {
    /// Instances of every ResourceGraphDefinition of kro.run.
    Kro,
    /// Every delivery object.
    OcmControllers,
    /// Blueprints of a kcp workspace.
    Krop,
    /// What its own sources say.
    Flux,
}

impl fmt::Display for Tool {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.write_str(match self {
            Self::Kro => "kro",
            Self::OcmControllers => "the OCM controllers",
            Self::Krop => "krop-controller",
            Self::Flux => "Flux",
        })
    }
}

/// A controller that is there.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Other {
    /// Whose it is.
    pub tool: Tool,
    /// Its Deployment.
    pub deployment: ObjectKey,
    /// Pods that it has or is to have.
    pub replicas: i64,
}

impl Other {
    /// Whether it writes.
    pub fn runs(&self) -> bool {
        self.replicas > 0
    }
}

/// All that are there; none where Deployments may not be listed, which is asked first: a refusal would be in the server's audit log.
pub async fn look(reader: &dyn Reader, access: &dyn Access) -> Result<Vec<Other>, ReadError> {
    let gvk = install::deployment_kind();
    let (group, resource, verb) = (gvk.group.clone(), "deployments".to_owned(), "list".to_owned());
    if !access.can_i(&Permission { group, resource, verb, namespace: None, name: None }).await? {
        return Ok(Vec::new());
    }
    let query = Query { cluster: ClusterKey::host(), gvk: gvk.clone(), namespace: None, selector: String::new() };
    let found = match reader.list(&query).await {
        Err(ReadError::NotServed(_) | ReadError::Forbidden { .. }) => return Ok(Vec::new()),
        other => other?,
    };
    // What a platform of ours brings is no stranger to it.
    let strangers = found.iter().filter(|deployment| deployment.label(keys::PLATFORM).is_none());
    Ok(strangers.filter_map(|deployment| other(deployment, &gvk)).collect())
}

fn other(deployment: &Object, gvk: &GroupVersionKind) -> Option<Other> {
    let (tool, spec, status) = (tool(deployment)?, deployment.spec(), deployment.status());
    let replicas = spec["replicas"].as_i64().unwrap_or(1).max(status["replicas"].as_i64().unwrap_or_default());
    let key = ObjectKey {
        cluster: ClusterKey::host(),
        gvk: gvk.clone(),
        namespace: deployment.namespace().map(str::to_owned),
        name: deployment.name().to_owned(),
    };
    Some(Other { tool, deployment: key, replicas })
}

/// Whose controller a Deployment is: by the labels of the projects' own charts, and by their images, which renaming leaves as they are.
fn tool(deployment: &Object) -> Option<Tool> {
    let containers = deployment.at(&["spec", "template", "spec", "containers"]).and_then(Value::as_array);
    let images: Vec<&str> = containers.into_iter().flatten().filter_map(|container| container["image"].as_str()).collect();
    let is_called = |name: &str| deployment.label("app.kubernetes.io/name") == Some(name);
    let has = |part: &str| images.iter().any(|image| image.contains(part));
    if is_called("kro") || has("/kro/controller") {
        return Some(Tool::Kro);
    }
    if is_called("ocm-k8s-toolkit") || has("/kubernetes/controller") || has("ocm-k8s-toolkit") {
        return Some(Tool::OcmControllers);
    }
    if is_called("krop-controller") || has("/krop-controller") {
        return Some(Tool::Krop);
    }
    (deployment.label("app.kubernetes.io/part-of") == Some("flux") || has("/fluxcd/")).then_some(Tool::Flux)
}

#[cfg(test)]
mod tests {
    use serde_json::json;

    use super::*;

    #[test]
    fn controllers_are_known_by_label_or_image_and_count_by_their_pods() {
        let of = |labels: Value, image: &str, replicas: Value, left: i64| {
            let object = Object::from_value(
                json!({"metadata": {"name": "d", "namespace": "n", "labels": labels}, "status": {"replicas": left},
                "spec": {"replicas": replicas, "template": {"spec": {"containers": [{"image": image}]}}}}),
            );
            other(&object.unwrap(), &install::deployment_kind()).map(|other| (other.tool, other.runs()))
        };
        for (labels, image, replicas, left, expected) in [
            (json!({"app.kubernetes.io/name": "kro"}), "x", json!(1), 0, Some((Tool::Kro, true))),
            (json!({}), "registry.k8s.io/kro/controller:v0.9.4", json!(0), 0, Some((Tool::Kro, false))),
            (json!({}), "registry.k8s.io/kro/controller:v0.9.4", json!(0), 1, Some((Tool::Kro, true))),
            (
                json!({}),
                "ghcr.io/open-component-model/kubernetes/controller:1",
                Value::Null,
                0,
                Some((Tool::OcmControllers, true)),
            ),
            (json!({}), "ghcr.io/opendefensecloud/krop-controller:latest", json!(1), 1, Some((Tool::Krop, true))),
            (json!({"app.kubernetes.io/part-of": "flux"}), "x", json!(1), 1, Some((Tool::Flux, true))),
            (json!({}), "nginx", json!(1), 1, None),
        ] {
            assert_eq!(of(labels, image, replicas, left), expected, "{image}");
        }
    }
}
