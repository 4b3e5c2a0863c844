//! Access specifications: how a resource's bytes are reached (ocm.md section 5). Unsigned, so never a proof of anything.

use std::collections::BTreeMap;

use serde_json::{Map, Value};

use crate::digest::Digest;

/// What an access asks for. Types that plinth does not fetch are kept by name, so that listing never fails on them.
#[derive(Clone, Debug, PartialEq, Eq)]
pub enum Access {
    /// A blob, or a nested manifest, beside the descriptor.
    LocalBlob {
        /// Digest of the blob or manifest.
        reference: Digest,
        /// Its media type.
        media_type: String,
        /// Original repository path and tag of an OCI artifact.
        reference_name: String,
    },
    /// An image or other OCI artifact.
    OciArtifact {
        /// `imageReference` as it is written.
        image: String,
    },
    /// A single blob of an OCI repository.
    OciBlob {
        /// The repository, as an image reference without tag.
        repository: String,
        /// The blob.
        digest: Digest,
        /// Its media type.
        media_type: String,
    },
    /// An OCI artifact, relative to the registry of the component.
    Relative {
        /// Path, tag, digest.
        reference: String,
    },
    /// A chart of a Helm repository.
    Helm {
        /// URL of the repository.
        repository: String,
        /// `name:version`.
        chart: String,
        /// An authority that its server's certificate is from, PEM; empty where there is none.
        authority: String,
    },
    /// A file by URL.
    Wget {
        /// The URL.
        url: String,
        /// Its media type.
        media_type: String,
        /// Headers.
        headers: BTreeMap<String, Vec<String>>,
        /// Whether a redirect is followed.
        redirects: bool,
    },
    /// No content.
    Nothing,
    /// Anything else, and specifications with missing or wrong fields.
    Other {
        /// The type as it is written.
        kind: String,
        /// Why it cannot be fetched.
        reason: String,
    },
}

impl Access {
    /// Reads a specification. Type names are compared with all aliases that the two OCM tools write.
    pub fn read(access: &Value) -> Self {
        let kind = text(access, "type");
        let name = kind.strip_suffix("/v1").unwrap_or(kind);
        let read = match name {
            "localBlob" | "LocalBlob" => local_blob(access),
            "ociArtifact" | "ociArtefact" | "ociRegistry" | "ociImage" | "OCIArtifact" | "OCIImage" => oci_artifact(access),
            "ociBlob" | "OCIImageLayer" | "ociImageLayer" | "OCIBlob" => oci_blob(access),
            "relativeOciReference" => required(access, "reference").map(|reference| Self::Relative { reference }),
            "helm" | "Helm" => helm(access),
            "wget" | "Wget" => wget(access),
            "none" | "None" => Ok(Self::Nothing),
            _ => Err("plinth does not fetch this access type".to_owned()),
        };
        read.unwrap_or_else(|reason| Self::Other { kind: kind.to_owned(), reason })
    }
}

fn local_blob(access: &Value) -> Result<Access, String> {
    let reference = required(access, "localReference")?.parse().map_err(|error| format!("localReference: {error}"))?;
    let (media_type, reference_name) = (text(access, "mediaType").to_owned(), text(access, "referenceName").to_owned());
    Ok(Access::LocalBlob { reference, media_type, reference_name })
}

fn oci_artifact(access: &Value) -> Result<Access, String> {
    required(access, "imageReference").map(|image| Access::OciArtifact { image })
}

/// The tools write `ref`, their documents say `imageReference`.
fn oci_blob(access: &Value) -> Result<Access, String> {
    let repository = required(access, "ref").or_else(|_| required(access, "imageReference"))?;
    let digest = required(access, "digest")?.parse().map_err(|error| format!("digest: {error}"))?;
    Ok(Access::OciBlob { repository, digest, media_type: text(access, "mediaType").to_owned() })
}

fn helm(access: &Value) -> Result<Access, String> {
    let (repository, chart) = (required(access, "helmRepository")?, required(access, "helmChart")?);
    let version = text(access, "version");
    let chart = if chart.contains(':') || version.is_empty() { chart } else { format!("{chart}:{version}") };
    Ok(Access::Helm { repository, chart, authority: text(access, "caCert").to_owned() })
}

/// One of the tools takes its fields in any case.
fn wget(access: &Value) -> Result<Access, String> {
    let empty = Map::new();
    let object = access.as_object().unwrap_or(&empty);
    let field =
        |name: &str| object.iter().find(|(key, _)| key.eq_ignore_ascii_case(name)).map_or(&Value::Null, |(_, value)| value);
    let text = |name: &str| field(name).as_str().unwrap_or_default();
    let url = Some(text("url").trim()).filter(|url| !url.is_empty()).ok_or("url is missing")?.to_owned();
    let has_body = !matches!(field("body"), Value::Null) && field("body").as_str() != Some("");
    if has_body || !(text("verb").is_empty() || text("verb").eq_ignore_ascii_case("GET")) {
        return Err("only GET without a body is fetched".to_owned());
    }
    let redirects = field("noredirect").as_bool() != Some(true);
    Ok(Access::Wget { url, media_type: text("mediaType").to_owned(), headers: headers(field("header"))?, redirects })
}

/// Each with one value or a list of them.
fn headers(value: &Value) -> Result<BTreeMap<String, Vec<String>>, String> {
    let empty = Map::new();
    let object = match value {
        Value::Null => &empty,
        Value::Object(object) => object,
        _ => return Err("header is not an object".to_owned()),
    };
    let values = |value: &Value| match value {
        Value::String(text) => Some(vec![text.clone()]),
        Value::Array(items) => items.iter().map(|item| item.as_str().map(str::to_owned)).collect(),
        _ => None,
    };
    let header = |(name, value): (&String, &Value)| {
        values(value)
            .map(|values| (name.clone(), values))
            .ok_or_else(|| format!("the header {name} is neither a text nor a list of texts"))
    };
    object.iter().map(header).collect()
}

fn text<'a>(access: &'a Value, key: &str) -> &'a str {
    access.get(key).and_then(Value::as_str).unwrap_or_default()
}

fn required(access: &Value, key: &str) -> Result<String, String> {
    let found = text(access, key);
    if found.is_empty() { Err(format!("{key} is missing")) } else { Ok(found.to_owned()) }
}

#[cfg(test)]
mod tests {
    use serde_json::json;

    use super::*;

    #[test]
    fn knows_all_spellings() {
        for kind in ["ociArtifact", "ociArtifact/v1", "ociArtefact", "ociRegistry", "ociImage", "OCIImage/v1", "OCIArtifact"] {
            let access = Access::read(&json!({"type": kind, "imageReference": "a.x/b:1"}));
            assert_eq!(access, Access::OciArtifact { image: "a.x/b:1".into() }, "{kind}");
        }
        let digest = Digest::of(b"x");
        for kind in ["localBlob", "LocalBlob/v1", "LocalBlob", "localBlob/v1"] {
            let access = Access::read(&json!({"type": kind, "localReference": digest.as_str(), "mediaType": "m"}));
            assert!(matches!(access, Access::LocalBlob { reference, .. } if reference == digest), "{kind}");
        }
    }

    #[test]
    fn files_by_url_are_spelled_in_many_ways() {
        let wget = |headers: &[(&str, &str)], redirects: bool| Access::Wget {
            url: "https://h.example/f".into(),
            media_type: "text/plain".into(),
            headers: headers.iter().map(|(name, value)| ((*name).to_owned(), vec![(*value).to_owned()])).collect(),
            redirects,
        };
        let access = json!({"type": "wget", "url": "https://h.example/f", "mediaType": "text/plain", "verb": "get", "body": ""});
        assert_eq!(Access::read(&access), wget(&[], true));
        let access = json!({"type": "Wget/v1", "URL": " https://h.example/f", "MediaType": "text/plain", "Header": {"X-A": "b"}});
        assert_eq!(Access::read(&access), wget(&[("X-A", "b")], true));
        let access = json!({"type": "Wget", "url": "https://h.example/f", "mediatype": "text/plain", "header": {"X-A": ["b"]}, "noredirect": true});
        assert_eq!(Access::read(&access), wget(&[("X-A", "b")], false));
        for (field, value) in [("verb", json!("POST")), ("body", json!("x")), ("header", json!({"a": 1})), ("header", json!("a"))]
        {
            let mut access = json!({"type": "wget", "url": "https://h.example/f"});
            access[field] = value;
            assert!(matches!(Access::read(&access), Access::Other { .. }), "{access}");
        }
    }

    #[test]
    fn keeps_what_it_cannot_fetch() {
        for access in [
            json!({"type": "acme.example/pigeon/v7"}),
            json!({"type": "s3"}),
            json!({}),
            Value::Null,
            json!({"type": "localBlob", "localReference": "../x"}),
        ] {
            assert!(matches!(Access::read(&access), Access::Other { .. }), "{access}");
        }
    }
}
