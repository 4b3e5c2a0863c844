//! `plinth diff`: what of the platform is not as its release wants it, field by field, and who holds it so.

use std::sync::Arc;

use plinth_bootstrap::{
    drift::{self, Drift, Field},
    settings::Purpose,
};
use plinth_run::{Action, Outcome, Sink, memory::VecJournal};
use plinth_tui::theme::Role;
use serde_json::json;

use super::upgrade::{self, Aim};
use crate::{
    args::{self, Global, Output},
    exit::Failure,
    out::Out,
    platform,
    present::Talk,
    wire::{self, Session, before_the_run, connect, listen},
};

/// Runs `plinth diff`.
pub(crate) async fn run(global: &Global, args: &args::Diff, out: Out) -> Result<Outcome, Failure> {
    let signals = listen()?;
    let (host, _) = before_the_run(&signals, connect(global)).await?;
    host.give_up_after(args.timeout);
    let talk: Arc<dyn Sink> = Arc::new(Talk::new(out));
    let named = args.which.platform.as_deref();
    let found = before_the_run(&signals, platform::await_it(named, &host, args.timeout, talk.as_ref())).await?;
    let name = found.ok_or_else(|| platform::none(named, &host.1))?;
    let mut loaded =
        before_the_run(&signals, upgrade::standing(&host, &name, Aim::Same, (&args.access, args.timeout), out)).await?;
    loaded.settings.timeout = args.timeout;
    // What others hold is what is asked for here, and no reason to refuse.
    loaded.settings.take_over = true;
    loaded.settings.purpose = Purpose::Compare;
    let journal = Arc::new(VecJournal::default());
    let session = Session::open(host.clone(), journal, vec![talk], &name, wire::Delivery::default(), signals)?;
    let (outcome, made) = upgrade::planned(&session, &loaded).await;
    let Some(planned) = made else { return Ok(outcome) };
    let found = drift::of_plan(&planned, host.0.as_ref()).await.map_err(|error| wire::refused(&error))?;
    match args.output {
        Output::Json => out.data(&json!({"platform": name, "release": loaded.content.lock.root, "drift": found}).to_string()),
        Output::Human => human(&found, out),
    }
    Ok(if args.detailed_exitcode && !found.is_empty() { Outcome::Changes } else { Outcome::Done })
}

fn human(found: &[Drift], out: Out) {
    if found.is_empty() {
        out.talk("nothing differs");
    }
    for drift in found {
        let what = match drift.action {
            _ if drift.terminating => "terminating",
            Action::Create => "missing",
            Action::Delete => "too much",
            _ => "changed",
        };
        out.told(Role::Waiting, &format!("{what:<11} {}", drift.subject));
        drift.fields.iter().for_each(|field| out.data(&line(field)));
    }
}

/// A field with what is there, what is wanted, and who holds it.
pub(super) fn line(field: &Field) -> String {
    let shown = |value: &Option<String>| value.clone().unwrap_or_else(|| "nothing".to_owned());
    let by = if field.by.is_empty() { String::new() } else { format!("  by {}", field.by.join(", ")) };
    // What is wanted is not known where the release was not asked.
    if field.wanted.is_none() && !field.by.is_empty() {
        return format!("  {}: {}{by}", field.path, shown(&field.live));
    }
    format!("  {}: {} instead of {}{by}", field.path, shown(&field.live), shown(&field.wanted))
}
