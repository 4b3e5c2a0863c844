//! From the words of the command line to a resolved channel and the settings of a run.

pub(crate) mod platform;

use std::{
    collections::{BTreeMap, BTreeSet},
    fs::File,
    io::Read,
    path::{Path, PathBuf},
};

use plinth_api::{Scenario, lock::ReleaseLock};
use plinth_bootstrap::{Choice, Settings, ValuesFile};
use plinth_cluster::chain;
use plinth_engine::{Diagnostic, did_you_mean, yaml::Document};
use plinth_releasechannel::{
    CacheFolder, Channel, ErrorKind, Options, RepositoryRef, ResolveError, Selection, SourceRef, bundle, inspect,
    localization::Localization, resolve,
};
use plinth_run::Outcome;
use serde_json::{Map, Value};

use self::platform::PlatformFile;
use crate::{
    args::{AccessArgs, SelectionArgs, SourceArgs, Verify, VersionArgs},
    exit::Failure,
    out::Out,
};

/// Bytes that the cache may have, unless `PLINTH_CACHE_BYTES` says another number.
const CACHE_BYTES: u64 = 4 << 30;
/// The largest values file that is read.
const MAX_VALUES: u64 = 4 << 20;

/// How repositories are reached.
pub(crate) fn options(args: &SourceArgs) -> Options {
    access(&args.access)
}

/// The same, for verbs without one SOURCE.
pub(crate) fn access(args: &AccessArgs) -> Options {
    Options {
        plain_http: args.plain_http.iter().cloned().collect(),
        ca_files: args.ca.clone(),
        ocm_config: args.ocm_config.clone(),
        mirror: args.mirror.clone(),
        mirror_only: args.mirror.is_some(),
        keys: args.key.iter().cloned().collect(),
        cache: if args.no_cache { None } else { cache() },
        ..Options::default()
    }
}

/// `PLINTH_CACHE`, else the user's cache folder; none where there is no home.
fn cache() -> Option<CacheFolder> {
    let set = |name| std::env::var_os(name).filter(|value| !value.is_empty()).map(PathBuf::from);
    let folder = set("PLINTH_CACHE")
        .or_else(|| Some(set("XDG_CACHE_HOME").or_else(|| Some(set("HOME")?.join(".cache")))?.join("plinth")))?;
    let bytes = std::env::var("PLINTH_CACHE_BYTES").ok().and_then(|text| text.parse().ok()).unwrap_or(CACHE_BYTES);
    Some(CacheFolder { folder: folder.join("content"), bytes })
}

/// What a flag asks of signatures.
pub(crate) fn policy(flag: Verify) -> plinth_releasechannel::Verify {
    match flag {
        Verify::Required => plinth_releasechannel::Verify::Required,
        Verify::IfSigned => plinth_releasechannel::Verify::IfSigned,
        Verify::Off => plinth_releasechannel::Verify::Off,
    }
}

/// Resolves SOURCE for an installation; reads only.
pub(crate) async fn channel(args: &SourceArgs, selection: &Selection) -> Result<Channel, Failure> {
    let channel = resolved(args, selection, &options(args)).await;
    channel.map_err(|failure| match &args.access.mirror {
        Some(mirror) if failure.hint.is_none() => {
            failure.hint(format!("plinth bundle push ARCHIVE {mirror} brings a channel there"))
        }
        _ => failure,
    })
}

/// The same, with options of its own.
pub(crate) async fn resolved(args: &SourceArgs, selection: &Selection, options: &Options) -> Result<Channel, Failure> {
    let source = SourceRef::parse(&args.source).map_err(|error| refusal(&error))?;
    let channel = resolve(&source, selection, options).await.map_err(|error| refusal(&error))?;
    known(channel, selection)
}

/// Resolves SOURCE for looking at it: no document is read.
pub(crate) async fn inspected(args: &SourceArgs, selection: &Selection, options: &Options) -> Result<Channel, Failure> {
    let source = SourceRef::parse(&args.source).map_err(|error| refusal(&error))?;
    let channel = inspect(&source, selection, options).await.map_err(|error| refusal(&error))?;
    known(channel, selection)
}

/// The same for what a SOURCE holds: of a bundle that was made with a selection, what is in it.
pub(crate) async fn held(args: &SourceArgs) -> Result<Channel, Failure> {
    let source = SourceRef::parse(&args.source).map_err(|error| refusal(&error))?;
    bundle::inspect_held(&source, &options(args)).await.map_err(|error| refusal(&error))
}

/// The same channel, where it has everything that was selected, by a flag or by its Platform file.
fn known(channel: Channel, selection: &Selection) -> Result<Channel, Failure> {
    let of_platform = channel.platform.iter().flat_map(|platform| platform.select.keys());
    let asked: Vec<&String> = selection.select.keys().chain(of_platform).collect();
    are_known(&asked, &channel.lock)?;
    Ok(channel)
}

/// Says what a person should know of a channel, also of what was not proven.
pub(crate) fn tell_remarks(channel: &Channel, out: Out) {
    let remarks = channel.remarks.iter().chain(&channel.verification.remarks);
    remarks.for_each(|remark| out.talk(&format!("note: {remark}")));
}

/// A saved lock, or the lock of a SOURCE.
pub(crate) async fn lock(text: &str, args: &AccessArgs) -> Result<ReleaseLock, Failure> {
    if let Some(lock) = lock_file(Path::new(text))? {
        return Ok(lock);
    }
    let source = SourceArgs { source: text.to_owned(), access: args.clone() };
    let found = inspected(&source, &Selection::default(), &access(args)).await;
    let found = found.map_err(|failure| match failure.hint {
        None => failure.hint("a release is a SOURCE, or a lock that plinth channel lock has saved as .json or .yaml"),
        Some(_) => failure,
    });
    Ok(found?.lock)
}

/// The lock in a file; `None` where the file is something else.
pub(crate) fn lock_file(path: &Path) -> Result<Option<ReleaseLock>, Failure> {
    plinth_releasechannel::lock_file(path).map_err(|error| refusal(&error))
}

/// Refuses what was selected and is nowhere in the channel: a slip of the pen would go without effect.
fn are_known(asked: &[&String], lock: &ReleaseLock) -> Result<(), Failure> {
    let names: BTreeSet<&str> = lock.components.iter().map(|component| component.name.as_str()).collect();
    let Some(unknown) = asked.iter().find(|asked| !names.contains(asked.as_str())) else { return Ok(()) };
    let last = |name: &str| name.rsplit('/').next().unwrap_or_default().to_owned();
    let same_end = names.iter().find(|name| last(name) == last(unknown)).map(|name| format!("did you mean \"{name}\"?"));
    let meant = same_end.or_else(|| did_you_mean(unknown, names.iter().copied()));
    let hint = meant.unwrap_or_else(|| format!("it has {}", names.into_iter().collect::<Vec<_>>().join(", ")));
    Err(Failure::refused(format!("--select {unknown}: the channel has no component of that name")).hint(hint))
}

/// Where the channel's images are: with a mirror every one is looked for there.
pub(crate) async fn images(args: &SourceArgs, channel: &Channel) -> Result<Localization, Failure> {
    let Some(mirror) = &args.access.mirror else { return Ok(Localization::describing(&channel.lock)) };
    let mirror = RepositoryRef::parse(mirror).map_err(|error| refusal(&error))?;
    channel.localization(&mirror).await.map_err(|error| refusal(&error))
}

/// What was chosen where a channel leaves a choice.
pub(crate) fn selection(args: &SelectionArgs) -> Result<Selection, Failure> {
    let distribution = args.distribution.as_deref().map(Choice::parse).map(|choice| (choice.name, choice.range));
    Ok(Selection { distribution, ..versions(&args.versions)? })
}

/// Which versions, whatever the distribution.
pub(crate) fn versions(args: &VersionArgs) -> Result<Selection, Failure> {
    let select = pairs(&args.select, "--select", "COMPONENT=RANGE")?;
    Ok(Selection { select, labels: pairs(&args.label, "--label", "NAME=VALUE")?, ..Selection::default() })
}

fn pairs(texts: &[String], flag: &str, form: &str) -> Result<BTreeMap<String, String>, Failure> {
    let pair = |text: &String| {
        let (name, value) = text.split_once('=').filter(|(name, value)| !name.is_empty() && !value.is_empty())?;
        Some((name.to_owned(), value.to_owned()))
    };
    let wrong = |text: &String| Failure::new(Outcome::Usage, format!("{flag} {text}: write {form}"));
    texts.iter().map(|text| pair(text).ok_or_else(|| wrong(text))).collect()
}

/// The settings that flags and a Platform file give; flags win.
pub(crate) async fn settings(
    source: &SourceArgs,
    args: &SelectionArgs,
    channel: &Channel,
    platform: Option<&PlatformFile>,
) -> Result<Settings, Failure> {
    let mut settings = Settings {
        source: source.source.clone(),
        namespace: args.namespace.clone(),
        repository: channel.lock.repositories.first().cloned(),
        unverified: channel.verification.switched_off.clone(),
        ..Settings::default()
    };
    if let Some(file) = platform {
        settings.platform.clone_from(&file.name);
        settings.values_files.push(file.values.clone());
    }
    if let Some(platform) = &channel.platform {
        settings.values.clone_from(&platform.values);
        settings.namespace = settings.namespace.or_else(|| platform.namespace.clone());
    }
    if let Some(file) = &args.values {
        let document = patiently(file).await?;
        overlay(&mut settings.values, document.value.as_object().cloned().unwrap_or_default());
        settings
            .values_files
            .insert(0, ValuesFile { name: file.display().to_string(), locations: document.locations, under: "" });
    }
    Ok(settings)
}

/// The scenario of a file, else the channel's own text, else the one without rules.
pub(crate) fn scenario(file: Option<&Path>, own: Option<&str>) -> Result<Scenario, Failure> {
    let (whose, text) = match (file, own) {
        (Some(file), _) => {
            let refuse = |error: std::io::Error| Failure::refused(format!("--scenario {}: {error}", file.display()));
            (format!("--scenario {}", file.display()), std::fs::read_to_string(file).map_err(refuse)?)
        }
        (None, Some(text)) => ("the distribution's scenario".to_owned(), text.to_owned()),
        (None, None) => return Ok(Scenario::default()),
    };
    Scenario::parse(&text).map_err(|error| Failure::refused(format!("{whose}: {error}")))
}

/// Reads a values file on a thread of its own: a pipe may give no bytes for as long as it likes, and the verb still hears a signal.
async fn patiently(file: &Path) -> Result<Document, Failure> {
    let (path, named) = (file.to_owned(), file.display());
    let read = tokio::task::spawn_blocking(move || values(&path)).await;
    read.unwrap_or_else(|error| Err(Failure::new(Outcome::Internal, format!("--values {named}: {error}"))))
}

/// Reads a values file: one YAML mapping, or nothing.
fn values(path: &Path) -> Result<Document, Failure> {
    let refuse = |reason: String| Failure::refused(format!("--values {}: {reason}", path.display()));
    let mut text = String::new();
    let read = File::open(path).and_then(|file| file.take(MAX_VALUES + 1).read_to_string(&mut text));
    let length = read.map_err(|error| refuse(error.to_string()))?;
    if length as u64 > MAX_VALUES {
        return Err(refuse(format!("it is larger than {MAX_VALUES} bytes")));
    }
    // `FILE:line:column`, as compilers write it.
    let misread = |finding: &Diagnostic| Failure::refused(format!("--values {}:{finding}", path.display()));
    let mut documents = plinth_engine::yaml::documents(&text).map_err(|finding| misread(&finding))?;
    match (documents.pop(), documents.is_empty()) {
        (None, _) => Ok(Document::default()),
        (Some(document), true) if document.value.is_object() || document.value.is_null() => Ok(document),
        (Some(_), true) => Err(refuse("a mapping is expected".to_owned())),
        (Some(_), false) => Err(refuse("one document is expected".to_owned())),
    }
}

/// Mappings merge, everything else is replaced.
fn overlay(into: &mut Map<String, Value>, over: Map<String, Value>) {
    for (key, value) in over {
        match (into.get_mut(&key), value) {
            (Some(Value::Object(into)), Value::Object(over)) => overlay(into, over),
            (_, value) => {
                into.insert(key, value);
            }
        }
    }
}

/// A channel's error with its exit code: what is not there or not proven is refused, what does not answer can be tried again.
pub(crate) fn refusal(error: &ResolveError) -> Failure {
    let outcome = match error.kind() {
        ErrorKind::Refused | ErrorKind::NotFound => Outcome::Refused,
        ErrorKind::Unavailable => Outcome::Deadline,
    };
    Failure { outcome, message: chain(error), hint: error.hint().map(str::to_owned) }
}

#[cfg(test)]
mod tests {
    use super::*;

    const SAMPLE: &str = concat!(env!("CARGO_MANIFEST_DIR"), "/../../distributions/open-control-plane-kind");

    async fn load(select: &str) -> Result<Channel, Failure> {
        let args = SourceArgs { source: SAMPLE.into(), access: AccessArgs::default() };
        let selection = versions(&VersionArgs { select: vec![select.to_owned()], ..VersionArgs::default() }).unwrap();
        channel(&args, &selection).await
    }

    #[tokio::test]
    async fn a_selection_that_means_nothing_is_refused() {
        let gateway = "github.com/openmcp-project/platform-service-gateway";
        for (select, message, hint) in [
            ("platform-service-gateway=v0.0.10", "--select platform-service-gateway: the channel has no component", gateway),
            ("github.com/openmcp-project/platform-servce-gateway=*", "the channel has no component of that name", gateway),
            ("x.test/none=*", "the channel has no component of that name", "it has github.com/"),
        ] {
            let failure = load(select).await.unwrap_err();
            assert_eq!(failure.outcome, Outcome::Refused);
            assert!(failure.message.contains(message) && failure.hint.as_ref().unwrap().contains(hint), "{failure:?}");
        }
        let args = SourceArgs { source: SAMPLE.into(), access: AccessArgs::default() };
        let selection = versions(&VersionArgs { select: vec!["x.test/none=*".to_owned()], ..VersionArgs::default() }).unwrap();
        let failure = inspected(&args, &selection, &options(&args)).await.unwrap_err();
        assert!(failure.message.contains("the channel has no component of that name"), "{failure:?}");
        let root = channel(&args, &Selection::default()).await.unwrap().lock.root.name;
        let failure = load(&format!("{root}=>2")).await.unwrap_err();
        assert_eq!(failure.outcome, Outcome::Refused);
        assert!(failure.message.contains(&root) && failure.message.contains(">2"), "{failure:?}");
        let failure = load(&format!("{gateway}=not a range")).await.unwrap_err();
        assert!(failure.message.contains("`not a range` is not a range of versions"), "{failure:?}");
        load(&format!("{gateway}=~0.0.10")).await.unwrap();
    }

    #[test]
    fn values_are_one_mapping_and_say_where_they_are_wrong() {
        let folder = tempfile::tempdir().unwrap();
        let file = folder.path().join("values.yaml");
        let read = |text: &str| {
            std::fs::write(&file, text).unwrap();
            values(&file).map(|document| document.value).map_err(|failure| failure.message)
        };
        assert_eq!(read("a: {b: null}\n"), Ok(serde_json::json!({"a": {"b": null}})));
        assert_eq!(read(""), Ok(Value::Null));
        assert!(read("a: 1\nb: [\n").unwrap_err().contains("values.yaml:2:4 "), "{:?}", read("a: 1\nb: [\n"));
        assert!(read("- a\n").unwrap_err().contains("a mapping is expected"));
    }

    #[test]
    fn null_stays_null_until_the_instance_is_made() {
        let map = |value: Value| value.as_object().unwrap().clone();
        let mut values = map(serde_json::json!({"a": {"b": 1, "c": 2}, "d": 3}));
        overlay(&mut values, map(serde_json::json!({"a": {"b": null}, "d": null})));
        assert_eq!(values, map(serde_json::json!({"a": {"b": null, "c": 2}, "d": null})));
    }
}
