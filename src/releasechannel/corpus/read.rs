//! Archives, signatures, descriptors, normal forms and what registries held: read by us, and compared with what the tools recorded.

use std::sync::Arc;

use serde_json::Value;

use super::{Verdict, ends};
use crate::ctf::{Contents, IndexEntry};
use crate::descriptor::Descriptor;
use crate::digest::Digest;
use crate::normalise::{Normalisation, normalise, tests as forms};
use crate::options::{Limits, Verify};
use crate::repository::{BlobStream, ComponentRepository, ComponentVersion, Manifest, OciRepository};
use crate::signature::tests as signatures;
use crate::testing::data;
use crate::verify::tests as proofs;
use crate::versions::from_tag;

/// A CTF of the corpus as a repository.
pub(super) fn repository(contents: Contents) -> OciRepository {
    OciRepository::new(contents.into_store(Limits::default()), "", Value::Null, Limits::default())
}

pub(super) fn contents(archive: &str) -> Contents {
    Contents::open(&data().join("ocm").join(archive), &Limits::default()).unwrap()
}

pub(super) async fn find(archive: &str, name: &str, version: &str) -> Result<Arc<Descriptor>, String> {
    let found = repository(contents(archive)).descriptor(&ComponentVersion::new(name, version)).await;
    found.map(|found| found.descriptor).map_err(|error| error.to_string())
}

/// All component versions that the archive has tags for. The archive's other files belong to its index.
pub(super) async fn archive(file: &str) -> Vec<(String, Verdict)> {
    let root = match file.strip_suffix("/artifact-index.json") {
        Some(root) => root,
        None if ends(file, "tar") || ends(file, "tgz") => file,
        None => return Vec::new(),
    };
    let contents = contents(root);
    let mut rows = Vec::new();
    for entry in &contents.artifacts {
        let (Some(tag), Some(name)) = (&entry.tag, entry.repository.strip_prefix("component-descriptors/")) else { continue };
        let version = from_tag(tag);
        let read = repository(contents.clone()).descriptor(&ComponentVersion::new(name, &version)).await;
        let verdict = match (root.rsplit('/').next().unwrap(), read) {
            ("tampered-descriptor", Err(_)) => Verdict::Listed("a changed descriptor in an archive (`tampered-descriptor`)"),
            ("unknown-schema", Err(_)) => Verdict::Listed("a schema that nobody knows (`unknown-schema`)"),
            ("versions", Err(_)) => Verdict::Listed("tags that are no versions"),
            (_, Ok(_)) => Verdict::Equal,
            (_, Err(error)) => Verdict::Wrong(error.to_string()),
        };
        rows.push((format!("{root} {name}:{version}"), verdict));
    }
    rows
}

/// A signed archive: proven by its key and by no other, refused where its name says that it was changed.
pub(super) async fn signed(file: &str) -> Vec<(String, Verdict)> {
    let Some(root) = file.strip_suffix("/artifact-index.json") else { return Vec::new() };
    let vector = root.trim_start_matches("signed/");
    let is_proven = is_proven(vector, "acme.pub").await;
    let by_other = is_proven_by_other(vector).await;
    vec![(
        root.to_owned(),
        Verdict::of(is_proven != vector.starts_with("neg-") && !by_other, || {
            format!("proven {is_proven}, by another key {by_other}")
        }),
    )]
}

async fn is_proven(vector: &str, key: &str) -> bool {
    let component = if vector.contains("-gateway-") {
        "acme.example/services/gateway:1.3.0"
    } else {
        "acme.example/releasechannel/stable:2026.11.0"
    };
    let key = if vector.contains("-pem") && key == "acme.pub" { "ca.crt" } else { key };
    proofs::check(vector, component, &proofs::with_key(key, Verify::Required)).await.is_ok_and(|found| found.is_proven())
}

async fn is_proven_by_other(vector: &str) -> bool {
    is_proven(vector, "other.pub").await
}

/// `VECTOR.WHAT.yaml`: a signed descriptor by itself.
pub(super) fn signed_descriptor(file: &str) -> Verdict {
    let (vector, what) = file.trim_start_matches("descriptors/").trim_end_matches(".yaml").rsplit_once('.').unwrap();
    let key = if vector.ends_with("-pem") { "ca.crt" } else { "acme.pub" };
    Verdict::from(signatures::check(vector, what, &signatures::key(key)).map(drop).map_err(|error| error.to_string()))
}

pub(super) async fn normal_form(file: &str) -> Verdict {
    let expected = std::fs::read(data().join("ocm").join(file)).unwrap();
    let form = |short: &str| short.parse::<Normalisation>().unwrap();
    let short = file.trim_end_matches(".norm").rsplit('.').next().unwrap();
    let found = match file {
        "normalised/norm-edge.input.json" => return Verdict::Input,
        _ if file.starts_with("normalised/") => normalise(&forms::read("normalised/norm-edge.input.json"), form(short)),
        _ if ends(file, "norm") => {
            // Made when the child's digest had been filled in.
            let mut document = forms::read("golden/v3/nest-a.v3alpha1.yaml").document;
            document["spec"]["references"][0]["digest"] = serde_json::json!({"hashAlgorithm": "SHA-256",
                "normalisationAlgorithm": "jsonNormalisation/v3", "value": "23e0f12303df762a2307901f77d5cd9356afd4bfded1846b8af8e370d7aadbfc"});
            normalise(&Descriptor::from_value(document).unwrap(), form(short))
        }
        _ => {
            let theirs = forms::read(file);
            let ours = find("ctf/v1-v3alpha1", &theirs.name, &theirs.version).await.unwrap();
            return Verdict::of(same_content(&ours, &theirs, Normalisation::V3), || "another normal form".to_owned());
        }
    };
    Verdict::of(found == expected, || String::from_utf8_lossy(&found).into_owned())
}

pub(super) fn same(ours: &Descriptor, theirs: &Descriptor, form: Normalisation) -> bool {
    normalise(ours, form) == normalise(theirs, form)
}

/// What the tools wrote and said while they signed and verified.
pub(super) async fn signing(file: &str) -> Vec<(String, Verdict)> {
    let name = file.trim_start_matches("golden/signing/");
    let text = std::fs::read_to_string(data().join("ocm").join(file)).unwrap();
    let verdict = match name {
        "DIGESTS.tsv" | "VERIFY.tsv" => Verdict::Input,
        "NEGATIVE.tsv" => {
            let mut rows = Vec::new();
            for row in text.lines().skip(1) {
                let fields: Vec<&str> = row.split('\t').collect();
                let (vector, refused) = (fields[0], !is_proven(fields[0], "acme.pub").await);
                for (tool, code) in [("v1", fields[1]), ("v2", fields[3])] {
                    let verdict = match refused == (code != "0") {
                        true => Verdict::Equal,
                        false if refused => Verdict::Listed("verification of the closure (17.7)"),
                        false => Verdict::Wrong("accepted".to_owned()),
                    };
                    rows.push((format!("{file} {vector} {tool}"), verdict));
                }
            }
            return rows;
        }
        "v3-pkcs1-pem.signature.json" => {
            let ours = forms::signed("v3-pkcs1-pem", "acme.example/releasechannel/stable", "2026.11.0").document["signatures"][0]
                .clone();
            let theirs: Value = serde_json::from_str(&text).unwrap();
            Verdict::of(ours["signature"] == theirs["signature"] || ours == theirs, || ours.to_string())
        }
        _ if ends(name, "norm") => recorded_form(name, text.as_bytes()),
        _ if name.ends_with(".sign.txt") => Verdict::Input,
        _ if name.ends_with(".descriptor.json") => signed_alone(&text),
        _ => said(name, &text).await,
    };
    vec![(file.to_owned(), verdict)]
}

fn signed_alone(text: &str) -> Verdict {
    let mut document: Value = serde_json::from_str(text).unwrap();
    if let Some(item) = document.pointer("/items/0").or_else(|| document.get(0)).cloned() {
        document = item;
    }
    let descriptor = Descriptor::from_value(document).unwrap();
    let key = [signatures::key("acme.pub")];
    let proof = crate::signature::verify(&descriptor, &descriptor.signatures[0], &key, signatures::NOW);
    Verdict::from(proof.map(drop).map_err(|error| error.to_string()))
}

/// `VECTOR.COMPONENT_VERSION.norm`, by the normalisation that DIGESTS.tsv has for it.
fn recorded_form(name: &str, expected: &[u8]) -> Verdict {
    let digests = std::fs::read_to_string(data().join("ocm/golden/signing/DIGESTS.tsv")).unwrap();
    let mut rows = digests.lines().map(|row| row.split('\t').collect::<Vec<_>>());
    let Some(row) = rows.find(|fields| name == format!("{}.{}.norm", fields[0], fields[1])) else {
        return Verdict::Wrong("DIGESTS.tsv has no row for it".to_owned());
    };
    if !data().join("ocm/signed").join(row[0]).exists() {
        return Verdict::Absent;
    }
    let (component, version) = row[1].rsplit_once('_').unwrap();
    let found = normalise(&forms::signed(row[0], &component.replace('_', "/"), version), row[2].parse().unwrap());
    Verdict::of(found == expected, || String::from_utf8_lossy(&found).into_owned())
}

/// `VECTOR.verify[-HOW].txt`: whether the tool said yes, and whether we do.
async fn said(name: &str, text: &str) -> Verdict {
    let (vector, how) = name.trim_end_matches(".txt").split_once('.').unwrap();
    if !data().join("ocm/signed").join(vector).exists() {
        return Verdict::Absent;
    }
    let theirs = text.contains("successfully verified") || text.contains("VERIFICATION SUCCESSFUL");
    let ours = is_proven(vector, if how == "verify-wrongkey" { "other.pub" } else { "acme.pub" }).await;
    match (ours, theirs) {
        _ if ours == theirs => Verdict::Equal,
        (true, _) if vector.contains("-pss") && how == "verify" => Verdict::Listed("PSS signatures (17.1)"),
        (true, _) if how == "verify-v2cli" => Verdict::Listed("jsonNormalisation/v1 and /v2 (17.2)"),
        (true, _) if how == "verify-v1cli" => Verdict::Listed("images recorded as `genericBlobDigest/v1` (17.4)"),
        _ => Verdict::Wrong(format!("ours {ours}, theirs {theirs}")),
    }
}

pub(super) fn key(file: &str) -> Verdict {
    if !ends(file, "pub") && !ends(file, "crt") {
        return Verdict::Input;
    }
    let text = std::fs::read_to_string(data().join("ocm").join(file)).unwrap();
    Verdict::from(crate::signature::Key::read(&text).map(drop))
}

/// `…/PREFIX_component-descriptors_NAME/TAG/FILE`: what a registry held for a component version, read as it was served.
pub(super) async fn registry(file: &str) -> Verdict {
    let Some(folder) = file.strip_suffix("/manifest.json") else { return Verdict::Input };
    let (place, tag) = folder.rsplit_once('/').unwrap();
    let (prefix, name) = place.rsplit_once("_component-descriptors_").unwrap();
    let name = name.replace('_', "/");
    let mut contents = Contents { place: folder.to_owned(), ..Contents::default() };
    for entry in std::fs::read_dir(data().join("ocm").join(folder)).unwrap() {
        contents.add_blob(std::fs::read(entry.unwrap().path()).unwrap());
    }
    let top = std::fs::read(data().join("ocm").join(file)).unwrap();
    let repository_name = format!("component-descriptors/{name}");
    let digest = Digest::of(&top);
    contents.artifacts.push(IndexEntry {
        repository: repository_name,
        tag: Some(tag.to_owned()),
        digest,
        media_type: String::new(),
    });
    let found = match repository(contents).descriptor(&ComponentVersion::new(&name, from_tag(tag))).await {
        Ok(found) => found,
        Err(error) => return Verdict::Wrong(error.to_string()),
    };
    let (archive, form) = of_tool(prefix.rsplit('/').next().unwrap());
    let theirs = find(archive, &name, &from_tag(tag)).await.unwrap();
    Verdict::of(same_content(&found.descriptor, &theirs, form), || format!("another normal form than in {archive}"))
}

/// The archive that a tool wrote the same content into, and its normal form.
pub(super) fn of_tool(name: &str) -> (&'static str, Normalisation) {
    if name.starts_with("v1") { ("ctf/v1", Normalisation::V3) } else { ("ctf/v2", Normalisation::V4Alpha1) }
}

/// Whether two copies are the same apart from digests: a transfer fills those in where they were missing.
fn same_content(ours: &Descriptor, theirs: &Descriptor, form: Normalisation) -> bool {
    let without = |descriptor: &Descriptor| {
        let mut document = descriptor.document.clone();
        for list in ["/component/resources", "/component/componentReferences", "/spec/resources", "/spec/references"] {
            for element in document.pointer_mut(list).and_then(Value::as_array_mut).into_iter().flatten() {
                element.as_object_mut().unwrap().remove("digest");
            }
        }
        normalise(&Descriptor::from_value(document).unwrap(), form)
    };
    without(ours) == without(theirs)
}

/// Descriptors before and after a transfer. Logs have nothing to compare but whether the tool could.
pub(super) async fn copied(file: &str) -> Verdict {
    let name = file.rsplit('/').next().unwrap();
    if ends(name, "txt") {
        return match name {
            "v2.plus-version.txt" => Verdict::Listed("versions with `+` (17.10)"),
            "v2.reg-to-ctf.tar.txt" | "v2.reg-to-ctf.tgz.txt" => Verdict::Listed("writing archives (17.10)"),
            _ => Verdict::Input,
        };
    }
    if std::fs::read(data().join("ocm").join(file)).unwrap().is_empty() {
        // The tool refused to copy it.
        return Verdict::Listed("copying by value (17.5)");
    }
    let theirs = forms::read(file);
    let (archive, form) = match (file, of_tool(name)) {
        ("golden/access/v1.byval.descriptor.yaml", (_, form)) => ("ctf/v1-access-byval", form),
        ("golden/access/v1.descriptor.yaml", (_, form)) => ("ctf/v1-access", form),
        ("golden/access/v2.byval.descriptor.yaml", (_, form)) => ("ctf/v2-access-byval", form),
        ("golden/access/v2.descriptor.yaml", (_, form)) => ("ctf/v2-access", form),
        _ if name.starts_with("v2cli-moves-v1ctf") => ("ctf/v1", Normalisation::V3),
        (_, other) => other,
    };
    if !data().join("ocm").join(archive).exists() {
        return Verdict::Absent;
    }
    let ours = match find(archive, &theirs.name, &theirs.version).await {
        Ok(ours) => ours,
        Err(error) => return Verdict::Wrong(error),
    };
    match same_content(&ours, &theirs, form) {
        true if !name.starts_with("v2cli-moves") || same(&ours, &theirs, form) => Verdict::Equal,
        _ if name.starts_with("v2cli-moves") => Verdict::Listed("copying by value (17.5)"),
        _ => Verdict::Wrong(format!("another normal form than in {archive}")),
    }
}

/// `NAME.TOOL-from-PLACE`: an image as a tool gave it out, whose main manifest is the one that the descriptors name.
pub(super) async fn packed(file: &str) -> Verdict {
    let name = file.trim_start_matches("golden/blobs/").split('.').next().unwrap();
    let bytes = std::fs::read(data().join("ocm").join(file)).unwrap();
    let digest = Digest::of(&bytes);
    let stream = BlobStream::from_bytes(file, bytes.into(), &digest);
    let unpacked = crate::fetch::artifact::unpack(stream, None, file, &Limits::default()).await;
    let manifest: Manifest = match unpacked {
        Ok((_, artifact)) => artifact.manifest,
        Err(error) => return Verdict::Wrong(error.to_string()),
    };
    let gateway = find("ctf/v2-byval", "acme.example/services/gateway", "1.3.0").await.unwrap();
    let resource = gateway.resources.iter().find(|resource| resource.identity.name == name).unwrap();
    let expected = resource.digest.as_ref().and_then(crate::descriptor::DigestSpec::digest).unwrap();
    Verdict::of(expected == manifest.digest, || format!("{} instead of {expected}", manifest.digest))
}
