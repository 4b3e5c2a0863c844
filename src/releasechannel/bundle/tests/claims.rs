//! An archive's index is not signed: what it says is published only where descriptors and lock say the same.

use super::proof::{GATEWAY, bundle, rewrite, verified};
use super::*;
use crate::digest::Digest;
use crate::testing::{add, names};

/// A change of an index, and the words that it is refused with.
type Case<'a> = (&'a dyn Fn(&mut Vec<IndexEntry>), &'a str);

fn at<'a>(entries: &'a mut [IndexEntry], repository: &str, tag: &str) -> &'a mut IndexEntry {
    let is_it = |entry: &&mut IndexEntry| entry.repository == repository && entry.tag.as_deref() == Some(tag);
    entries.iter_mut().find(is_it).unwrap()
}

fn swap(entries: &mut [IndexEntry], repository: &str, one: &str, other: &str) {
    let digest = at(entries, repository, one).digest.clone();
    let digest = std::mem::replace(&mut at(entries, repository, other).digest, digest);
    at(entries, repository, one).digest = digest;
}

#[tokio::test]
async fn show_04_founded() {
    let (contents, _, _folder) = bundle().await;
    assert_eq!(unfounded(&contents).await, Vec::<String>::new());
    let gateway = format!("component-descriptors/{}", GATEWAY.0);
    let some = contents.artifacts[0].clone();
    let added = |repository: &str, tag: Option<&str>| IndexEntry {
        repository: repository.into(),
        tag: tag.map(str::to_owned),
        ..some.clone()
    };
    let cases: [Case<'_>; 12] = [
        (&|entries| swap(entries, "upstream/gateway", "1.2.0", "1.3.0"), "upstream/gateway:1.2.0: the index leads to sha256:"),
        (&|entries| swap(entries, &gateway, "1.2.0", "1.3.0"), "its descriptor says acme.example/services/gateway:1.3.0"),
        (
            &|entries| {
                at(entries, "plinth.dev/plinth", "v0.1.0").digest = some.digest.clone();
            },
            "plinth.dev/plinth:v0.1.0: the index leads to sha256:",
        ),
        (
            &|entries| entries.push(added("library/alpine", Some("3.20"))),
            "library/alpine:3.20: no resource in the archive is called so",
        ),
        (&|entries| entries.push(added("library/alpine", None)), "library/alpine@sha256:"),
        (
            &|entries| entries.push(added("component-descriptors/acme.example/services/ledger", None)),
            "component-descriptors/acme.example/services/ledger@sha256:",
        ),
        (
            &|entries| entries.retain(|entry| entry.repository != gateway || entry.tag.as_deref() != Some("1.3.0")),
            "component-descriptors/acme.example/services/gateway:1.3.0: the archive's lock names it, and it is not in the index",
        ),
        (
            &|entries| entries.retain(|entry| entry.repository != "upstream/gateway-sidecar"),
            "upstream/gateway-sidecar:1.3.0: resource sidecar of acme.example/services/gateway:1.3.0 is called so, and it is not in the index",
        ),
        (
            &|entries| entries.retain(|entry| !entry.repository.contains("plinth.dev/plinth")),
            "component-descriptors/plinth.dev/plinth: a bundle has one version of it, and this index has 0",
        ),
        (
            &|entries| {
                let entry = at(entries, "plinth.dev/lock/acme.example/releasechannel/stable", "2026.11.0");
                entry.repository = "plinth.dev/lock/acme.example/services/notifier".into();
                entry.tag = Some("3.1.0".into());
            },
            "it is the lock of acme.example/releasechannel/stable:2026.11.0",
        ),
        (
            &|entries| {
                at(entries, "plinth.dev/lock/acme.example/releasechannel/stable", "2026.11.0").digest = some.digest.clone();
            },
            "plinth.dev/lock/acme.example/releasechannel/stable:2026.11.0: ",
        ),
        (
            &|entries| {
                let digest = at(entries, &gateway, "1.3.0").digest.clone();
                entries.push(IndexEntry { digest, ..added(&gateway, Some("9.9.9")) });
            },
            "component-descriptors/acme.example/services/gateway:9.9.9: ",
        ),
    ];
    for (change, words) in &cases {
        let mut changed = contents.clone();
        change(&mut changed.artifacts);
        let found = unfounded(&changed).await;
        assert!(found.iter().any(|line| line.contains(words)), "{words}: {found:?}");
    }
    // No signature covers what an image is called: the lock remembers it.
    let mut renamed = contents.clone();
    rewrite(&mut renamed, GATEWAY, &|document| {
        let resources = document["component"]["resources"].as_array_mut().unwrap();
        let image = resources.iter_mut().find(|resource| resource["name"] == "image").unwrap();
        image["access"]["referenceName"] = "library/alpine:3.20".into();
    })
    .await;
    let found = unfounded(&renamed).await;
    let words = "it is called library/alpine:3.20, and upstream/gateway:1.3.0 in the lock";
    assert!(found.iter().any(|line| line.contains(words)), "{found:?}");
    eprintln!("SHOW 04 founded {0}/{0} changes of an archive's index refused by name", cases.len() + 1);
}

/// No signature covers an access: one that was edited leads to other content than the digest of its resource, and is neither pushed nor
/// found complete.
#[tokio::test]
async fn an_access_that_leads_to_another_blob_is_unfounded() {
    let (contents, lock, _folder) = bundle().await;
    let source = Contents::open(&data().join("ocm/ctf/v1-byval"), &Limits::default()).unwrap();
    let packed = channel_at(&archive("v1-byval"), &offline()).await;
    let access = |name: &str| {
        let resources = packed.lock.components.iter().flat_map(|component| &component.resources);
        resources.into_iter().find(|resource| resource.name == name).unwrap().access.clone()
    };
    let mut all = contents.clone();
    all.blobs.extend(source.blobs);
    // A plain blob, an image instead of it, a packed artifact set, and content that is not there.
    let (blob, set) = (access("rgd"), access("image"));
    let lost = json!({"type": "localBlob", "localReference": Digest::of(b"lost").as_str(), "mediaType": "text/plain"});
    // Content that is elsewhere, though it was brought along.
    let web = json!({"type": "wget", "url": "http://elsewhere.test/evil"});
    let image = json!({"type": "ociArtifact", "imageReference": "elsewhere.test/evil/gateway:1.3.0"});
    let changes = [("chart-tgz", &blob), ("chart-tgz", &set), ("image", &set), ("rgd", &lost), ("rgd", &web), ("image", &image)];
    for (resource, access) in changes {
        let mut changed = all.clone();
        rewrite(&mut changed, GATEWAY, &|document| {
            let resources = document["component"]["resources"].as_array_mut().unwrap();
            let found = resources.iter_mut().find(|found| found["name"] == resource).unwrap();
            assert_ne!(found["access"], *access);
            found["access"] = access.clone();
        })
        .await;
        let found = unfounded(&changed).await;
        let words = format!("resource {resource} of acme.example/services/gateway:1.3.0: ");
        assert!(found.iter().any(|line| line.starts_with(&words)), "{resource} {access}: {found:?}");
        let missing = verified(&changed, &lock, &offline()).await.missing;
        assert!(missing.iter().any(|line| line.contains(words.trim_end_matches(": "))), "{resource} {access}: {missing:?}");
    }
    // What keeps it from being pushed keeps it from being complete.
    let mut more = contents.clone();
    more.artifacts.push(IndexEntry { repository: "library/alpine".into(), ..contents.artifacts[0].clone() });
    let missing = verified(&more, &lock, &offline()).await.missing;
    assert_eq!(missing, unfounded(&more).await);
    assert!(missing.len() == 1 && missing[0].contains("library/alpine"), "{missing:?}");
}

/// Archives of both tools have no lock, and older manifests without a tag; nothing of that is a fault. A child that is not what its signed
/// parent says is one.
#[tokio::test]
async fn archives_of_both_tools_are_founded() {
    let of_tools = ["v1", "v2", "v1-byref", "v1-byval", "v1-byval.tar", "v2-byval", "v2-byval-handpacked.tgz", "v1-v3alpha1"];
    let all = of_tools.iter().map(|name| format!("ctf/{name}"));
    let signed = names("signed").into_iter().map(|name| format!("signed/{name}"));
    for name in all.chain(signed) {
        let contents = Contents::open(&data().join("ocm").join(&name), &Limits::default()).unwrap();
        let found = unfounded(&contents).await;
        let is_named = |line: &String| line.starts_with("reference ledger,track=new of ");
        assert!(found.iter().all(is_named), "{name}: {found:?}");
        assert_eq!(found.is_empty(), name != "signed/neg-child-changed", "{name}: {found:?}");
    }
}

/// What was left out by a selection is not missing from the bundle of a bundle.
#[tokio::test]
async fn a_part_of_a_bundle_is_founded() {
    let (contents, _, folder) = bundle().await;
    let path = folder.path().join("whole.tar");
    contents.write(&path, crate::Format::Tar).unwrap();
    let selection =
        Selection { select: [("acme.example/services/gateway".to_owned(), "1.3.0".to_owned())].into(), ..Selection::default() };
    let part = inspect(&SourceRef::parse(&path.display().to_string()).unwrap(), &selection, &offline()).await.unwrap();
    let mut part = create(&part, &folder.path().join("blobs"), &Kept::default()).await.unwrap();
    add_program(&mut part, &folder.path().join("plinth"), "v0.1.0", &folder.path().join("blobs")).unwrap();
    assert!(part.contents.artifacts.len() < contents.artifacts.len());
    assert_eq!(unfounded(&part.contents).await, Vec::<String>::new());
}

/// Two components, each with an image of one name; `same` is whether it is one image.
fn two_of_one_name(same: bool) -> Contents {
    let mut contents = Contents { place: "test".into(), ..Contents::default() };
    for (component, content) in [("acme.example/a", "a"), ("acme.example/b", if same { "a" } else { "b" })] {
        let config = contents.add_blob(content.as_bytes().to_vec());
        let manifest = json!({"schemaVersion": 2, "mediaType": MANIFEST, "layers": [],
            "config": {"mediaType": "application/vnd.oci.empty.v1+json", "digest": config.as_str(), "size": 1}});
        let digest = contents.add_blob(manifest.to_string().into_bytes());
        let access = json!({"type": "localBlob", "localReference": digest.as_str(), "mediaType": MANIFEST, "referenceName": "team/app:1.0"});
        let resource = json!({"name": "image", "version": "1.0", "type": "ociImage", "relation": "local", "access": access});
        add(&mut contents, component, "1.0.0", json!({"resources": [resource]}));
    }
    let references: Vec<Value> = ["a", "b"]
        .iter()
        .map(|name| json!({"name": format!("ref-{name}"), "componentName": format!("acme.example/{name}"), "version": "1.0.0"}))
        .collect();
    add(&mut contents, "acme.example/top", "1.0.0", json!({"componentReferences": references}));
    contents
}

/// Which of two images a node gets by one name must not be chance: create, push and verify say both.
#[tokio::test]
async fn one_name_of_two_images_is_refused_everywhere() {
    for same in [true, false] {
        let (contents, folder) = (two_of_one_name(same), tempfile::tempdir().unwrap());
        let path = folder.path().join("ctf");
        contents.write(&path, crate::Format::Folder).unwrap();
        let source = SourceRef::parse(&format!("ctf::{}//acme.example/top:1.0.0", path.display())).unwrap();
        let channel = inspect(&source, &Selection::default(), &offline()).await.unwrap();
        let created = create(&channel, &folder.path().join("blobs"), &Kept::default()).await;
        let (pushed, verified) = (unfounded(&contents).await, verified(&contents, &channel.lock, &offline()).await.missing);
        if same {
            assert_eq!(created.unwrap().remarks, Vec::<String>::new());
            assert_eq!((pushed, verified), (Vec::new(), Vec::new()));
            continue;
        }
        let error = created.unwrap_err();
        assert_eq!(error.kind(), ErrorKind::Refused);
        assert!(error.hint().is_some_and(|hint| hint.contains("--select")), "{error}");
        for text in [error.to_string(), pushed.join("\n"), verified.join("\n")] {
            let both = [
                "team/app:1.0 would be the name of two artifacts",
                "image of acme.example/a:1.0.0",
                "image of acme.example/b:1.0.0",
            ];
            assert!(both.iter().all(|words| text.contains(words)), "{text}");
        }
    }
}

/// A lock is a file that anybody can edit: what it says of a descriptor is compared with the descriptor.
#[tokio::test]
async fn a_lock_that_was_edited_is_told_by_the_descriptors() {
    use plinth_api::lock::ReleaseLock;
    type Edit<'a> = (&'a dyn Fn(&mut plinth_api::lock::LockedComponent), &'a str);
    let place = data().join("ocm/signed/v4alpha1-pkcs1-sha256");
    let original = channel_at(&format!("ctf::{}", place.display()), &offline()).await.lock;
    let contents = Contents::open(&place, &Limits::default()).unwrap();
    let compared = async |lock: &ReleaseLock| -> Vec<String> {
        let found = verified(&contents, lock, &offline()).await.missing;
        found.into_iter().filter(|line| !line.contains("only referred to")).collect()
    };
    assert_eq!(compared(&original).await, Vec::<String>::new());
    let edits: [Edit<'_>; 6] = [
        (&|component| drop(component.resources.remove(0)), "is not in the lock"),
        (&|component| component.resources[0].access = json!({"type": "none"}), "its access is another one in the lock"),
        (&|component| component.resources[0].kind = "other".into(), "not other"),
        (&|component| component.content = Some(Digest::of(b"x").to_string()), "the lock's digest of what it says"),
        (&|component| component.signatures.clear(), "its signature acme-sig is not in the lock"),
        (&|component| component.signatures[0].digest = Digest::of(b"x").to_string(), "signature acme-sig of component"),
    ];
    for (edit, words) in edits {
        let mut lock = original.clone();
        let signed = words.contains("signature");
        let is_it = |component: &&mut plinth_api::lock::LockedComponent| {
            component.signatures.is_empty() != signed && (signed || component.name == GATEWAY.0)
        };
        edit(lock.components.iter_mut().find(is_it).unwrap());
        let found = compared(&lock).await;
        assert!(found.len() == 1 && found[0].contains(words), "{words}: {found:?}");
        assert_eq!(crate::difference(&original, &lock).len(), 1, "{words}: channel diff does not see it");
    }
}
