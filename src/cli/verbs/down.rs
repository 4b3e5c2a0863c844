//! `plinth down`: ordered removal with its own plan.

use std::{io::IsTerminal, sync::Arc};

use plinth_bootstrap::{Approver, Settings, ports::Always, removal};
use plinth_run::{Outcome, Sink};
use tokio_util::sync::CancellationToken;

use crate::{
    args::{Down, Global},
    exit::Failure,
    out::Out,
    present::Teller,
    wire::{self, AskInText, Session, Turn, before_the_run, connect, interrupted, listen},
};

/// Runs `plinth down`.
pub(crate) async fn run(global: &Global, args: &Down, out: Out) -> Result<Outcome, Failure> {
    let asks = !args.apply;
    if asks && !std::io::stdin().is_terminal() {
        return Err(Failure::new(Outcome::Usage, "down shows its plan on a terminal and asks, and there is none")
            .hint("plinth down --apply removes the platform without a question; plinth status shows what there is"));
    }
    let signals = listen()?;
    let (host, server) = before_the_run(&signals, connect(global)).await?;
    host.give_up_after(args.timeout);
    let settings = Settings { timeout: args.timeout, ..Settings::default() };
    let journal = wire::journal(None, &settings.platform, &server)?;
    let teller: Arc<dyn Sink> = Arc::new(Teller::new(args.output, out));
    let turn = Turn::Lease { break_lock: args.break_lock, platform: None };
    let delivery = wire::Delivery { removing: true, turn, ..wire::Delivery::default() };
    let session = Session::open(host, journal, vec![teller], &settings.platform, delivery, signals)?;
    let approver: &dyn Approver = if asks { &AskInText(out) } else { &Always("--apply".to_owned()) };
    let run = removal::down(&settings, session.resumed.clone(), &session.ports, approver);
    let outcome = interrupted(&session, CancellationToken::new(), run).await;
    session.ports.control.stop().await;
    session.tell(outcome, out);
    Ok(outcome)
}
