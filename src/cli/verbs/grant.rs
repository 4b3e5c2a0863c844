//! `plinth grant`: the rights that the controller in the cluster lacks; shown, and with `--apply` added by the operator's identity.

use std::time::Duration;

use plinth_bootstrap::{
    Error,
    grant::{self, Grant},
};
use plinth_engine::{
    naming::keys,
    ports::{Applier, Apply, WriteError},
};
use plinth_run::Outcome;
use serde_json::json;

use super::plan;
use crate::{
    args::{self, Global, Output},
    exit::Failure,
    out::Out,
    wire::{self, Host, before_the_run, connect, listen},
};

/// How long a server may take that does not answer.
const TIMEOUT: Duration = Duration::from_secs(30);

/// Runs `plinth grant`.
pub(crate) async fn run(global: &Global, args: &args::Grant, out: Out) -> Result<Outcome, Failure> {
    let signals = listen()?;
    let (host, _) = before_the_run(&signals, connect(global)).await?;
    host.give_up_after(TIMEOUT);
    let survey = async { grant::survey(host.0.as_ref(), &host).await.map_err(|error| wire::refused(&error)) };
    let found = before_the_run(&signals, survey).await?;
    let applied = args.apply && !found.is_empty();
    if applied {
        apply(&host, &found).await?;
    }
    present(&found, applied, args.output, out);
    Ok(if args.detailed_exitcode && !found.is_empty() && !applied { Outcome::Changes } else { Outcome::Done })
}

/// Writes the roles, and what binds them. A binding to the same role by the same name is the same; a role is written as it was read.
pub(super) async fn apply(host: &Host, grant: &Grant) -> Result<(), Failure> {
    for (key, object) in grant.objects() {
        let apply = Apply { key, object, manager: keys::MANAGER.to_owned(), force: true, subresource: None };
        host.0.apply(&apply).await.map_err(refused)?;
    }
    Ok(())
}

fn refused(error: WriteError) -> Failure {
    let hint = match &error {
        WriteError::Conflict { .. } => Some("somebody else granted something at the same time: run it again"),
        WriteError::Forbidden { .. } => {
            Some("who grants rights needs them himself, or the verbs escalate and bind on roles, as cluster-admin has them")
        }
        _ => None,
    };
    let failure = wire::refused(&Error::from(error));
    hint.into_iter().fold(failure, Failure::hint)
}

fn present(grant: &Grant, applied: bool, output: Output, out: Out) {
    match output {
        Output::Json => out.data(&json!({"missing": grant.missing, "applied": applied}).to_string()),
        Output::Human => human(grant, applied, out),
    }
}

fn human(grant: &Grant, applied: bool, out: Out) {
    out.data(match (grant.is_empty(), applied) {
        (true, _) => "the controller lacks no right that its graphs ask for, or that an object waits for",
        (false, true) => "granted to the controller",
        (false, false) => "the controller lacks",
    });
    plan::rules(&grant.missing).iter().for_each(|line| out.data(line));
    if !applied && !grant.is_empty() {
        out.talk("plinth grant --apply adds these rules");
    }
}
