//! `plinth channel ls`: components, or artifacts with all their versions, registries and pull secrets.

use plinth_api::lock::{LockedComponent, ReleaseLock};
use plinth_releasechannel::{Artifact, PullSecret, artifacts, versions};
use plinth_run::Outcome;
use serde_json::{Value, json};

use super::lock_text;
use crate::{
    args::{ChannelList, Output},
    exit::Failure,
    load,
    out::Out,
    table::table,
};

/// Runs `plinth channel ls`.
pub(super) async fn run(args: &ChannelList, out: Out) -> Result<Outcome, Failure> {
    let channel = load::held(&args.source).await?;
    if let Some(range) = &args.version {
        let bad = |error| Failure::refused(format!("--version: {error}")).hint("a range is such as 1.2.3, ~1.2 or >=1.0 <2");
        versions::Constraint::parse(range).map_err(bad)?;
    }
    load::tell_remarks(&channel, out);
    if !args.artifacts && args.artifact.is_none() && args.version.is_none() {
        match args.output {
            Output::Human => components(&channel.lock).iter().for_each(|line| out.data(line)),
            Output::Json => out.data(&lock_text(&channel.lock)),
        }
        return Ok(Outcome::Done);
    }
    let all = artifacts(&channel);
    let mut found: Vec<&Artifact> = all.iter().filter(|artifact| is_wanted(artifact, args)).collect();
    if let Some(name) = args.artifact.as_ref().filter(|_| found.is_empty()) {
        return Err(unknown(name, args.version.as_deref(), &all));
    }
    found.sort_by(|a, b| (&a.name, &a.component.name).cmp(&(&b.name, &b.component.name)).then_with(|| newest_first(a, b)));
    match args.output {
        Output::Human => {
            let rows: Vec<[String; 6]> = found.iter().map(|artifact| row(artifact)).collect();
            table(HEADER, &rows).iter().for_each(|line| out.data(line));
        }
        Output::Json => {
            let list: Vec<Value> = found.iter().map(|artifact| document(artifact)).collect();
            out.data(&serde_json::to_string_pretty(&list).expect("strings and lists have a JSON form"));
        }
    }
    Ok(Outcome::Done)
}

/// By the artifact's name or the bare resource name; by component version or range.
fn is_wanted(artifact: &Artifact, args: &ChannelList) -> bool {
    let is_named = |name: &String| *name == artifact.name || *name == artifact.resource.name;
    let in_range = |range: &String| versions::pick(Some(range), [artifact.component.version.as_str()]).is_some();
    args.artifact.as_ref().is_none_or(is_named) && args.version.as_ref().is_none_or(in_range)
}

fn newest_first(a: &Artifact, b: &Artifact) -> std::cmp::Ordering {
    match (versions::Version::parse(&a.component.version), versions::Version::parse(&b.component.version)) {
        (Some(a), Some(b)) => b.total_order(&a),
        _ => b.component.version.cmp(&a.component.version),
    }
}

fn unknown(name: &str, range: Option<&str>, all: &[Artifact]) -> Failure {
    let versions: Vec<&str> = all
        .iter()
        .filter(|artifact| artifact.name == name || artifact.resource.name == name)
        .map(|artifact| artifact.component.version.as_str())
        .collect();
    if versions.is_empty() {
        return Failure::refused(format!("the channel has no artifact {name}")).hint("channel ls SOURCE --artifacts lists all");
    }
    Failure::refused(format!("no version of {name} satisfies `{}`; there are: {}", range.unwrap_or("*"), versions.join(", ")))
}

const HEADER: [&str; 6] = ["ARTIFACT", "COMPONENT VERSION", "VERSION", "REGISTRY", "PULL SECRETS", "REFERENCE"];

fn row(artifact: &Artifact) -> [String; 6] {
    let secrets: Vec<String> = artifact.pull_secrets.iter().map(ToString::to_string).collect();
    // Several may differ in nothing but the rest of their identity.
    let extra: Vec<String> = artifact.resource.extra.iter().map(|(key, value)| format!("{key}={value}")).collect();
    let name = if extra.is_empty() { artifact.name.clone() } else { format!("{} {}", artifact.name, extra.join(",")) };
    [
        name,
        artifact.component.version.clone(),
        artifact.version.clone(),
        artifact.registry.clone().unwrap_or_else(|| "in the channel".to_owned()),
        if secrets.is_empty() { "none".to_owned() } else { secrets.join(", ") },
        artifact.reference.clone().or_else(|| artifact.digest.clone()).unwrap_or_default(),
    ]
}

fn document(artifact: &Artifact) -> Value {
    let secret = |secret: &PullSecret| match secret {
        PullSecret::Cluster { name, namespace } => json!({"name": name, "namespace": namespace}),
        PullSecret::Local { registry, from } => json!({"registry": registry, "from": from}),
    };
    json!({
        "name": artifact.name,
        "version": artifact.component.version,
        "component": artifact.component.name,
        "resource": artifact.resource.name,
        "extraIdentity": artifact.resource.extra,
        "artifactVersion": artifact.version,
        "type": artifact.kind,
        "registry": artifact.registry,
        "url": artifact.reference,
        "digest": artifact.digest,
        "pullsecrets": artifact.pull_secrets.iter().map(secret).collect::<Vec<_>>(),
    })
}

/// One line a component version: `NAME VERSION RESOURCES REPOSITORY`.
fn components(lock: &ReleaseLock) -> Vec<String> {
    let width = lock.components.iter().map(|component| component.name.len()).max().unwrap_or_default();
    let line = |component: &LockedComponent| {
        let place = lock.repositories.get(component.repository).map(ToString::to_string).unwrap_or_default();
        format!("{:<width$}  {:<16} {:>3} resources  {place}", component.name, component.version, component.resources.len())
    };
    lock.components.iter().map(line).collect()
}
