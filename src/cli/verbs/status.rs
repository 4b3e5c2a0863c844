//! `plinth status` and `plinth why`: health as a tree or JSON, as an exit code, and explained.

mod page;
mod removal;

use std::{collections::BTreeSet, time::Duration};

use jiff::Timestamp;
use plinth_api::ObjectKey;
use plinth_bootstrap::{
    drift::{self, Drift},
    preflight::Deadline,
};
use plinth_engine::{
    health::{Cause, Explanation, Health},
    ports::ReadError,
};
use plinth_manager::SystemClock;
use plinth_run::{
    Filter, Outcome, duration,
    filter::Facts,
    health::word,
    next::{self, Link},
};
use plinth_tui::log::role_of;
use serde_json::json;

use page::Page;

use super::diff;
use crate::{
    args::{Global, Output, Status, Why},
    exit::Failure,
    follow::Follower,
    out::Out,
    platform::{self, Unclear},
    present::{Attempts, Talk},
    tree::{Leaf, Tree},
    wire::{Host, connect},
};

/// How soon `--wait` looks again where no watch tells it to.
const LOOK: Duration = Duration::from_millis(500);

/// How long nothing may change before that is said.
const HEARTBEAT: Duration = Duration::from_mins(1);

/// Runs `plinth status`: 0 Ready, 1 failed, 3 not yet.
pub(crate) async fn run(global: &Global, args: &Status, out: Out) -> Result<Outcome, Failure> {
    let filter = Filter::parse(args.filter.as_deref().unwrap_or_default())
        .map_err(|error| Failure::new(Outcome::Usage, format!("--filter: {error}")))?;
    let (host, server) = connect(global).await?;
    host.give_up_after(args.timeout);
    let asked = args.which.platform.as_deref();
    let found = if args.wait { settled(asked, &host, args.timeout, out).await } else { load(asked, &host).await };
    let (name, tree) = found.map_err(|unclear| unclear.failure(&host.1))?;
    let removal = match &name {
        Some(name) => removal::unfinished(name, &tree, &host, &server).await,
        None => None,
    };
    let drift = match &name {
        Some(name) => drifted(name, &host, out).await,
        None => Vec::new(),
    };
    let (about, shown) = (About { name, removal, drift }, kept(&tree, &filter));
    match args.output {
        Output::Human => human(&about, &tree, &shown, out),
        Output::Json => out.data(&document(&about, &tree, &shown).to_string()),
    }
    Ok(match tree.health() {
        Health::Current => Outcome::Done,
        Health::Failed => Outcome::Failed,
        _ => Outcome::Deadline,
    })
}

/// Looks until the platform is ready or has failed, or the time is up: first at the server, then whenever a watch tells of a change.
/// A server that does not answer may come back until then.
async fn settled(asked: Option<&str>, host: &Host, timeout: Duration, out: Out) -> Result<Named, Unclear> {
    let clock = SystemClock;
    let deadline = Deadline::after(&clock, timeout);
    let talk = Talk::new(out);
    let mut attempts = Attempts::new("read the platform", &talk);
    let mut follower: Option<Follower> = None;
    loop {
        let found = match &mut follower {
            Some(follower) => {
                follower.tree().await.map_err(Unclear::from).map(|tree| (Some(follower.platform().to_owned()), tree))
            }
            None => load(asked, host).await,
        };
        let is_over = match &found {
            Ok((_, tree)) => matches!(tree.health(), Health::Current | Health::Failed),
            Err(unclear) => !unclear.may_pass(),
        };
        let left = deadline.left(&clock);
        if is_over || left.is_zero() {
            return found;
        }
        match &found {
            Ok((name, _)) => {
                attempts = Attempts::new("read the platform", &talk);
                if let (None, Some(name)) = (&follower, name) {
                    // It watches nothing before it has looked, and so would hear of nothing.
                    follower = Some(Follower::new(host.clone(), name));
                    continue;
                }
                let moved = async {
                    match &follower {
                        Some(follower) => follower.moved().await,
                        // Nobody tells of a platform that is not there.
                        None => tokio::time::sleep(LOOK).await,
                    }
                };
                let silence = tokio::time::timeout(left.min(HEARTBEAT), moved).await;
                if let (Err(_), Ok((_, tree))) = (silence, &found)
                    && left > HEARTBEAT
                {
                    out.talk(&still_waiting(tree, Timestamp::now()));
                }
            }
            Err(unclear) => {
                attempts.vain(unclear.failure(&host.1).message, LOOK);
                follower = None;
                tokio::time::sleep(LOOK).await;
            }
        }
    }
}

/// What is said where nothing changes for long: a silent job is killed by those who watch it (ux.md lesson 6).
fn still_waiting(tree: &Tree, now: Timestamp) -> String {
    let ready = tree.leaves.values().filter(|leaf| leaf.verdict.health == Health::Current).count();
    let open = tree.leaves.iter().filter(|(_, leaf)| leaf.verdict.health != Health::Current);
    let longest = open.min_by_key(|(_, leaf)| leaf.since.unwrap_or(now)).map(|(key, leaf)| {
        let Leaf { verdict, since, .. } = leaf;
        let since = since.map(|since| format!(" {}", duration::short(now.duration_since(since)))).unwrap_or_default();
        let why = [verdict.reason.as_str(), &verdict.message].into_iter().filter(|text| !text.is_empty()).collect::<Vec<_>>();
        format!("  longest: {} {}{since}", key.named(), why.join(": "))
    });
    format!("still waiting  {ready} of {} ready{}", tree.leaves.len(), longest.unwrap_or_default())
}

/// Runs `plinth why KIND/NAME`, or `plinth why PAGE`.
pub(crate) async fn why(global: &Global, args: &Why, out: Out) -> Result<Outcome, Failure> {
    if let Some(page) = Page::find(&args.subject) {
        match args.output {
            Output::Json => out.data(&page.document().to_string()),
            Output::Human => page.lines().iter().for_each(|line| out.data(line)),
        }
        return Ok(Outcome::Done);
    }
    let (host, _) = connect(global).await?;
    let (name, tree) = load(args.which.platform.as_deref(), &host).await.map_err(|unclear| unclear.failure(&host.1))?;
    if name.is_none() || tree.health() == Health::NotFound {
        return Err(platform::none(name.as_deref(), &host.1));
    }
    let key = find(&tree, &args.subject)?;
    let explanation = tree.why(&key);
    let next = next_step(&explanation);
    match args.output {
        Output::Json => {
            out.data(&json!({"chain": explanation.chain, "cyclic": explanation.cyclic, "next": next}).to_string());
        }
        Output::Human => {
            for (depth, cause) in explanation.chain.iter().enumerate() {
                let because = if depth == 0 { "" } else { "because " };
                let words = [&cause.verdict.reason, &cause.verdict.message].map(String::as_str);
                let words = words.into_iter().filter(|text| !text.is_empty()).collect::<Vec<_>>().join(": ");
                let (health, indent) = (cause.verdict.health, "  ".repeat(depth));
                out.told(role_of(health), &format!("{indent}{because}{} is {}  {words}", cause.subject, word(health)));
            }
            if let Some(next) = next {
                out.data(&format!("next: {next}"));
            }
        }
    }
    Ok(Outcome::Done)
}

/// What helps, as the strip of the terminal says it.
pub(crate) fn next_step(explanation: &Explanation<ObjectKey>) -> Option<String> {
    let is_well = explanation.chain.first().is_none_or(|own| own.verdict.health == Health::Current);
    if is_well {
        return None;
    }
    let chain: Vec<Link<'_>> = explanation.chain.iter().map(link).collect();
    next::next_step(&chain, false)
}

fn link(cause: &Cause<ObjectKey>) -> Link<'_> {
    Link { key: &cause.subject, reason: &cause.verdict.reason, message: &cause.verdict.message }
}

/// What there is of a platform, with its name where there is one.
type Named = (Option<String>, Tree);

async fn load(asked: Option<&str>, host: &Host) -> Result<Named, Unclear> {
    let name = platform::find(asked, host.0.as_ref()).await?;
    let tree = match &name {
        Some(name) => Tree::load(name, host.0.as_ref(), host).await?,
        None => Tree::default(),
    };
    Ok((name, tree))
}

/// A read that failed: what is not permitted is refused, what does not answer can be tried again.
pub(crate) fn unreadable(error: &ReadError, called: &str) -> Failure {
    cannot_read("the platform", error, called)
}

/// The same for another thing.
pub(crate) fn cannot_read(what: &str, error: &ReadError, called: &str) -> Failure {
    let outcome = match error {
        ReadError::Unavailable(_) => Outcome::Deadline,
        ReadError::Forbidden { .. } | ReadError::Unauthenticated(_) | ReadError::NotServed(_) => Outcome::Refused,
    };
    Failure::new(outcome, format!("read {what} on {called}: {error}"))
}

/// `KIND/NAME`, with the group where several kinds share a name, and the namespace where several objects do.
fn find(tree: &Tree, subject: &str) -> Result<ObjectKey, Failure> {
    let (kind, name) = subject
        .split_once('/')
        .ok_or_else(|| Failure::new(Outcome::Usage, format!("{subject}: write KIND/NAME, or a page's name")))?;
    let is_kind =
        |key: &ObjectKey| key.gvk.kind.eq_ignore_ascii_case(kind) || key.gvk.group_kind().to_string().eq_ignore_ascii_case(kind);
    let is_name =
        |key: &ObjectKey| key.name == name || format!("{}/{}", key.namespace.as_deref().unwrap_or_default(), key.name) == name;
    let found: Vec<&ObjectKey> = tree.leaves.keys().filter(|key| is_kind(key) && is_name(key)).collect();
    match found.as_slice() {
        [key] => Ok((*key).clone()),
        [] => Err(Failure::refused(format!("{subject} is not a part of the platform")).hint("plinth status lists its objects")),
        several => {
            let names: Vec<String> = several.iter().map(ToString::to_string).collect();
            Err(Failure::refused(format!("{subject} may be {}", names.join(" or "))))
        }
    }
}

/// Objects that the filter lets through, and whatever they lie below.
fn kept(tree: &Tree, filter: &Filter) -> BTreeSet<ObjectKey> {
    let mut kept = BTreeSet::new();
    for (key, leaf) in &tree.leaves {
        let kind = key.gvk.group_kind().to_string();
        let facts = Facts {
            name: &key.name,
            kind: &kind,
            plane: &key.cluster.0,
            cluster: &key.cluster.0,
            namespace: key.namespace.as_deref().unwrap_or_default(),
            state: word(leaf.verdict.health),
            reason: &leaf.verdict.reason,
        };
        let mut next = filter.matches(&facts).then_some(key);
        while let Some(key) = next.filter(|key| kept.insert((*key).clone())) {
            next = tree.leaves.get(key).and_then(|leaf| leaf.parent.as_ref());
        }
    }
    kept
}

/// What others changed of what the loop made. Who may not read all of that is told, and sees the rest.
async fn drifted(name: &str, host: &Host, out: Out) -> Vec<Drift> {
    match drift::below(name, host.0.as_ref(), host).await {
        Ok(found) => found,
        Err(error) => {
            out.talk(&format!("note: drift is not known: {error}"));
            Vec::new()
        }
    }
}

/// What is said of the platform as a whole.
struct About {
    name: Option<String>,
    /// A removal that has not ended.
    removal: Option<String>,
    /// What the loop made and others changed.
    drift: Vec<Drift>,
}

fn human(about: &About, tree: &Tree, kept: &BTreeSet<ObjectKey>, out: Out) {
    let named = about.name.as_ref().map(|name| format!(" {name}")).unwrap_or_default();
    if tree.health() == Health::NotFound {
        out.data(&format!("there is no platform{named} on this cluster"));
        return;
    }
    let ready = tree.leaves.values().filter(|leaf| leaf.verdict.health == Health::Current).count();
    let whole = format!("{}  platform{named}  {ready} of {} ready", word(tree.health()), tree.leaves.len());
    out.told(role_of(tree.health()), &whole);
    tree.unverified().iter().for_each(|what| out.data(&format!("unverified   {what}")));
    if let Some(removal) = &about.removal {
        out.data(&format!("not removed to the end: {removal}"));
    } else if let Some(lacks) = &tree.begun {
        out.data(&format!(
            "not brought up, or not removed to the end: {lacks}; plinth up brings it up, plinth down --apply removes it"
        ));
    }
    for drift in &about.drift {
        out.data(&format!("drift        {}", drift.subject));
        drift.fields.iter().for_each(|field| out.data(&format!("           {}", diff::line(field))));
    }
    let roots: Vec<(&ObjectKey, &Leaf)> = tree.roots().collect();
    roots.into_iter().for_each(|(key, leaf)| branch(tree, kept, (key, leaf), 0, out));
}

fn branch(tree: &Tree, kept: &BTreeSet<ObjectKey>, (key, leaf): (&ObjectKey, &Leaf), depth: usize, out: Out) {
    if !kept.contains(key) {
        return;
    }
    let verdict = &leaf.verdict;
    let detail =
        if verdict.health == Health::Current { String::new() } else { format!("  {}: {}", verdict.reason, verdict.message) };
    let line = format!("{:<12} {}{key}{}", word(verdict.health), "  ".repeat(depth), detail.trim_end_matches(": "));
    out.told(role_of(verdict.health), &line);
    for child in &leaf.children {
        if let Some(leaf) = tree.leaves.get(child) {
            branch(tree, kept, (child, leaf), depth + 1, out);
        }
    }
}

fn document(about: &About, tree: &Tree, kept: &BTreeSet<ObjectKey>) -> serde_json::Value {
    let shown = tree.leaves.iter().filter(|(key, _)| kept.contains(*key));
    let objects: Vec<_> =
        shown.map(|(key, leaf)| json!({"subject": key, "parent": leaf.parent, "verdict": leaf.verdict})).collect();
    json!({
        "platform": about.name,
        "health": tree.health(),
        "lacks": tree.begun,
        "removal": about.removal,
        "unverified": tree.unverified(),
        "drift": about.drift,
        "objects": objects,
    })
}

#[cfg(test)]
mod tests {
    use std::collections::BTreeMap;

    use jiff::SignedDuration;
    use plinth_api::{ClusterKey, GroupVersionKind};
    use plinth_engine::health::Verdict;

    use super::*;

    #[test]
    fn a_long_wait_names_who_waits_longest() {
        let key = |name: &str| ObjectKey {
            cluster: ClusterKey::host(),
            gvk: GroupVersionKind::new("apps", "v1", "Deployment"),
            namespace: None,
            name: name.to_owned(),
        };
        let leaf = |health, seconds| Leaf {
            verdict: Verdict::new(health, "NotAvailable", "0 of 1 replicas"),
            parent: None,
            since: Some(Timestamp::UNIX_EPOCH + SignedDuration::from_secs(seconds)),
            is_there: true,
            children: Vec::new(),
            unverified: None,
            waits_for: Vec::new(),
        };
        let leaves = [("a", leaf(Health::Current, 0)), ("b", leaf(Health::InProgress, 90)), ("c", leaf(Health::InProgress, 10))];
        let leaves: BTreeMap<_, _> = leaves.into_iter().map(|(name, leaf)| (key(name), leaf)).collect();
        let line = still_waiting(&Tree { leaves, ..Tree::default() }, Timestamp::UNIX_EPOCH + SignedDuration::from_secs(200));
        assert_eq!(line, "still waiting  1 of 3 ready  longest: Deployment.apps/c NotAvailable: 0 of 1 replicas 3m10s");
    }
}
