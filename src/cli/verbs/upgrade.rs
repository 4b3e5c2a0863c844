//! `plinth upgrade` and `plinth rollback`: another release of the channel that the cluster's platform came from.
//!
//! What is to run next is read from the cluster alone: the Platform, or what the last run left of what was asked for. Where a controller
//! keeps the platform it does the move, and this process only asks it; else this process moves it, by the Lease.

mod ask;
mod goal;

use std::{sync::Arc, time::Duration};

use plinth_bootstrap::{Approver, Content, plan::Planned, ports::Always, runner, settings::Way};
use plinth_releasechannel::difference;
use plinth_run::{Outcome, Sink, Verb, memory::VecJournal};
use tokio_util::sync::CancellationToken;

pub(super) use self::goal::Aim;
use self::goal::Goal;
use super::{
    told,
    up::{self, Loaded},
};
use crate::{
    args::{AccessArgs, Global, MoveArgs, Rollback, SelectionArgs, SourceArgs, Upgrade, VersionArgs},
    exit::Failure,
    out::Out,
    platform,
    present::{Talk, Teller},
    wire::{self, AskInText, Host, Session, ShowOnly, Turn, before_the_run, connect, interrupted, listen},
};

/// Runs `plinth upgrade`.
pub(crate) async fn run(global: &Global, args: &Upgrade, out: Out) -> Result<Outcome, Failure> {
    let aim = args.to.clone().map_or(Aim::Newest, Aim::Version);
    go(global, &args.how, (aim, args.allow_breaking_changes), out).await
}

/// Runs `plinth rollback`.
pub(crate) async fn back(global: &Global, args: &Rollback, out: Out) -> Result<Outcome, Failure> {
    // The kinds that were there before are taken again, whatever they lack.
    go(global, &args.how, (Aim::Before, true), out).await
}

/// A release that is not moved to: the one that runs now, or the one that the Platform asks for.
pub(super) async fn standing(
    host: &Host,
    platform: &str,
    aim: Aim,
    (access, patience): (&AccessArgs, Duration),
    out: Out,
) -> Result<Loaded, Failure> {
    let goal = goal::find(host, platform, aim, access).await?.expect("the release that is there needs no other version");
    let mut loaded = load(host, &goal, (access, patience), out).await?;
    loaded.settings.hands_over = goal.is_kept;
    loaded.settings.asked = None;
    Ok(loaded)
}

async fn go(global: &Global, how: &MoveArgs, (aim, allow_breaking): (Aim, bool), out: Out) -> Result<Outcome, Failure> {
    let only_shows = ShowOnly::is_needed(how.apply);
    let signals = listen()?;
    let (host, server) = before_the_run(&signals, connect(global)).await?;
    host.give_up_after(how.timeout);
    let teller: Arc<dyn Sink> = Arc::new(Teller::of_run(how.output, out));
    let named = how.which.platform.as_deref();
    let found = before_the_run(&signals, platform::await_it(named, &host, how.timeout, teller.as_ref())).await?;
    let name = found.ok_or_else(|| platform::none(named, &host.1))?;
    let Some(goal) = before_the_run(&signals, goal::find(&host, &name, aim, &how.access)).await? else {
        out.talk(&format!("{name} runs the newest release that it may: there is nothing to move to"));
        return Ok(Outcome::Done);
    };
    let mut loaded = before_the_run(&signals, load(&host, &goal, (&how.access, how.timeout), out)).await?;
    loaded.settings.timeout = how.timeout;
    loaded.settings.allow_breaking = allow_breaking;
    tell(&goal, &loaded.content, out);
    host.give_up_after(how.timeout);
    let approver: &dyn Approver = if how.apply { &Always("--apply".to_owned()) } else { &AskInText::new(out, global) };
    if goal.is_kept {
        loaded.settings.hands_over = true;
        loaded.settings.definitions.clear();
    }
    if goal.is_kept || only_shows {
        let journal = Arc::new(VecJournal::default());
        let talk: Arc<dyn Sink> = Arc::new(Talk::new(out));
        let delivery = delivery(&loaded, &how.access, Turn::Alone);
        let session = Session::open(host.clone(), journal, vec![talk], &name, delivery, signals)?;
        if only_shows {
            return shown(&session, &loaded, goal.is_back, out).await;
        }
        return ask::move_it(&host, &session, &goal, &loaded, (approver, how.timeout), out).await;
    }
    let journal = wire::journal(how.journal.as_deref(), &name, &server)?;
    let leaves = before_the_run(&signals, async { Ok(wire::leaves(&host).await) }).await?;
    let turn = Turn::Lease { break_lock: how.break_lock, platform: Some(name.clone()) };
    let session = Session::open(
        host,
        journal,
        vec![teller],
        &name,
        wire::Delivery { leaves, ..delivery(&loaded, &how.access, turn) },
        signals,
    )?;
    let outcome = up::bring_up(&loaded, &session, approver, CancellationToken::new()).await;
    session.tell(outcome, out);
    Ok(outcome)
}

/// Plans, and shows it.
async fn shown(session: &Session, loaded: &Loaded, is_back: bool, out: Out) -> Result<Outcome, Failure> {
    let (outcome, planned) = planned(session, loaded).await;
    let Some(planned) = planned else {
        session.tell(outcome, out);
        return Ok(outcome);
    };
    told(&planned.plan).iter().for_each(|(role, line)| out.told(*role, line));
    Err(ShowOnly::ended(if is_back { "rollback" } else { "upgrade" }))
}

/// What differs between what is to run now and what is to run then, component by component.
fn tell(goal: &Goal, content: &Content, out: Out) {
    out.talk(&goal.told(&content.lock.root.version));
    let before = goal.from.clone().unwrap_or_default();
    difference(&before, &content.lock).iter().for_each(|difference| out.talk(&format!("  {difference}")));
}

/// Loads the release as `up` loads a Platform file, and holds a release of before against its lock.
async fn load(host: &Host, goal: &Goal, (access, patience): (&AccessArgs, Duration), out: Out) -> Result<Loaded, Failure> {
    let failed = |error: std::io::Error| Failure::failed(format!("write the Platform that is asked for into a file: {error}"));
    let folder = tempfile::tempdir().map_err(failed)?;
    let file = folder.path().join("platform.yaml");
    std::fs::write(&file, goal.document().to_string()).map_err(failed)?;
    let source = SourceArgs { source: file.display().to_string(), access: access.clone() };
    let selection =
        SelectionArgs { distribution: None, versions: VersionArgs::default(), namespace: None, values: None, verify: None };
    let keys = wire::keys(host, &source.source).await?;
    let mut loaded = up::load_with(&source, &selection, keys, patience, out).await?;
    goal.holds(&loaded.content.lock)?;
    loaded.settings.source = format!("{}:{}", loaded.content.lock.root.name, loaded.content.lock.root.version);
    loaded.settings.asked = Some(goal.asked.clone());
    (loaded.settings.way, loaded.settings.verb) =
        if goal.is_back { (Way::Back, Verb::Rollback) } else { (Way::On, Verb::Upgrade) };
    Ok(loaded)
}

fn delivery(loaded: &Loaded, access: &AccessArgs, turn: Turn) -> wire::Delivery {
    let source = SourceArgs { source: String::new(), access: access.clone() };
    wire::Delivery { turn, hands_over: false, ..loaded.delivery(&source) }
}

/// Plans, and tells what was found; `None` where the plan is refused.
pub(super) async fn planned(session: &Session, loaded: &Loaded) -> (Outcome, Option<Planned>) {
    let request = loaded.request(None);
    let mut made = None;
    let planning = async {
        let (outcome, planned) = runner::plan(&request, &session.ports, false).await;
        made = planned;
        outcome
    };
    let outcome = interrupted(session, CancellationToken::new(), planning).await;
    (outcome, made)
}
