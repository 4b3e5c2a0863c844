//! The kinds that every API server has, for work without one (contracts entry 15).
//!
//! `builtin.json.gz` holds the OpenAPI v3 documents of a pinned kube-apiserver in one, without descriptions; how it is made:
//! docs/decisions/0004-builtin-schemas.md.

use std::{io::Read, sync::LazyLock};

use plinth_api::GroupVersionKind;
use serde_json::Value;

use super::{Lookup, Schema, SchemaMap, SchemaSource, openapi};

/// Version of the API server whose kinds these are.
pub const KUBERNETES_VERSION: &str = "v1.34.4";

static KINDS: LazyLock<SchemaMap> = LazyLock::new(read);

/// All built-in kinds; read at the first use.
pub fn builtin() -> &'static SchemaMap {
    &KINDS
}

/// The schema of `metadata`.
///
/// # Panics
/// If the committed table has no ConfigMap; a test holds that it has.
pub fn object_meta() -> std::sync::Arc<Schema> {
    match KINDS.kind(&GroupVersionKind::new("", "v1", "ConfigMap")) {
        Lookup::Served(kind) => kind.schema.properties.get("metadata").map(std::sync::Arc::clone),
        Lookup::NotServed => None,
    }
    .expect("the built-in ConfigMap has metadata")
}

fn read() -> SchemaMap {
    let mut text = String::new();
    let packed: &[u8] = include_bytes!("builtin.json.gz");
    flate2::read::GzDecoder::new(packed).read_to_string(&mut text).expect("the committed file is gzip");
    let document: Value = serde_json::from_str(&text).expect("the committed file is JSON");
    openapi::kinds(&document).expect("the committed file is an OpenAPI document").into_iter().collect()
}

#[cfg(test)]
mod tests {
    use std::{collections::BTreeMap, io::Write};

    use serde_json::{Map, json};

    use super::*;
    use crate::schema::{Found, KindInfo, segments};

    fn kind(api_version: &str, kind: &str) -> std::sync::Arc<KindInfo> {
        match builtin().kind(&GroupVersionKind::from_api_version(api_version, kind).unwrap()) {
            Lookup::Served(kind) => kind,
            Lookup::NotServed => panic!("{api_version} {kind} is not served"),
        }
    }

    #[test]
    fn the_usual_kinds_are_there() {
        for (api_version, name, plural, namespaced) in [
            ("v1", "ConfigMap", "configmaps", true),
            ("v1", "Namespace", "namespaces", false),
            ("v1", "Node", "nodes", false),
            ("apps/v1", "Deployment", "deployments", true),
            ("batch/v1", "CronJob", "cronjobs", true),
            ("rbac.authorization.k8s.io/v1", "ClusterRole", "clusterroles", false),
            ("coordination.k8s.io/v1", "Lease", "leases", true),
            ("networking.k8s.io/v1", "Ingress", "ingresses", true),
            ("policy/v1", "PodDisruptionBudget", "poddisruptionbudgets", true),
            ("autoscaling/v2", "HorizontalPodAutoscaler", "horizontalpodautoscalers", true),
            ("storage.k8s.io/v1", "StorageClass", "storageclasses", false),
            ("apiextensions.k8s.io/v1", "CustomResourceDefinition", "customresourcedefinitions", false),
            ("authorization.k8s.io/v1", "SelfSubjectAccessReview", "selfsubjectaccessreviews", false),
        ] {
            let kind = kind(api_version, name);
            assert_eq!((kind.plural.as_str(), kind.namespaced), (plural, namespaced), "{name}");
        }
        println!("{} built-in kinds of {KUBERNETES_VERSION}", builtin().len());
    }

    #[test]
    fn schemas_are_whole() {
        let deployment = kind("apps/v1", "Deployment");
        let at = |path: &str| match deployment.schema.at(&segments(path).unwrap()) {
            Found::Schema(schema) => schema,
            other => panic!("{path}: {other:?}"),
        };
        assert!(at("metadata.labels[\"a.b/c\"]").is("string"));
        assert_eq!(at("spec.template.spec.containers").list_map_keys, ["name"]);
        assert!(at("spec.template.spec.containers[0].livenessProbe.httpGet.port").int_or_string);
        assert_eq!(at("spec.replicas").format.as_deref(), Some("int32"));
        assert_eq!(at("metadata.creationTimestamp").format.as_deref(), Some("date-time"));
        let crd = kind("apiextensions.k8s.io/v1", "CustomResourceDefinition");
        let inner = crd.schema.at(&segments("spec.versions[0].schema.openAPIV3Schema.properties.spec").unwrap());
        assert!(matches!(inner, Found::Schema(inner) if inner.is_open() && inner.properties.is_empty()));
        assert!(object_meta().properties.contains_key("ownerReferences"));
    }

    /// Makes `builtin.json.gz` from a folder with the files of `/openapi/v3/…` (docs/decisions/0004-builtin-schemas.md).
    #[test]
    #[ignore = "writes the committed file; needs PLINTH_OPENAPI, a folder of OpenAPI v3 documents"]
    fn generate() {
        let folder = std::env::var_os("PLINTH_OPENAPI").expect("PLINTH_OPENAPI names a folder");
        let (mut paths, mut schemas) = (BTreeMap::new(), BTreeMap::new());
        let mut files: Vec<_> = std::fs::read_dir(folder).unwrap().map(|entry| entry.unwrap().path()).collect();
        files.sort();
        for file in files {
            let document: Value = serde_json::from_str(&std::fs::read_to_string(file).unwrap()).unwrap();
            for (gvk, (plural, namespaced)) in openapi::served(&document) {
                let api =
                    if gvk.group.is_empty() { format!("/api/{}", gvk.version) } else { format!("/apis/{}", gvk.api_version()) };
                let path =
                    if namespaced { format!("{api}/namespaces/{{namespace}}/{plural}") } else { format!("{api}/{plural}") };
                paths.insert(path, json!({"get": {"x-kubernetes-group-version-kind": gvk}}));
            }
            for (name, definition) in openapi::definitions(&document).unwrap() {
                schemas.insert(name.clone(), without_descriptions(definition));
            }
        }
        let document = json!({"components": {"schemas": schemas}, "paths": paths});
        let target = std::path::Path::new(env!("CARGO_MANIFEST_DIR")).join("schema/builtin.json.gz");
        let mut writer = flate2::write::GzEncoder::new(std::fs::File::create(target).unwrap(), flate2::Compression::best());
        writer.write_all(document.to_string().as_bytes()).unwrap();
        writer.finish().unwrap();
    }

    /// Drops descriptions and what nobody reads; a property may itself be called `description`.
    fn without_descriptions(schema: &Value) -> Value {
        const DROPPED: [&str; 4] =
            ["description", "x-kubernetes-patch-strategy", "x-kubernetes-patch-merge-key", "x-kubernetes-unions"];
        match schema {
            Value::Object(keywords) => {
                let kept = keywords.iter().filter(|(name, _)| !DROPPED.contains(&name.as_str()));
                kept.map(|(name, value)| (name.clone(), inside(name, value))).collect::<Map<_, _>>().into()
            }
            Value::Array(values) => values.iter().map(without_descriptions).collect(),
            other => other.clone(),
        }
    }

    fn inside(keyword: &str, value: &Value) -> Value {
        match (keyword, value) {
            ("properties", Value::Object(properties)) => {
                properties.iter().map(|(name, schema)| (name.clone(), without_descriptions(schema))).collect::<Map<_, _>>().into()
            }
            ("default" | "enum", value) => value.clone(),
            (_, value) => without_descriptions(value),
        }
    }
}
