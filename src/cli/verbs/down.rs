//! `plinth down`: ordered removal with its own plan.

use std::sync::Arc;

use plinth_bootstrap::{Approver, Settings, ports::Always, remains, removal};
use plinth_run::{Journal, Outcome, Sink, memory::VecJournal};
use tokio_util::sync::CancellationToken;

use crate::{
    args::{Down, Global},
    exit::Failure,
    out::Out,
    platform,
    present::{Talk, Teller},
    wire::{self, AskInText, Host, Session, ShowOnly, Turn, before_the_run, connect, interrupted, listen},
};

/// Runs `plinth down`.
pub(crate) async fn run(global: &Global, args: &Down, out: Out) -> Result<Outcome, Failure> {
    let only_shows = ShowOnly::is_needed(args.apply);
    let signals = listen()?;
    let (host, server) = before_the_run(&signals, connect(global)).await?;
    host.give_up_after(args.timeout);
    let teller: Arc<dyn Sink> = if only_shows { Arc::new(Talk::new(out)) } else { Arc::new(Teller::of_run(args.output, out)) };
    let found = before_the_run(&signals, which(args, &host, teller.as_ref())).await?;
    let mut settings = Settings { timeout: args.timeout, ..Settings::default() };
    if let Some(platform) = found {
        settings.platform = platform;
    }
    let journal: Arc<dyn Journal> =
        if only_shows { Arc::new(VecJournal::default()) } else { wire::journal(None, &settings.platform, &server)? };
    let turn = Turn::Lease { break_lock: args.break_lock, platform: None };
    let delivery = wire::Delivery { removing: true, turn, ..wire::Delivery::default() };
    let session = Session::open(host, journal, vec![teller], &settings.platform, delivery, signals)?;
    let approver: &dyn Approver = match args.apply {
        true => &Always("--apply".to_owned()),
        false if only_shows => &ShowOnly(out),
        false => &AskInText::new(out, global),
    };
    let run = removal::down(&settings, session.resumed.clone(), &session.ports, approver);
    let outcome = interrupted(&session, CancellationToken::new(), run).await;
    session.ports.control.stop().await;
    let stages = session.log.read(|state| state.plan.as_ref().map(|plan| plan.stages.len()));
    if only_shows && outcome == Outcome::Refused && stages.is_some_and(|stages| stages > 0) {
        return Err(ShowOnly::ended("down"));
    }
    session.tell(outcome, out);
    let nothing = stages == Some(0);
    if nothing {
        let named = args.which.platform.as_ref().map(|name| format!(" {name}")).unwrap_or_default();
        out.talk(&format!("there is no platform{named} on this cluster: nothing to remove"));
    }
    Ok(outcome)
}

/// The platform that is meant, or of which something is left.
async fn which(args: &Down, host: &Host, sink: &dyn Sink) -> Result<Option<String>, Failure> {
    let found = platform::await_it(args.which.platform.as_deref(), host, args.timeout, sink).await?;
    if found.is_some() {
        return Ok(found);
    }
    let mut left = remains(host.0.as_ref(), host).await;
    if left.len() > 1 { Err(platform::several(&left, &host.1)) } else { Ok(left.pop_first()) }
}
