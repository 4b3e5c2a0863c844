//! `plinth channel`: what is installable, in which versions, from where.

use std::{collections::BTreeSet, path::Path};

use plinth_api::lock::{LockedComponent, LockedRef, ReleaseLock};
use plinth_releasechannel::{Format, Limits, Selection, pack as pack_folder};
use plinth_run::Outcome;

use crate::{
    args::{Channel, ChannelLock, ChannelRead, Output},
    exit::Failure,
    load::{self, refusal},
    out::Out,
};

/// Runs `plinth channel …`.
pub(crate) async fn run(verb: Channel, out: Out) -> Result<Outcome, Failure> {
    match verb {
        Channel::Ls(args) => read(&args, out, list).await,
        Channel::Show(args) => read(&args, out, tree).await,
        Channel::Lock(args) => lock(&args, out).await,
        Channel::Pack { dir, file } => pack(&dir, &file, out),
    }
}

async fn read(args: &ChannelRead, out: Out, present: fn(&ReleaseLock) -> Vec<String>) -> Result<Outcome, Failure> {
    let channel = load::channel(&args.source, &Selection::default()).await?;
    channel.remarks.iter().for_each(|remark| out.talk(&format!("note: {remark}")));
    match args.output {
        Output::Human => present(&channel.lock).iter().for_each(|line| out.data(line)),
        Output::Json => out.data(&json(&channel.lock)),
    }
    Ok(Outcome::Done)
}

async fn lock(args: &ChannelLock, out: Out) -> Result<Outcome, Failure> {
    let selection = Selection { select: load::ranges(&args.select)?, ..Selection::default() };
    let channel = load::channel(&args.source, &selection).await?;
    let text = json(&channel.lock);
    match &args.file {
        None => out.data(&text),
        Some(path) => std::fs::write(path, text + "\n")
            .map_err(|error| Failure::failed(format!("write the release lock to {}: {error}", path.display())))?,
    }
    Ok(Outcome::Done)
}

fn pack(dir: &Path, file: &Path, out: Out) -> Result<Outcome, Failure> {
    let contents = pack_folder(dir, &Limits::default()).map_err(|error| refusal(&error))?;
    contents
        .write(file, Format::of(file))
        .map_err(|error| Failure::failed(format!("pack {}: {}", dir.display(), load::chain(&error))))?;
    out.talk(&format!("packed {} into {}", dir.display(), file.display()));
    Ok(Outcome::Done)
}

fn json(lock: &ReleaseLock) -> String {
    serde_json::to_string_pretty(lock).expect("a lock is made of strings, numbers and lists, which all have a JSON form")
}

/// One line a component version: `NAME VERSION RESOURCES REPOSITORY`.
fn list(lock: &ReleaseLock) -> Vec<String> {
    let width = lock.components.iter().map(|component| component.name.len()).max().unwrap_or_default();
    let line = |component: &LockedComponent| {
        let place = lock.repositories.get(component.repository).map(ToString::to_string).unwrap_or_default();
        format!("{:<width$}  {:<16} {:>3} resources  {place}", component.name, component.version, component.resources.len())
    };
    lock.components.iter().map(line).collect()
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
