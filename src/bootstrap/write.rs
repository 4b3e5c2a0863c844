//! Writing one object: not at all where the journal or the cluster proves that it is there, else until it is.

use std::{collections::BTreeSet, sync::Arc, time::Duration};

use plinth_api::{Object, ObjectKey};
use plinth_engine::{
    health::{Verdict, judge},
    naming::keys,
    ports::{Apply, ReadError, WriteError},
};
use plinth_run::{Action, EventKind, Recorder, SkipReason, Subject};
use serde_json::{Value, json};

use crate::{
    error::Error,
    gone,
    plan::standing,
    ports::Ports,
    preflight::Deadline,
    settings::Settings,
    wanted::{Step, Wanted},
};

/// First wait before a write (or read) is tried again; it doubles.
const FIRST_WAIT: Duration = Duration::from_millis(250);
/// Longest wait before another attempt.
const LONGEST_WAIT: Duration = Duration::from_secs(10);
/// How often a conflict is tried again: the resource version may have moved between two of our own writes.
const CONFLICTS: u32 = 3;

/// What one run writes with.
pub(crate) struct Writer<'a> {
    pub(crate) ports: &'a Ports,
    pub(crate) settings: &'a Settings,
    pub(crate) deadline: Deadline,
}

impl Writer<'_> {
    /// Brings one object to what is wanted, and records what was done or why nothing was.
    pub(crate) async fn bring(&self, wanted: &Wanted) -> Result<(), Error> {
        let mut live = self.read(&wanted.key).await?;
        if let Some(leaving) = live.take_if(|live| live.is_terminating()) {
            self.make_way(&wanted.key, leaving.uid()).await?;
        }
        if let Some(reason) = self.proof(wanted, live.as_ref()) {
            self.skip(wanted, reason, live.as_ref());
            return Ok(());
        }
        let standing = standing(wanted, live.as_ref(), self.settings)?;
        match standing.action {
            Action::Unchanged => self.skip(wanted, SkipReason::Unchanged, live.as_ref()),
            Action::Skip => {
                self.skip(wanted, SkipReason::Foreign { owner: standing.note.unwrap_or_default() }, live.as_ref());
            }
            action => {
                let answer = self.apply(&wanted.key, &wanted.object, keys::MANAGER).await?;
                self.applied(wanted, action, &answer);
            }
        }
        Ok(())
    }

    /// Waits for an object to be gone that somebody deleted and that this run makes again. The loop lets go of it, and of what is
    /// below it.
    async fn make_way(&self, key: &ObjectKey, uid: Option<&str>) -> Result<(), Error> {
        let control = &self.ports.control;
        let _observer = control.start().await.map_err(Error::Loop)?;
        control.awaits(BTreeSet::from([key.clone()])).await;
        gone::wait(self, key, uid).await?;
        control.awaits(BTreeSet::new()).await;
        Ok(())
    }

    /// Reads until the cluster answers; a kind that is not served has no objects.
    pub(crate) async fn read(&self, key: &ObjectKey) -> Result<Option<Object>, Error> {
        let mut retry = self.retry(format!("read {key}"));
        loop {
            match self.ports.reader.get(key).await {
                Ok(live) => return Ok(live),
                Err(ReadError::NotServed(_)) => return Ok(None),
                Err(ReadError::Unavailable(message)) => retry.wait(message).await?,
                Err(error) => return Err(error.into()),
            }
        }
    }

    /// The journal's proof that nothing is left to write (contracts 22): same input, and the object has not moved since. A label that is
    /// gone moves no generation, and without it nobody would know whose the object is.
    fn proof(&self, wanted: &Wanted, live: Option<&Object>) -> Option<SkipReason> {
        let live = live.filter(|live| live.label(keys::PLATFORM) == wanted.object.label(keys::PLATFORM))?;
        let generation = live.generation();
        let proven = self.ports.log.read(|state| state.proves(&wanted.key, &wanted.digest, generation, live.uid()));
        proven.then(|| SkipReason::Proven { digest: wanted.digest.clone(), generation })
    }

    fn skip(&self, wanted: &Wanted, reason: SkipReason, live: Option<&Object>) {
        self.ports.log.record(EventKind::ChangeSkipped { subject: Subject::root(wanted.key.clone()), reason });
        if let Some(live) = live.filter(|_| is_untold(wanted)) {
            self.judged(&wanted.key, live);
        }
    }

    /// Records how an object is.
    pub(crate) fn judged(&self, key: &ObjectKey, live: &Object) {
        let Verdict { health, reason, message, .. } = judge(live);
        let subject = Subject::root(key.clone());
        self.ports.log.record(EventKind::HealthChanged { subject, health, reason, message, causes: Vec::new() });
    }

    /// Applies until the server takes it or says no for good.
    pub(crate) async fn apply(&self, key: &ObjectKey, object: &Object, manager: &str) -> Result<Object, Error> {
        let request = Apply {
            key: key.clone(),
            object: object.clone(),
            manager: manager.to_owned(),
            force: self.settings.take_over,
            subresource: None,
        };
        self.send(&request).await
    }

    /// Gives an object fields under a manager of their own: taking them back, by setting none, takes away nothing else.
    pub(crate) async fn lend(&self, key: &ObjectKey, manager: &str, set: impl FnOnce(&mut Value)) -> Result<(), Error> {
        let mut object = json!({"apiVersion": key.gvk.api_version(), "kind": key.gvk.kind, "metadata": {"name": key.name}});
        if let Some(namespace) = &key.namespace {
            object["metadata"]["namespace"] = json!(namespace);
        }
        set(&mut object);
        let object = Object::from_value(object).expect("a JSON object was just written");
        let request = Apply { key: key.clone(), object, manager: manager.to_owned(), force: true, subresource: None };
        self.send(&request).await.map(drop)
    }

    /// The same for a request that is made already.
    pub(crate) async fn send(&self, request: &Apply) -> Result<Object, Error> {
        let mut retry = self.retry(format!("apply {}", request.key));
        loop {
            self.may_write()?;
            let error = match self.ports.applier.apply(request).await {
                Ok(answer) => return Ok(answer),
                Err(error) => error,
            };
            match error {
                WriteError::Unavailable { message, .. } => retry.wait(message).await?,
                WriteError::NotLeader { .. } => self.turn(&mut retry).await?,
                // Discovery lags behind a new CRD, and a new namespace behind its creation.
                WriteError::NotServed(_) | WriteError::NotFound { .. } => retry.wait(error.to_string()).await?,
                WriteError::Conflict { .. } if retry.attempt < CONFLICTS => retry.wait(error.to_string()).await?,
                error => return Err(error.into()),
            }
        }
    }

    /// Waits a while for the turn to write, where it is not lost for good.
    pub(crate) async fn turn(&self, retry: &mut Retry<'_>) -> Result<(), Error> {
        let message = "nothing is written while the Lease cannot be renewed".to_owned();
        tokio::select! {
            biased;
            why = self.ports.lead.lost() => Err(Error::LostTurn(why)),
            waited = retry.wait(message) => waited,
        }
    }

    /// What cannot be recorded is not done.
    pub(crate) fn may_write(&self) -> Result<(), Error> {
        self.ports.log.failure().map_or(Ok(()), |failure| Err(failure.into()))
    }

    fn applied(&self, wanted: &Wanted, action: Action, answer: &Object) {
        self.ports.log.record(EventKind::ChangeApplied {
            subject: Subject::root(wanted.key.clone()),
            action,
            digest: wanted.digest.clone(),
            generation: answer.generation(),
            result: None,
            uid: answer.uid().map(str::to_owned),
        });
        if is_untold(wanted) {
            self.judged(&wanted.key, answer);
        }
    }

    pub(crate) fn retry(&self, what: String) -> Retry<'_> {
        Retry::new(self.ports, self.deadline, what)
    }
}

/// Whether the loop tells nothing of it: it reconciles definitions, deliveries and instances, and what it makes itself. What plinth keeps
/// for itself is no part of the platform.
fn is_untold(wanted: &Wanted) -> bool {
    wanted.step == Step::Foundation && wanted.object.label(keys::PART).is_none()
}

/// Growing waits, each visible, until the deadline.
pub(crate) struct Retry<'a> {
    ports: &'a Ports,
    deadline: Deadline,
    what: String,
    pub(crate) attempt: u32,
    wait: Duration,
}

impl<'a> Retry<'a> {
    pub(crate) fn new(ports: &'a Ports, deadline: Deadline, what: String) -> Self {
        Self { ports, deadline, what, attempt: 0, wait: FIRST_WAIT }
    }

    /// Waits before the next attempt, or says that there will be none.
    pub(crate) async fn wait(&mut self, message: String) -> Result<(), Error> {
        let clock = Arc::clone(self.ports.log.clock());
        let left = self.deadline.left(clock.as_ref());
        if left.is_zero() {
            return Err(Error::Deadline(format!("could not {} within {}: {message}", self.what, self.deadline.total())));
        }
        self.attempt += 1;
        let next = self.wait.min(left);
        let next_in_ms = u64::try_from(next.as_millis()).unwrap_or(u64::MAX);
        self.ports.log.record(EventKind::Retry { what: self.what.clone(), message, attempt: self.attempt, next_in_ms });
        clock.sleep(next).await;
        self.wait = (self.wait * 2).min(LONGEST_WAIT);
        Ok(())
    }
}
