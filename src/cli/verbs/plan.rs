//! `plinth plan`: what `up` would do. Writes nothing, not even a journal.

use std::{sync::Arc, time::Duration};

use plinth_api::rbac::{PolicyRule, Rights};
use plinth_bootstrap::runner;
use plinth_run::{Action, Change, Outcome, Plan as Planned, Sink, memory::VecJournal};
use plinth_tui::{rows::role_of_action, theme::Role};
use tokio_util::sync::CancellationToken;

use super::{install, own_image::Purpose, up};
use crate::{
    args::{Global, Output, Plan},
    exit::Failure,
    out::Out,
    present::{Answer, Talk},
    saved,
    wire::{self, Session, before_the_run, connect, interrupted, listen},
};

/// Runs `plinth plan`.
pub(crate) async fn run(global: &Global, args: &Plan, out: Out) -> Result<Outcome, Failure> {
    let signals = listen()?;
    let (host, _) = before_the_run(&signals, connect(global)).await?;
    host.give_up_after(args.timeout);
    let keys = before_the_run(&signals, wire::keys(&host, &args.source.source)).await?;
    let mut loaded = before_the_run(&signals, up::load_with(&args.source, &args.selection, keys, Duration::MAX, out)).await?;
    loaded.settings.timeout = args.timeout;
    loaded.settings.take_over = args.take_over;
    let chosen = install::choose(&args.controller, (&args.source, &args.selection), &mut loaded, Purpose::Plan, out);
    before_the_run(&signals, chosen).await?;
    let talk: Arc<dyn Sink> = Arc::new(Talk::new(out));
    let delivery = loaded.delivery(&args.source);
    // Resolving took its own time.
    host.give_up_after(args.timeout);
    let journal = Arc::new(VecJournal::default());
    let session = Session::open(host, journal, vec![talk], &loaded.settings.platform, delivery, signals)?;
    let request = loaded.request(None);
    let mut made = None;
    let planning = async {
        let (outcome, planned) = runner::plan(&request, &session.ports, args.detailed_exitcode).await;
        made = planned.map(|planned| planned.plan);
        outcome
    };
    let outcome = interrupted(&session, CancellationToken::new(), planning).await;
    let Some(plan) = made else {
        tell_reason(&session, args.output, out);
        return Ok(outcome);
    };
    args.file.iter().try_for_each(|file| saved::write(&plan, file))?;
    match args.output {
        Output::Human => told(&plan).iter().for_each(|(role, line)| out.told(*role, line)),
        Output::Json => out.data(&serde_json::to_string_pretty(&plan).expect("a plan is made of strings, numbers and lists")),
    }
    Ok(outcome)
}

/// Why there is no plan, for whoever reads standard output as data: [`Talk`] has said it to people.
fn tell_reason(session: &Session, output: Output, out: Out) {
    let finished = session.log.read(|state| state.finished.clone());
    if let (Output::Json, Some(finished)) = (output, finished) {
        let failure = Failure { outcome: finished.outcome, message: finished.message, hint: finished.hint };
        Answer::Document.refuse(&failure, out);
    }
}

/// The plan for people: stages with their changes, then what is deferred, then the counts.
pub(crate) fn told(plan: &Planned) -> Vec<(Role, String)> {
    let plain = |line| (Role::Plain, line);
    let title = format!("plan for {} {} from {}", plan.distribution.name, plan.distribution.version, plan.source);
    let mut lines = vec![(Role::Heading, title)];
    lines.extend(plan.unverified.iter().map(|what| (Role::Waiting, format!("unverified  {what}"))));
    for stage in &plan.stages {
        lines.push((Role::Heading, format!("stage {}  {}  (until {})", stage.id, stage.title, stage.until)));
        lines.extend(stage.changes.iter().map(|one| (role_of_action(one.action), change(one))));
    }
    for deferred in &plan.deferred {
        lines.push((Role::Waiting, format!("deferred  {} node {} {}", deferred.subject, deferred.node, deferred.told())));
    }
    lines.extend(plan.rights.iter().flat_map(rights).map(plain));
    let counts: Vec<String> = [Action::Create, Action::Configure, Action::Unchanged, Action::Delete, Action::Defer]
        .into_iter()
        .map(|action| format!("{} {}", plan.count(action), action.verb()))
        .collect();
    lines.push(plain(counts.join(", ")));
    lines
}

/// What the controller may do where it runs in the cluster: the rules of its roles, what they lift it to, and what they leave out.
fn rights(rights: &Rights) -> Vec<String> {
    let title = "rights of the controller, where it runs in the cluster".to_owned();
    std::iter::once(title).chain(rules(rights)).collect()
}

/// The rules, what they lift to, and what they leave out, a line each.
pub(super) fn rules(rights: &Rights) -> Vec<String> {
    let mut lines = Vec::new();
    let mut rules = |place: &str, rules: &[PolicyRule]| lines.extend(rules.iter().map(|rule| format!("  {place}: {rule}")));
    rules("everywhere", &rights.cluster);
    for (namespace, own) in &rights.namespaces {
        rules(&format!("in namespace {namespace}"), own);
    }
    lines.extend(rights.lifts.iter().map(|lift| format!("  lift: {lift}")));
    lines.extend(rights.open.iter().map(|open| format!("  not included: {open}")));
    lines
}

fn change(change: &Change) -> String {
    let mut line = format!("  {:<10} {}", change.action.verb(), change.subject);
    if !change.fields.is_empty() {
        line.push_str(&format!("  changes {}", change.fields.join(", ")));
    }
    if let Some(note) = &change.note {
        line.push_str(&format!("  ({note})"));
    }
    line
}
