//! `plinth grant`: the rights that the controller in the cluster lacks; shown, and with `--apply` added by the operator's identity.

use std::{sync::Arc, time::Duration};

use plinth_api::{ClusterKey, rbac::Rights};
use plinth_bootstrap::{
    Error,
    grant::{self, Grant},
    install,
};
use plinth_engine::{
    naming::keys,
    ports::{Applier, Apply, Query, ReadError, Reader, WriteError},
};
use plinth_run::{Outcome, Sink, memory::VecJournal};
use serde_json::json;

use super::{
    plan, unreadable,
    upgrade::{self, Aim},
};
use crate::{
    args::{self, AccessArgs, Global, Output},
    exit::Failure,
    out::Out,
    present::Talk,
    wire::{self, Host, Session, before_the_run, connect, listen},
};

/// How long a server may take that does not answer.
const TIMEOUT: Duration = Duration::from_secs(30);

/// Runs `plinth grant`.
pub(crate) async fn run(global: &Global, args: &args::Grant, out: Out) -> Result<Outcome, Failure> {
    let signals = listen()?;
    let (host, _) = before_the_run(&signals, connect(global)).await?;
    host.give_up_after(TIMEOUT);
    let platform = before_the_run(&signals, platform(&host)).await?;
    let planned = match platform {
        Some(platform) => before_the_run(&signals, async { Ok(planned(&host, &platform, &args.access, out).await) }).await?,
        None => None,
    };
    let survey = async { grant::survey(planned.as_ref(), host.0.as_ref(), &host).await.map_err(|error| wire::refused(&error)) };
    let found = before_the_run(&signals, survey).await?;
    let applied = args.apply && !found.is_empty();
    if applied {
        apply(&host, &found).await?;
    }
    present(&found, applied, args.output, out);
    Ok(if args.detailed_exitcode && !found.is_empty() && !applied { Outcome::Changes } else { Outcome::Done })
}

/// The Platform that is there, where there is one.
async fn platform(host: &Host) -> Result<Option<String>, Failure> {
    let query = Query { cluster: ClusterKey::host(), gvk: install::platform_kind(), namespace: None, selector: String::new() };
    match host.0.list(&query).await {
        Ok(found) if found.len() == 1 => Ok(found.first().map(|platform| platform.name().to_owned())),
        // The controller says which one of several it keeps.
        Ok(_) | Err(ReadError::NotServed(_)) => Ok(None),
        Err(error) => Err(unreadable(&error, &host.1)),
    }
}

/// What the release of a Platform takes, as `up` computes it: its graphs need not be in the cluster yet. Where that cannot be found out,
/// what objects say that wait is all there is.
async fn planned(host: &Host, platform: &str, access: &AccessArgs, out: Out) -> Option<Rights> {
    let made = async {
        let mut loaded = upgrade::standing(host, platform, Aim::Asked, (access, TIMEOUT), out).await?;
        loaded.settings.timeout = TIMEOUT;
        loaded.settings.definitions.clear();
        let talk: Arc<dyn Sink> = Arc::new(Talk::new(out));
        let delivery = wire::Delivery::default();
        let session = Session::open(host.clone(), Arc::new(VecJournal::default()), vec![talk], platform, delivery, listen()?)?;
        Ok::<_, Failure>(upgrade::planned(&session, &loaded).await.1)
    };
    let rights = match made.await {
        Ok(planned) => planned.and_then(|planned| planned.plan.rights),
        Err(failure) => {
            out.talk(&format!("the release of {platform} cannot be looked at: {}", failure.message));
            None
        }
    };
    if rights.is_none() {
        out.talk("what its graphs take is not known, but for what is in the cluster: further rights may be missing after these");
    }
    rights
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
