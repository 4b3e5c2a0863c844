//! `plinth bundle`: a channel with everything that it names, over an air gap.

use std::path::{Path, PathBuf};

use plinth_api::lock::{LockedRef, ReleaseLock};
use plinth_releasechannel::{
    Change, Channel, CheckedSignature, Contents, Format, Limits, Options, PushRules, Registries, RepositoryRef,
    bundle::{self, Claims, Completeness, Kept, Program, Survey},
    first_lines, program, push_by,
};
use plinth_run::Outcome;
use serde_json::{Value, json};

use super::{own_chart, own_image};
use crate::{
    args::{Bundle, BundleCreate, BundleList, BundlePush, BundleVerify, Output},
    exit::Failure,
    load::{self, refusal},
    out::Out,
    table::{size, table},
};

/// Lines for people of what a place lacks.
const MISSING: usize = 1_000;

/// Runs `plinth bundle …`.
pub(crate) async fn run(verb: Bundle, out: Out) -> Result<Outcome, Failure> {
    match verb {
        Bundle::Create(args) => create(&args, out).await,
        Bundle::Push(args) => push_archive(&args, out).await,
        Bundle::Verify(args) => verify(&args, out).await,
        Bundle::Ls(args) => list(&args, out).await,
    }
}

/// Says what will be in the archive and how large it is, then fetches, then writes. What was fetched stays beside the archive until it is
/// written, so that the same command goes on where a broken one stopped.
async fn create(args: &BundleCreate, out: Out) -> Result<Outcome, Failure> {
    let asked = platforms(&args.platform)?;
    let format = Format::of(&args.file).map_err(|error| refusal(&error.into()))?;
    let channel = channel_of(args).await?;
    load::tell_remarks(&channel, out);
    let executable = program_of(args, &channel)?;
    let kept = kept(&asked, &channel).await?;
    let mut survey = bundle::survey(&channel, &kept).await.map_err(|error| refusal(&error))?;
    let of_platforms = survey.of_platforms(&asked).map_err(|error| refusal(&error))?;
    of_platforms.iter().for_each(|remark| out.talk(&format!("note: {remark}")));
    let staging = staging_of(&args.file);
    let held = bundle::hold(&staging).map_err(|error| refusal(&error.into()))?;
    let packed = packed(executable, &staging).await?;
    if let Some(program) = &packed {
        for item in program.items() {
            survey.bytes += item.bytes.unwrap_or_default();
            survey.items.push(item);
        }
    }
    tell(&survey, args.output, out);
    let mut bundle = bundle::create(&channel, &staging, &kept).await.map_err(|error| {
        let failure = refusal(&error);
        let hint = format!("what is fetched is kept in {}: run the same command again to go on", staging.display());
        if failure.hint.is_some() { failure } else { failure.hint(hint) }
    })?;
    match packed {
        Some(program) => program.add_to(&mut bundle).map_err(|error| refusal(&error))?,
        None => bundle.remarks.push(format!("the channel brings {} itself", program::COMPONENT)),
    }
    let written = {
        let (contents, file) = (bundle.contents.clone(), args.file.clone());
        tokio::task::spawn_blocking(move || contents.write(&file, format)).await
    };
    written
        .map_err(|error| Failure::new(Outcome::Internal, format!("writing the archive ended with {error}")))?
        .map_err(|error| Failure::failed(format!("write {}: {}", args.file.display(), plinth_cluster::chain(&error))))?;
    std::fs::remove_dir_all(&staging).map_err(|error| Failure::failed(format!("remove {}: {error}", staging.display())))?;
    drop(held);
    bundle.remarks.iter().for_each(|remark| out.talk(&format!("note: {remark}")));
    out.talk(&format!("{} resources, {} in {}", bundle.resources, size(bundle.bytes), args.file.display()));
    Ok(Outcome::Done)
}

/// plinth itself goes along, so that a cluster behind the gap can run it (contracts 10), unless the channel brings it. It must be fit for
/// that: looked at before anything large is fetched.
fn program_of(args: &BundleCreate, channel: &Channel) -> Result<Option<PathBuf>, Failure> {
    if channel.lock.components.iter().any(|component| component.name == program::COMPONENT) {
        return Ok(None);
    }
    let own = std::env::current_exe().map_err(|error| Failure::failed(format!("find the running executable: {error}")))?;
    let program = args.program.clone().unwrap_or(own);
    program::check(&program).map_err(|error| {
        let failure = refusal(&error.into());
        if args.program.is_some() { failure } else { failure.hint("--program FILE takes a static build of plinth") }
    })?;
    Ok(Some(program))
}

/// Packed before the list is shown, so that its size is in it.
async fn packed(executable: Option<PathBuf>, staging: &Path) -> Result<Option<Program>, Failure> {
    let Some(executable) = executable else { return Ok(None) };
    let staging = staging.to_owned();
    let packed =
        tokio::task::spawn_blocking(move || Program::pack(&executable, own_image::VERSION, &own_chart::files(), &staging)).await;
    let packed = packed.map_err(|error| Failure::new(Outcome::Internal, format!("packing plinth ended with {error}")))?;
    packed.map(Some).map_err(|error| refusal(&error))
}

/// The platforms that were asked for, else those that the channel's own bundle was made for, else all.
async fn kept(asked: &Kept, channel: &Channel) -> Result<Kept, Failure> {
    if *asked != Kept::default() {
        return Ok(asked.clone());
    }
    bundle::kept_at(channel).await.map_err(|error| refusal(&error))
}

/// The channel, or what a saved lock says of it: then with exactly the descriptors that the lock names.
async fn channel_of(args: &BundleCreate) -> Result<Channel, Failure> {
    let mut options = load::options(&args.source);
    options.verify = args.verify.map(load::policy);
    let selection = load::versions(&args.versions)?;
    let Some(lock) = load::lock_file(Path::new(&args.source.source))? else {
        return load::inspected(&args.source, &selection, &options).await;
    };
    let (source, selection) = bundle::of_lock(&lock, selection).map_err(|error| refusal(&error))?;
    let channel = plinth_releasechannel::inspect(&source, &selection, &options).await.map_err(|error| refusal(&error))?;
    // What was moved is the same content.
    let differences = plinth_releasechannel::difference(&lock, &channel.lock);
    let others = differences.iter().filter(|difference| !matches!(difference.change, Change::Moved { .. }));
    let lines: Vec<String> = others.map(ToString::to_string).collect();
    if lines.is_empty() {
        return Ok(channel);
    }
    Err(Failure::refused(format!("{source} is not what the lock {} says:{}", args.source.source, first_lines(&lines))))
}

async fn push_archive(args: &BundlePush, out: Out) -> Result<Outcome, Failure> {
    let options = load::access(&args.access);
    let target = RepositoryRef::parse(&args.registry).map_err(|error| refusal(&error))?;
    let contents = open(&args.file, options.limits.clone()).await?;
    let registries = Registries::new(&options).map_err(|error| refusal(&error))?;
    let claims = bundle::Claims::read(&contents, &options.limits).await;
    founded(&claims, args)?;
    proven(&claims, &registries, args, out)?;
    if !bundle::has_lock(&contents) {
        out.talk("note: plinth bundle create has not made this archive: it has no lock, so that nothing says what else should be in it");
    }
    tell_referred(&claims, out);
    drop(claims);
    let rules = PushRules { move_tags: args.move_tags, mend: args.mend };
    let pushed = push_by(&contents, &target, &registries, rules).await.map_err(|error| refusal(&error.into()))?;
    pushed.moved.iter().for_each(|moved| out.talk(&format!("moved {moved}")));
    let mended = if pushed.mended > 0 { format!(", {} of them damaged before", pushed.mended) } else { String::new() };
    out.talk(&format!(
        "{} manifests put and {} there already, {} tags set and {} there already, {} blobs sent and {} there already{mended}, to {target}",
        pushed.manifests, pushed.unchanged, pushed.tags, pushed.tags_unchanged, pushed.blobs, pushed.skipped
    ));
    Ok(Outcome::Done)
}

/// Nothing is published that the archive's own descriptors and lock do not say.
fn founded(claims: &Claims<'_>, args: &BundlePush) -> Result<(), Failure> {
    let unfounded = claims.unfounded();
    if unfounded.is_empty() {
        return Ok(());
    }
    let (file, lines) = (args.file.display(), first_lines(&unfounded));
    let message = format!("{file} is not what its components say, and nothing was sent:{lines}");
    Err(Failure::refused(message)
        .hint("somebody has changed the archive, or it is incomplete: make it again with plinth bundle create"))
}

/// With a key nothing is published that it does not prove.
fn proven(claims: &Claims<'_>, registries: &Registries, args: &BundlePush, out: Out) -> Result<(), Failure> {
    let signed = bundle::signed(claims, registries).map_err(|error| refusal(&error))?;
    signed.remarks.iter().for_each(|remark| out.talk(&format!("note: {remark}")));
    if !signed.unproven.is_empty() {
        let (file, lines) = (args.file.display(), first_lines(&signed.unproven));
        let message = format!("{file} is not proven by its signatures, and nothing was sent:{lines}");
        return Err(
            Failure::refused(message).hint("somebody has changed the archive, or the key is another one than it was signed with")
        );
    }
    let proven: Vec<_> = signed.signatures.iter().filter(|signature| signature.is_proven).collect();
    proven.iter().for_each(|signature| out.talk(&format!("signature {}  {}", signature.name, signature.verdict)));
    if proven.is_empty() {
        out.talk("note: nothing proves who made this archive: --key SIGNATURE=PATH proves one of its signatures");
    }
    Ok(())
}

/// An archive by reference takes no content along: whoever pushes one should know.
fn tell_referred(claims: &Claims<'_>, out: Out) {
    let referred = claims.referred();
    if let Some(first) = referred.first() {
        let count = referred.len();
        out.talk(&format!(
            "note: {count} resources are only referred to and are not in the archive, such as {first}: plinth bundle create brings them along"
        ));
    }
}

/// Everything of the lock is looked for, and read to its end.
async fn verify(args: &BundleVerify, out: Out) -> Result<Outcome, Failure> {
    let options = load::access(&args.access);
    let kept = platforms(&args.platform)?;
    let place = if Path::new(&args.place).exists() {
        RepositoryRef::Ctf(args.place.clone().into())
    } else {
        RepositoryRef::parse(&args.place).map_err(|error| refusal(&error))?
    };
    let lock = lock_for(args, &place, &options, out).await?;
    let found = bundle::missing_at(&place, &lock, &kept, &options).await.map_err(|error| refusal(&error))?;
    found.remarks.iter().for_each(|remark| out.talk(&format!("note: {remark}")));
    match args.output {
        Output::Human => {
            found.missing.iter().take(MISSING).for_each(|what| out.data(&format!("missing  {what}")));
            let more = found.missing.len().saturating_sub(MISSING);
            if more > 0 {
                out.talk(&format!("note: {more} more are missing, which -o json lists"));
            }
        }
        Output::Json => out.data(&completeness(&place, &lock, &found).to_string()),
    }
    if !found.missing.is_empty() {
        let (count, LockedRef { name, version }) = (found.missing.len(), &lock.root);
        return Err(Failure::refused(format!("{place} lacks {count} of what {name} {version} names, or has it otherwise")));
    }
    let proven = found.signatures.iter().filter(|signature| signature.is_proven);
    proven.for_each(|signature| out.talk(&format!("signature {}  {}", signature.name, signature.verdict)));
    let program = found.program.as_ref().map(|program| format!(", and {program}")).unwrap_or_default();
    out.talk(&format!("{place} has everything of {} {}{program}", lock.root.name, lock.root.version));
    Ok(Outcome::Done)
}

/// The lock that was given, else the one that the place itself brings.
async fn lock_for(args: &BundleVerify, place: &RepositoryRef, options: &Options, out: Out) -> Result<ReleaseLock, Failure> {
    let Some(path) = &args.lock else {
        let own = bundle::lock_at(place, options).await.map_err(|error| refusal(&error))?;
        let none =
            || Failure::refused(format!("{place} brings no lock")).hint("--lock LOCK names the one that it must be complete for");
        let own = own.ok_or_else(none)?;
        out.talk("note: without --lock it is verified for the lock that it brings itself, which nobody has signed");
        return Ok(own);
    };
    plinth_releasechannel::the_lock_file(path).map_err(|error| {
        let failure = refusal(&error);
        Failure { message: format!("--lock: {}", failure.message), ..failure }
    })
}

fn completeness(place: &RepositoryRef, lock: &ReleaseLock, found: &Completeness) -> Value {
    let signature = |signature: &CheckedSignature| json!({"name": signature.name, "proven": signature.is_proven, "verdict": signature.verdict});
    json!({
        "place": place.to_string(),
        "root": lock.root,
        "missing": found.missing,
        "remarks": found.remarks,
        "signatures": found.signatures.iter().map(signature).collect::<Vec<_>>(),
        "program": found.program.as_ref().map(ToString::to_string),
    })
}

async fn list(args: &BundleList, out: Out) -> Result<Outcome, Failure> {
    let channel = load::held(&args.source).await?;
    load::tell_remarks(&channel, out);
    let kept = kept(&platforms(&args.platform)?, &channel).await?;
    let mut survey = bundle::survey(&channel, &kept).await.map_err(|error| refusal(&error))?;
    let program = bundle::survey_program(&channel, &kept).await.map_err(|error| refusal(&error))?;
    survey.bytes += program.bytes;
    survey.items.extend(program.items);
    tell(&survey, args.output, out);
    Ok(Outcome::Done)
}

fn tell(survey: &Survey, output: Output, out: Out) {
    let known = |bytes: Option<u64>| bytes.map_or_else(|| "unknown".to_owned(), size);
    match output {
        Output::Json => {
            let document = json!({"bytes": survey.bytes, "unknown": survey.unknown, "items": survey.items});
            out.data(&serde_json::to_string_pretty(&document).expect("strings and numbers have a JSON form"));
        }
        Output::Human => {
            let rows: Vec<[String; 5]> = survey
                .items
                .iter()
                .map(|item| {
                    let component = format!("{}:{}", item.component, item.version);
                    [component, item.resource.clone(), item.kind.clone(), known(item.bytes), item.from.clone()]
                })
                .collect();
            table(["COMPONENT", "RESOURCE", "TYPE", "SIZE", "FROM"], &rows).iter().for_each(|line| out.data(line));
            let unknown = if survey.unknown == 0 { String::new() } else { format!(", and {} of unknown size", survey.unknown) };
            out.data(&format!("{} resources, {} without what they share{unknown}", survey.items.len(), size(survey.bytes)));
        }
    }
}

fn platforms(texts: &[String]) -> Result<Kept, Failure> {
    Kept::parse(texts).map_err(|reason| Failure::new(Outcome::Usage, format!("--platform {reason}")))
}

/// Beside the archive, so that it is on the same disk.
fn staging_of(file: &Path) -> PathBuf {
    let mut name = file.file_name().unwrap_or_default().to_owned();
    name.push(".parts");
    file.with_file_name(name)
}

async fn open(file: &Path, limits: Limits) -> Result<Contents, Failure> {
    let path = file.to_owned();
    let opened = tokio::task::spawn_blocking(move || Contents::open(&path, &limits)).await;
    opened
        .map_err(|error| Failure::new(Outcome::Internal, format!("opening {} ended with {error}", file.display())))?
        .map_err(|error| refusal(&error.into()))
}
