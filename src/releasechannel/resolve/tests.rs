mod order;

use super::*;
use crate::error::RepositoryError;
use crate::testing::{data, names, offline};

fn hand(name: &str) -> PathBuf {
    data().join("ocm/ctf/hand").join(name)
}

async fn from(path: &Path, component: &str) -> Result<Channel, ResolveError> {
    let source = SourceRef::parse(&format!("ctf::{}//{component}", path.display())).unwrap();
    inspect(&source, &Selection::default(), &offline()).await
}

/// As for an installation.
async fn installed(path: &Path, component: &str) -> Result<Channel, ResolveError> {
    let source = SourceRef::parse(&format!("ctf::{}//{component}", path.display())).unwrap();
    resolve(&source, &Selection::default(), &offline()).await
}

async fn error(name: &str, component: &str) -> ResolveError {
    from(&hand(name), component).await.unwrap_err()
}

fn ctf(name: &str) -> PathBuf {
    data().join("ocm/ctf").join(name)
}

#[tokio::test]
async fn every_form_of_one_archive_gives_the_same_lock() {
    let component = "acme.example/releasechannel/stable";
    for group in [
        &["v1-byval", "v1-byval.tar"][..],
        &["v2-byval", "v2-byval-handpacked.tar", "v2-byval-handpacked.tgz", "v2-byval-handpacked-nodot.tgz"],
    ] {
        let mut locks = Vec::new();
        for name in group {
            let channel = installed(&ctf(name), component).await.unwrap_or_else(|error| panic!("{name}: {error}"));
            assert_eq!(channel.rgds.len(), 5, "{name}");
            locks.push(channel.lock.components);
        }
        assert_eq!(locks[0].len(), 6);
        assert!(locks.windows(2).all(|pair| pair[0] == pair[1]), "{group:?}");
    }
}

#[tokio::test]
async fn an_umbrella_keeps_every_version_as_an_entry_of_its_own() {
    for component in ["acme.example/releasechannel/stable", "acme.example/releasechannel/samename"] {
        for name in ["v1", "v2"] {
            let channel = from(&ctf(name), component).await.unwrap();
            let gateways = channel.lock.components.iter().filter(|component| component.name.ends_with("gateway")).count();
            assert_eq!(gateways, 2, "{component} in {name}");
        }
    }
}

#[tokio::test]
async fn a_selection_keeps_the_highest_allowed_version() {
    let source = SourceRef::parse(&format!("ctf::{}//acme.example/releasechannel/stable", ctf("v1").display())).unwrap();
    let selection = |component: &str, range: &str| Selection {
        select: [(component.to_owned(), range.to_owned())].into(),
        ..Selection::default()
    };
    let channel = resolve(&source, &selection("acme.example/services/gateway", "1.x"), &offline()).await.unwrap();
    let versions: Vec<_> = channel
        .lock
        .components
        .iter()
        .filter(|component| component.name.ends_with("gateway"))
        .map(|component| component.version.as_str())
        .collect();
    assert_eq!(versions, ["1.3.0"]);
    let error = resolve(&source, &selection("acme.example/services/gateway", ">3"), &offline()).await.unwrap_err();
    assert!(error.to_string().contains("1.2.0, 1.3.0"), "{error}");
    let distribution = |name: &str, range: Option<&str>| Selection {
        distribution: Some((name.to_owned(), range.map(str::to_owned))),
        ..Selection::default()
    };
    let channel = resolve(&source, &distribution("ledger", Some("<0.5")), &offline()).await.unwrap();
    assert_eq!(channel.distribution.unwrap().to_string(), "acme.example/services/ledger:0.4.1");
    let error = resolve(&source, &distribution("none", None), &offline()).await.unwrap_err();
    assert!(matches!(error, ResolveError::Choice { ref choices, .. } if choices.len() == 6), "{error}");
}

#[tokio::test]
async fn diamonds_are_read_once_and_deep_nests_to_the_end() {
    let channel = from(&ctf("v1"), "acme.example/diamond/top").await.unwrap();
    let names: Vec<_> = channel.lock.components.iter().map(|component| component.name.as_str()).collect();
    assert_eq!(names.iter().filter(|name| **name == "acme.example/nest/d").count(), 1, "{names:?}");
    let channel = from(&ctf("v1"), "acme.example/nest/a").await.unwrap();
    assert_eq!(channel.lock.components.len(), 4);
}

#[tokio::test]
async fn a_broken_reference_shows_the_way_to_it() {
    let error = from(&ctf("v1"), "acme.example/broken/top").await.unwrap_err();
    assert!(matches!(&error, ResolveError::BrokenReference { path, .. } if path[0].name == "acme.example/broken/top"), "{error}");
    assert!(error.to_string().contains("acme.example/broken/top:1.0.0 → "), "{error}");
    assert_eq!(error.kind(), ErrorKind::NotFound);
}

/// A channel without its parts, and the parts where a resolver says they are.
#[tokio::test]
async fn resolvers_know_where_else_to_look() {
    use crate::ctf::Contents;
    let (channel, parts) = (tempfile::tempdir().unwrap(), tempfile::tempdir().unwrap());
    let all = Contents::open(&ctf("v1"), &Limits::default()).unwrap();
    for (folder, wanted) in [(&channel, "releasechannel"), (&parts, "services")] {
        let mut some = all.clone();
        some.artifacts.retain(|entry| entry.repository.contains(wanted));
        some.write(folder.path(), crate::ctf::Format::Folder).unwrap();
    }
    let source = SourceRef::parse(&format!("ctf::{}//acme.example/releasechannel/stable", channel.path().display())).unwrap();
    let error = inspect(&source, &Selection::default(), &offline()).await.unwrap_err();
    assert!(matches!(error, ResolveError::BrokenReference { .. }), "{error}");
    for config in ["resolvers-legacy.yaml", "resolvers-glob.yaml", "resolvers-glob-star.yaml"] {
        let text = std::fs::read_to_string(data().join("ocm/cfg").join(config)).unwrap();
        let path = channel.path().join("ocmconfig");
        std::fs::write(&path, text.replace("./tmp/sv", parts.path().to_str().unwrap())).unwrap();
        let options = crate::Options { ocm_config: Some(path), ..offline() };
        let found = inspect(&source, &Selection::default(), &options).await.unwrap_or_else(|error| panic!("{config}: {error}"));
        assert_eq!(found.lock.components.len(), 6, "{config}");
        assert_eq!(found.lock.repositories.len(), 2, "{config}");
        assert!(found.lock.components.iter().all(|c| (c.repository == 1) == c.name.contains("services")));
    }
}

#[tokio::test]
async fn a_cycle_is_printed() {
    let expected = "acme.example/hand/cycle-x:1.0.0 → acme.example/hand/cycle-y:1.0.0 → acme.example/hand/cycle-x:1.0.0";
    let error = error("cycle", "acme.example/hand/cycle-x:1.0.0").await;
    assert!(error.to_string().contains(expected), "{error}");
    let as_path = resolve(&SourceRef::Path(hand("cycle")), &Selection::default(), &offline()).await.unwrap_err();
    assert!(matches!(as_path, ResolveError::Cycle { .. }), "{as_path}");
}

#[tokio::test]
async fn tampered_content_is_refused_with_component_and_digests() {
    let blob = installed(&hand("tampered-blob"), "acme.example/hand/tampered").await.unwrap_err();
    let descriptor = error("tampered-descriptor", "acme.example/hand/tampdesc:1.0.0").await;
    for error in [blob, descriptor] {
        let ResolveError::Repository { path, source: RepositoryError::Digest { expected, found, .. } } = &error else {
            panic!("{error}")
        };
        let message = error.to_string();
        assert!(
            message.contains(expected.as_str()) && message.contains(found.as_str()) && message.contains("acme.example/hand/tamp"),
            "{message}"
        );
        assert_eq!(path.len(), 1);
        assert_eq!(error.kind(), ErrorKind::Refused);
    }
}

#[tokio::test]
async fn an_unknown_schema_is_refused_by_name() {
    let error = error("unknown-schema", "acme.example/hand/unkschema:1.0.0").await;
    assert!(error.to_string().contains("v9") && error.to_string().contains("unkschema"), "{error}");
}

/// Closure and, where there is one, the resource `rgd`.
async fn read_all(path: &Path, component: &str) -> Result<(), ResolveError> {
    let channel = from(path, component).await?;
    let has_rgd = channel.descriptor(&channel.root).unwrap().resources.iter().any(|resource| resource.identity.name == "rgd");
    if has_rgd {
        channel.fetch(&channel.root, "rgd").await?;
    }
    Ok(())
}

#[tokio::test]
async fn an_installation_refuses_what_is_no_rgd() {
    let error = installed(&hand("fmt-json"), "acme.example/hand/fmt").await.unwrap_err();
    assert!(
        error.to_string().contains("resource rgd of acme.example/hand/fmt:1.0.0") && error.to_string().contains("ConfigMap"),
        "{error}"
    );
}

/// Every hand-made archive: read, or refused where a consumer must refuse. The tools' answers stand in SUMMARY.tsv.
#[tokio::test]
async fn show_04_hand() {
    // Those from `v3alpha1` on refer to components or blobs that are not in their archive, or are not what their names say.
    let refused = [
        "tampered-blob",
        "tampered-descriptor",
        "unknown-schema",
        "cycle",
        "v3alpha1",
        "norm-edge",
        "missing-blob",
        "name-mismatch",
        "wrong-resource-digest",
    ];
    let mut right = 0;
    let mut wrong = Vec::new();
    let names = names("ctf/hand");
    for name in &names {
        let contents = crate::ctf::Contents::open(&hand(name), &Limits::default()).unwrap();
        let tagged = contents.artifacts.iter().find(|entry| entry.tag.is_some()).unwrap();
        let component = tagged.repository.trim_start_matches("component-descriptors/").to_owned();
        let result = read_all(&hand(name), &format!("{component}:{}", versions::from_tag(tagged.tag.as_ref().unwrap()))).await;
        let fits = result.is_err() == refused.contains(&name.as_str());
        if fits {
            right += 1;
        } else {
            wrong.push(format!("{name}: {:?}", result.map(|()| "read").map_err(|error| error.to_string())));
        }
    }
    eprintln!("SHOW 04 hand {right}/{}", names.len());
    assert!(wrong.is_empty(), "{}", wrong.join("\n"));
    assert!(names.len() >= 20);
}

#[tokio::test]
async fn v3alpha1_is_read_whatever_its_media_type() {
    let channel = installed(&ctf("v1-v3alpha1"), "acme.example/services/gateway:1.3.0").await.unwrap();
    assert_eq!(channel.descriptor(&channel.root).unwrap().schema, crate::descriptor::Schema::V3Alpha1);
    assert_eq!(channel.rgds.len(), 1);
    // Its reference leads out of the archive.
    let error = error("v3alpha1", "acme.example/hand/v3:1.0.0").await;
    assert!(matches!(error, ResolveError::BrokenReference { .. }), "{error}");
}

#[tokio::test]
async fn foreign_tags_do_not_hide_versions() {
    let channel = from(&hand("versions"), "acme.example/hand/versions").await.unwrap();
    assert_eq!(channel.root.version, "10.0.0");
    let versions = channel.repositories()[0].versions("acme.example/hand/versions").await.unwrap();
    assert!(["1.2.0", "1.2.0+a", "1.2.0+b"].iter().all(|version| versions.iter().any(|there| there == version)), "{versions:?}");
}

#[tokio::test]
async fn documents_come_out_of_packed_and_nested_artifacts() {
    for name in ["v1-byval", "v2-byval"] {
        let channel = from(&ctf(name), "acme.example/services/gateway:1.3.0").await.unwrap();
        let plain = channel.fetch(&channel.root, "rgd").await.unwrap();
        let from_artifact = channel.fetch(&channel.root, "rgd-oci").await.unwrap();
        assert_eq!(plain, from_artifact, "{name}");
        assert!(matches!(channel.fetch(&channel.root, "cli").await, Err(ResolveError::Choice { .. })));
        assert!(matches!(channel.fetch(&channel.root, "nope").await, Err(ResolveError::Document { .. })));
    }
}

#[tokio::test]
async fn an_unknown_access_is_listed_and_refused_on_use() {
    let channel = from(&hand("unknown-access"), "acme.example/hand/unknown:1.0.0").await.unwrap();
    let error = channel.fetch(&channel.root, "odd").await.unwrap_err();
    assert!(error.to_string().contains("acme.example/pigeon/v7"), "{error}");
}

#[tokio::test]
async fn several_channels_in_one_archive_are_listed() {
    let error = resolve(&SourceRef::Path(ctf("v1")), &Selection::default(), &offline()).await.unwrap_err();
    assert!(matches!(&error, ResolveError::Repository { .. } | ResolveError::Choice { .. }), "{error}");
}

#[tokio::test]
async fn bounds_on_the_graph_hold() {
    let source = SourceRef::parse(&format!("ctf::{}//acme.example/nest/a", ctf("v1").display())).unwrap();
    let with = |change: &dyn Fn(&mut Limits)| {
        let mut options = offline();
        change(&mut options.limits);
        options
    };
    for options in
        [with(&|limits| limits.components = 2), with(&|limits| limits.depth = 2), with(&|limits| limits.references = 0)]
    {
        let error = resolve(&source, &Selection::default(), &options).await.unwrap_err();
        assert!(matches!(error, ResolveError::Limit { .. }), "{error}");
    }
}

#[tokio::test]
async fn a_platform_file_is_a_source_and_flags_win() {
    let folder = tempfile::tempdir().unwrap();
    let path = folder.path().join("platform.yaml");
    let text = |extra: &str| {
        format!(
            "apiVersion: plinth.dev/v1alpha1\nkind: Platform\nspec:\n  source: {{channel: acme.example/releasechannel/stable, repositories: ['ctf::{}']}}\n  select: {{acme.example/services/gateway: 1.2.0}}\n{extra}",
            ctf("v1").canonicalize().unwrap().display()
        )
    };
    std::fs::write(&path, text("")).unwrap();
    let source = SourceRef::parse(path.to_str().unwrap()).unwrap();
    let gateways = |channel: &Channel| {
        channel.lock.components.iter().filter(|c| c.name.ends_with("gateway")).map(|c| c.version.clone()).collect::<Vec<_>>()
    };
    let channel = resolve(&source, &Selection::default(), &offline()).await.unwrap();
    assert_eq!(gateways(&channel), ["1.2.0"]);
    assert!(channel.platform.is_some());
    let flag =
        Selection { select: [("acme.example/services/gateway".to_owned(), "^1.3".to_owned())].into(), ..Selection::default() };
    assert_eq!(gateways(&resolve(&source, &flag, &offline()).await.unwrap()), ["1.3.0"]);
    std::fs::write(&path, text("  colour: red\n")).unwrap();
    let error = resolve(&source, &Selection::default(), &offline()).await.unwrap_err();
    assert!(
        error.to_string().contains("platform.yaml:6:3 cannot be used: spec: ") && error.to_string().contains("colour"),
        "{error}"
    );
    std::fs::write(&path, "apiVersion: plinth.dev/v1alpha1\nkind: Platform\nspec: [\n").unwrap();
    let error = resolve(&source, &Selection::default(), &offline()).await.unwrap_err();
    assert!(error.to_string().contains("platform.yaml:"), "{error}");
}

#[test]
fn only_resource_graph_definitions_are_rgds() {
    let rgd = "apiVersion: kro.run/v1alpha1\nkind: ResourceGraphDefinition\n";
    assert_eq!(check_rgd(format!("{rgd}---\n{}", rgd.replace("kro.run", "krop.opendefense.cloud")).as_bytes()), Ok(()));
    for text in [
        "",
        "kind: Secret\napiVersion: v1\n",
        &format!("{rgd}---\nkind: Pod\napiVersion: v1\n"),
        "a: [",
        &rgd.replace("kro.run", "x.y"),
    ] {
        assert!(check_rgd(text.as_bytes()).is_err(), "{text}");
    }
}

#[tokio::test]
async fn a_lock_is_the_same_text_every_time_and_is_read_again() {
    let text = |channel: &Channel| serde_json::to_string_pretty(&channel.lock).unwrap();
    let first = from(&ctf("v1"), "acme.example/releasechannel/stable").await.unwrap();
    let second = from(&ctf("v1"), "acme.example/releasechannel/stable").await.unwrap();
    assert_eq!(text(&first), text(&second));
    let read: ReleaseLock = serde_json::from_str(&text(&first)).unwrap();
    assert_eq!(read, first.lock);
}

/// What the tools print for the corpus, against what we read from the archives that it was printed for.
#[tokio::test]
async fn show_04_cli() {
    use crate::descriptor::Descriptor;
    use crate::normalise::{Normalisation, normalise};
    let golden = |name: &str| -> Value {
        serde_json::from_slice(&std::fs::read(data().join("ocm/golden/cli").join(name)).unwrap()).unwrap()
    };
    let items = |name: &str| -> Vec<Value> {
        let value = golden(name);
        value.get("items").unwrap_or(&value).as_array().unwrap().clone()
    };
    let mut rows = 0;
    for (file, archive, form) in [
        ("v1.get-cv-r.json", "v3-pkcs1-sha256", Normalisation::V3),
        ("v2.get-cv-r.json", "v4alpha1-pkcs1-sha256", Normalisation::V4Alpha1),
    ] {
        let channel =
            from(&data().join("ocm/signed").join(archive), "acme.example/releasechannel/stable:2026.11.0").await.unwrap();
        for item in items(file) {
            let theirs = Descriptor::from_value(item).unwrap();
            let at = ComponentVersion::new(&theirs.name, &theirs.version);
            let ours = channel.descriptor(&at).unwrap_or_else(|| panic!("{file}: {at} is not in ours"));
            assert_eq!(String::from_utf8(normalise(ours, form)), String::from_utf8(normalise(&theirs, form)), "{file}: {at}");
            rows += 1;
        }
    }
    let channel = from(&data().join("ocm/signed/v3-pkcs1-sha256"), "acme.example/releasechannel/stable:2026.11.0").await.unwrap();
    for item in items("v1.get-resources-r.json") {
        let (name, version) = item["context"].as_array().unwrap().last().unwrap().as_str().unwrap().split_once(':').unwrap();
        let component =
            channel.lock.components.iter().find(|component| component.name == name && component.version == version).unwrap();
        let element = &item["element"];
        let is_it = |resource: &&LockedResource| {
            resource.name == element["name"]
                && element.get("extraIdentity").is_none_or(|extra| *extra == serde_json::json!(resource.extra_identity))
        };
        let resource = component.resources.iter().find(is_it).unwrap();
        let digest = resource.digest.as_deref().and_then(|digest| digest.split_once(':')).map(|(_, hex)| hex);
        assert_eq!(
            (resource.kind.as_str(), digest),
            (element["type"].as_str().unwrap(), element["digest"]["value"].as_str()),
            "{element}"
        );
        rows += 1;
    }
    let versions = channel.repositories()[0].versions("acme.example/services/gateway").await.unwrap();
    let listed = std::fs::read_to_string(data().join("ocm/golden/cli/v1.show-versions.txt")).unwrap();
    let theirs: Vec<&str> = listed.lines().filter(|line| !line.contains("warning")).collect();
    assert_eq!(versions, theirs);
    eprintln!("SHOW 04 cli {}/{}", rows + 1, rows + 1);
}
