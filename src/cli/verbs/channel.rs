//! `plinth channel`: what is installable, in which versions, from where, signed by whom.

mod list;
mod verify;

use std::{collections::BTreeSet, path::Path};

use plinth_api::lock::{LockedRef, ReleaseLock};
use plinth_cluster::chain;
use plinth_releasechannel::{
    Format, Limits, SourceRef, difference, find_descriptor,
    normalise::{Normalisation, normalise as normal_form},
    pack as pack_folder,
};
use plinth_run::Outcome;
use serde_json::json;

use crate::{
    args::{Channel, ChannelDiff, ChannelLock, ChannelNormalise, ChannelRead, Output},
    exit::Failure,
    load::{self, refusal},
    out::Out,
};

/// Runs `plinth channel …`.
pub(crate) async fn run(verb: Channel, out: Out) -> Result<Outcome, Failure> {
    match verb {
        Channel::Ls(args) => list::run(&args, out).await,
        Channel::Show(args) => show(&args, out).await,
        Channel::Verify(args) => verify::run(&args, out).await,
        Channel::Diff(args) => diff(&args, out).await,
        Channel::Lock(args) => lock(&args, out).await,
        Channel::Normalise(args) => normalise(&args, out).await,
        Channel::Pack { dir, file } => pack(&dir, &file, out),
    }
}

async fn show(args: &ChannelRead, out: Out) -> Result<Outcome, Failure> {
    let channel = load::held(&args.source).await?;
    load::tell_remarks(&channel, out);
    match args.output {
        Output::Human => tree(&channel.lock).iter().for_each(|line| out.data(line)),
        Output::Json => out.data(&lock_text(&channel.lock)),
    }
    Ok(Outcome::Done)
}

async fn lock(args: &ChannelLock, out: Out) -> Result<Outcome, Failure> {
    let selection = load::versions(&args.versions)?;
    let channel = load::channel(&args.source, &selection).await?;
    load::tell_remarks(&channel, out);
    let text = lock_text(&channel.lock);
    match &args.file {
        None => out.data(&text),
        Some(path) => std::fs::write(path, text + "\n")
            .map_err(|error| Failure::failed(format!("write the release lock to {}: {error}", path.display())))?,
    }
    Ok(Outcome::Done)
}

/// What differs between two releases, each a SOURCE or a saved lock.
async fn diff(args: &ChannelDiff, out: Out) -> Result<Outcome, Failure> {
    let old = load::lock(&args.old, &args.access).await?;
    let new = load::lock(&args.new, &args.access).await?;
    let differences = difference(&old, &new);
    match args.output {
        Output::Human => differences.iter().for_each(|difference| out.data(&difference.to_string())),
        Output::Json => out.data(&json!({"old": old.root, "new": new.root, "differences": differences}).to_string()),
    }
    if differences.is_empty() {
        out.talk("nothing differs");
    }
    Ok(if args.detailed_exitcode && !differences.is_empty() { Outcome::Changes } else { Outcome::Done })
}

/// The bytes that are hashed, and not one more.
async fn normalise(args: &ChannelNormalise, out: Out) -> Result<Outcome, Failure> {
    let algorithm: Normalisation =
        args.algorithm.parse().map_err(|error: plinth_releasechannel::normalise::UnknownNormalisation| {
            let names: Vec<&str> = Normalisation::ALL.iter().map(|known| known.name()).collect();
            Failure::new(Outcome::Usage, error.to_string()).hint(format!("one of {}", names.join(", ")))
        })?;
    let source = SourceRef::parse(&args.source.source).map_err(|error| refusal(&error))?;
    let descriptor = find_descriptor(&source, &load::options(&args.source)).await.map_err(|error| refusal(&error))?;
    out.bytes(&normal_form(&descriptor, algorithm));
    Ok(Outcome::Done)
}

fn pack(dir: &Path, file: &Path, out: Out) -> Result<Outcome, Failure> {
    let format = Format::of(file).map_err(|error| refusal(&error.into()))?;
    let contents = pack_folder(dir, &Limits::default()).map_err(|error| refusal(&error))?;
    let was_there = file.exists();
    contents.write(file, format).map_err(|error| Failure::refused(format!("pack {}: {}", dir.display(), chain(&error))))?;
    let replaced = if was_there { ", in the place of what was there" } else { "" };
    out.talk(&format!("packed {} into {}{replaced}", dir.display(), file.display()));
    Ok(Outcome::Done)
}

/// A lock as it is printed and saved.
fn lock_text(lock: &ReleaseLock) -> String {
    serde_json::to_string_pretty(lock).expect("a lock is made of strings, numbers and lists, which all have a JSON form")
}

/// The closure as a tree from the root; a component version that was shown already is named and not repeated.
fn tree(lock: &ReleaseLock) -> Vec<String> {
    let mut lines = Vec::new();
    branch(lock, &lock.root, 0, &mut BTreeSet::new(), &mut lines);
    lines
}

fn branch(lock: &ReleaseLock, at: &LockedRef, depth: usize, seen: &mut BTreeSet<LockedRef>, lines: &mut Vec<String>) {
    let indent = "  ".repeat(depth);
    let again = !seen.insert(at.clone());
    lines.push(format!("{indent}{} {}{}", at.name, at.version, if again { " (above)" } else { "" }));
    let found = lock.components.iter().find(|component| component.name == at.name && component.version == at.version);
    let Some(component) = found.filter(|_| !again) else { return };
    for resource in &component.resources {
        let digest = resource.digest.as_deref().unwrap_or("no digest");
        lines.push(format!("{indent}  - {} {} {} {digest}", resource.name, resource.version, resource.kind));
    }
    for reference in &component.references {
        let target = LockedRef { name: reference.target.component_name.clone(), version: reference.target.version.clone() };
        branch(lock, &target, depth + 1, seen, lines);
    }
}
