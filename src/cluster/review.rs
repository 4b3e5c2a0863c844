//! What the identity may do, asked before anything is done.

use futures::{StreamExt, TryStreamExt};
use http::Method;
use plinth_api::{GroupVersionKind, Permission};
use plinth_engine::ports::ReadError;
use serde_json::json;

use crate::{
    cluster::Cluster,
    fault,
    http::{Call, JSON},
};

/// Reviews at a time.
const CONCURRENT: usize = 8;

impl Cluster {
    /// Asks whether the identity may do one thing.
    pub async fn can_i(&self, permission: &Permission) -> Result<bool, ReadError> {
        let (resource, subresource) = permission.resource.split_once('/').unwrap_or((&permission.resource, ""));
        let review = json!({
            "apiVersion": "authorization.k8s.io/v1",
            "kind": "SelfSubjectAccessReview",
            "spec": {"resourceAttributes": {
                "verb": permission.verb,
                "group": permission.group,
                "resource": resource,
                "subresource": subresource,
                "namespace": permission.namespace.as_deref().unwrap_or_default(),
                "name": permission.name.as_deref().unwrap_or_default(),
            }},
        });
        let path = "/apis/authorization.k8s.io/v1/selfsubjectaccessreviews";
        let answer = self.transport().json(Call::new(Method::POST, path).body(JSON, &review)).await;
        let gvk = GroupVersionKind::new("authorization.k8s.io", "v1", "SelfSubjectAccessReview");
        let what = "selfsubjectaccessreviews.authorization.k8s.io";
        let answer = answer.map_err(|fault| fault::read_error(&gvk, what, "create", fault))?;
        Ok(answer["status"]["allowed"].as_bool().unwrap_or(false))
    }

    /// Those of these permissions that are missing, in their order.
    pub async fn missing(&self, permissions: &[Permission]) -> Result<Vec<Permission>, ReadError> {
        let reviews = futures::stream::iter(permissions).map(async |permission| {
            let allowed = self.can_i(permission).await?;
            Ok::<_, ReadError>((!allowed).then(|| permission.clone()))
        });
        let answers: Vec<_> = reviews.buffered(CONCURRENT).try_collect().await?;
        Ok(answers.into_iter().flatten().collect())
    }
}
