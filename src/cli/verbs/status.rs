//! `plinth status`: health as a tree or JSON, and as an exit code.

use std::{collections::BTreeSet, time::Duration};

use jiff::Timestamp;
use plinth_api::ObjectKey;
use plinth_engine::{
    health::{Health, advice},
    ports::ReadError,
};
use plinth_run::{Filter, Outcome, filter::Facts, health::word};
use serde_json::json;

use crate::{
    args::{Global, Output, Status, Why},
    exit::Failure,
    out::Out,
    tree::{Leaf, Tree},
    wire::{Host, connect},
};

/// How often `--wait` looks again where nothing tells it to.
const LOOK: Duration = Duration::from_millis(500);

/// Runs `plinth status`: 0 Ready, 1 failed, 3 not yet.
pub(crate) async fn run(global: &Global, args: &Status, out: Out) -> Result<Outcome, Failure> {
    let filter = Filter::parse(args.filter.as_deref().unwrap_or_default())
        .map_err(|error| Failure::new(Outcome::Usage, format!("--filter: {error}")))?;
    let (host, server) = connect(global).await?;
    let deadline = Timestamp::now() + args.timeout;
    let mut tree = load(&host, &server).await?;
    while args.wait && !matches!(tree.health(), Health::Current | Health::Failed) && Timestamp::now() < deadline {
        tokio::time::sleep(LOOK).await;
        tree = load(&host, &server).await?;
    }
    match args.output {
        Output::Human => human(&tree, &kept(&tree, &filter), out),
        Output::Json => out.data(&document(&tree, &kept(&tree, &filter)).to_string()),
    }
    Ok(match tree.health() {
        Health::Current => Outcome::Done,
        Health::Failed => Outcome::Failed,
        _ => Outcome::Deadline,
    })
}

/// Runs `plinth why KIND/NAME`.
pub(crate) async fn why(global: &Global, args: &Why, out: Out) -> Result<Outcome, Failure> {
    let (host, server) = connect(global).await?;
    let tree = load(&host, &server).await?;
    let key = find(&tree, &args.subject)?;
    let explanation = tree.why(&key);
    match args.output {
        Output::Json => out.data(&json!({"chain": explanation.chain, "cyclic": explanation.cyclic}).to_string()),
        Output::Human => {
            for (depth, cause) in explanation.chain.iter().enumerate() {
                let because = if depth == 0 { "" } else { "because " };
                let words = [&cause.verdict.reason, &cause.verdict.message].map(String::as_str);
                let words = words.into_iter().filter(|text| !text.is_empty()).collect::<Vec<_>>().join(": ");
                out.data(&format!("{}{because}{} is {}  {words}", "  ".repeat(depth), cause.subject, word(cause.verdict.health)));
            }
            // The deepest cause that the catalogue knows.
            let mut known = explanation.chain.iter().rev();
            if let Some(advice) = known.find_map(|cause| advice(&cause.subject.gvk, &cause.verdict)) {
                out.data(&format!("next: {} (docs/why/{}.md)", advice.next, advice.id));
            }
        }
    }
    Ok(Outcome::Done)
}

async fn load(host: &Host, server: &str) -> Result<Tree, Failure> {
    Tree::load("default", host.0.as_ref()).await.map_err(|error| unreadable(&error, server))
}

/// A read that failed: what is not permitted is refused, what does not answer can be tried again.
pub(crate) fn unreadable(error: &ReadError, server: &str) -> Failure {
    let outcome = match error {
        ReadError::Unavailable(_) => Outcome::Deadline,
        ReadError::Forbidden { .. } | ReadError::NotServed(_) => Outcome::Refused,
    };
    Failure::new(outcome, format!("read the platform on {server}: {error}"))
}

/// `KIND/NAME`, with the group where several kinds share a name, and the namespace where several objects do.
fn find(tree: &Tree, subject: &str) -> Result<ObjectKey, Failure> {
    let (kind, name) =
        subject.split_once('/').ok_or_else(|| Failure::new(Outcome::Usage, format!("{subject}: write KIND/NAME")))?;
    let is_kind =
        |key: &ObjectKey| key.gvk.kind.eq_ignore_ascii_case(kind) || key.gvk.group_kind().to_string().eq_ignore_ascii_case(kind);
    let is_name =
        |key: &ObjectKey| key.name == name || format!("{}/{}", key.namespace.as_deref().unwrap_or_default(), key.name) == name;
    let found: Vec<&ObjectKey> = tree.0.keys().filter(|key| is_kind(key) && is_name(key)).collect();
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
    for (key, leaf) in &tree.0 {
        let kind = key.gvk.group_kind().to_string();
        let facts = Facts {
            name: &key.name,
            kind: &kind,
            plane: &key.cluster.0,
            namespace: key.namespace.as_deref().unwrap_or_default(),
            state: word(leaf.verdict.health),
            reason: &leaf.verdict.reason,
        };
        let mut next = filter.matches(&facts).then_some(key);
        while let Some(key) = next.filter(|key| kept.insert((*key).clone())) {
            next = tree.0.get(key).and_then(|leaf| leaf.parent.as_ref());
        }
    }
    kept
}

fn human(tree: &Tree, kept: &BTreeSet<ObjectKey>, out: Out) {
    if tree.0.is_empty() {
        out.data("there is no platform on this cluster");
        return;
    }
    let ready = tree.0.values().filter(|leaf| leaf.verdict.health == Health::Current).count();
    out.data(&format!("{}  {ready} of {} ready", word(tree.health()), tree.0.len()));
    tree.unverified().iter().for_each(|what| out.data(&format!("unverified   {what}")));
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
    out.data(&format!("{:<12} {}{key}{}", word(verdict.health), "  ".repeat(depth), detail.trim_end_matches(": ")));
    for child in &leaf.children {
        if let Some(leaf) = tree.0.get(child) {
            branch(tree, kept, (child, leaf), depth + 1, out);
        }
    }
}

fn document(tree: &Tree, kept: &BTreeSet<ObjectKey>) -> serde_json::Value {
    let shown = tree.0.iter().filter(|(key, _)| kept.contains(*key));
    let objects: Vec<_> =
        shown.map(|(key, leaf)| json!({"subject": key, "parent": leaf.parent, "verdict": leaf.verdict})).collect();
    json!({"health": tree.health(), "unverified": tree.unverified(), "objects": objects})
}
