//! `plinth rehearse`: the whole bring-up in the embedded control plane, as fast as it can, and what would be missing.

use std::{collections::BTreeMap, sync::Arc};

use plinth_api::Scenario;
use plinth_bootstrap::{
    ports::Always,
    rehearsal::{self, Trouble, Unready, Verdict},
};
use plinth_cluster::embedded::act::ImageList;
use plinth_run::{Outcome, Sink, duration, health::word, memory::VecJournal};
use tokio_util::sync::CancellationToken;

use super::up::{self, Loaded};
use crate::{
    args::{Output, Rehearse, RunOutput},
    exit::Failure,
    load,
    out::Out,
    present::Teller,
    wire::{AT_ONCE, Plane, Room, Session, interrupted, listen},
};

/// Runs `plinth rehearse`.
pub(crate) async fn run(args: &Rehearse, out: Out) -> Result<Outcome, Failure> {
    let mut loaded = up::load_with(&args.source, &args.selection, BTreeMap::new(), args.timeout, out).await?;
    loaded.settings.timeout = args.timeout;
    // The plane itself says when it is over; until then, whatever else is missing may still be found.
    loaded.settings.grace = args.timeout;
    let scenario = load::scenario(args.scenario.as_deref(), loaded.scenario.as_deref())?;
    let plane = Plane::open(scenario.clone(), AT_ONCE, ImageList::new(rehearsal::images(&loaded.content)));
    let sinks: Vec<Arc<dyn Sink>> = match args.output {
        Output::Human => vec![Arc::new(Teller::new(RunOutput::Lines, out))],
        Output::Json => Vec::new(),
    };
    let platform = &loaded.settings.platform;
    let (journal, delivery) = (Arc::new(VecJournal::default()), loaded.delivery(&args.source));
    let mut session = Session::open(plane.host(), journal, sinks, platform, delivery, listen()?)?;
    if let Some(rules) = &scenario.permissions {
        session.ports.access = plane.access(rules).await?;
    }
    let (outcome, verdict) = rehearse(&loaded, &session, &plane).await?;
    if let Some(verdict) = verdict {
        match args.output {
            Output::Human => human(&verdict).iter().for_each(|line| out.data(line)),
            Output::Json => out.data(&serde_json::to_string_pretty(&verdict).expect("a verdict is made of texts and numbers")),
        }
    }
    Ok(outcome)
}

async fn rehearse(loaded: &Loaded, session: &Session, plane: &Plane) -> Result<(Outcome, Option<Verdict>), Failure> {
    let request = loaded.request(None);
    let room = Room { plane, ports: &session.ports };
    let mut found = None;
    let rehearsing = async {
        let verdict = rehearsal::rehearse(&request, &session.ports, &Always("rehearsal".to_owned()), &room).await;
        let outcome = verdict.outcome;
        found = Some(verdict);
        outcome
    };
    let outcome = interrupted(session, CancellationToken::new(), rehearsing).await;
    session.ports.control.stop().await;
    Ok((outcome, found))
}

/// The verdict for people: what is missing, one a line, and how `up` would end.
fn human(verdict: &Verdict) -> Vec<String> {
    let mut lines = Vec::new();
    for image in &verdict.images {
        lines.push(format!("missing image  {}  needed by {}", image.image, image.needed_by.join(", ")));
    }
    for kind in &verdict.kinds {
        let from = kind.expected_from.as_ref().map(|from| format!("; expected from {from}")).unwrap_or_default();
        lines.push(format!("missing kind  {}  nobody brings it{from}", kind.kind));
    }
    lines.extend(verdict.permissions.iter().map(|permission| format!("missing permission  {permission}")));
    for open in &verdict.deferred {
        let kinds: Vec<String> = open.missing.iter().map(ToString::to_string).collect();
        lines.push(format!("never resolved  {} node {} waits for {}", open.subject, open.node, kinds.join(", ")));
    }
    let lacking = |trouble: &Trouble| format!("lacking  {}  {}: {}", trouble.subject, trouble.reason, trouble.message);
    lines.extend(verdict.lacking.iter().map(lacking));
    let unready = |unready: &Unready| format!("{}  {}  {}", word(unready.health), unready.subject, unready.message);
    lines.extend(verdict.unready.iter().map(unready));
    lines.extend(verdict.warnings.iter().map(|warning| format!("warning  {warning}")));
    let took = duration::short(jiff::SignedDuration::from_millis(i64::try_from(verdict.took_ms).unwrap_or(i64::MAX)));
    let counts = format!("{} of {} objects ready in {took}", verdict.ready, verdict.total);
    lines.push(if verdict.is_complete() {
        format!("rehearsed  nothing is missing; {counts}")
    } else {
        format!("rehearsed  up would end with exit code {} ({}); {counts}", verdict.outcome.exit_code(), verdict.outcome)
    });
    lines
}

impl Loaded {
    /// The scenario of its channel; the one without rules where there is none.
    pub(super) fn own_scenario(&self) -> Result<Scenario, Failure> {
        load::scenario(None, self.scenario.as_deref())
    }
}
