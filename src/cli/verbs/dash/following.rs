//! The platform of one cluster, told to the view.

use std::time::Duration;

use jiff::Timestamp;
use plinth_api::{Object, ObjectKey};
use plinth_run::EventKind;
use plinth_tui::{Lost, Message};
use tokio::sync::{mpsc as channel, oneshot};

use crate::{
    exit::Failure,
    follow::{self, Follower},
    platform::{self, Unclear},
    wire::{Host, Line},
};

/// How often a server that does not answer is asked again.
const AGAIN: Duration = Duration::from_secs(2);
/// How long a server may take to answer before that is said.
const PATIENCE: Duration = Duration::from_secs(3);
/// What to do about a server that does not answer.
const HINT: &str = "C chooses another context of the kubeconfig; ctrl-r asks again at once";

/// Tells the view what the cluster says.
pub(super) struct Following {
    pub(super) host: Host,
    pub(super) server: String,
    /// The platform, where it is known.
    pub(super) name: Option<String>,
    /// Who is told that there is nothing to look at; nobody where the person has chosen the cluster in the view.
    pub(super) give_up: Option<oneshot::Sender<Failure>>,
    pub(super) refreshed: channel::Receiver<()>,
    /// Objects whose wanted form the view asks for.
    pub(super) asked: channel::Receiver<(ObjectKey, oneshot::Sender<Option<Object>>)>,
    pub(super) line: Line,
}

impl Following {
    /// Runs until the line is closed or nobody looks.
    pub(super) async fn run(mut self) {
        let name = self.named().await;
        self.line.send(Message::Nothing(None));
        let mut follower = Follower::new(self.host.clone(), &name);
        let mut events = vec![follower.begin(&name, &self.server)];
        loop {
            self.line.send(Message::Watches(follower.watches()));
            self.line.send(Message::Link(follower.lost().map(|lost| self.lost(lost, &follower))));
            for event in events.drain(..).filter(is_for_a_view) {
                if !self.line.send(Message::Run(Box::new(event))) {
                    return;
                }
            }
            tokio::select! {
                biased;
                Some(()) = self.refreshed.recv() => follower.refresh(),
                Some((key, answer)) = self.asked.recv() => {
                    // A terminal that is gone asks no more; what cannot be read has no wanted form.
                    let _gone = answer.send(follower.wanted(&key).await.unwrap_or_default());
                }
                more = follower.next() => events = more,
            }
        }
    }

    /// The same for the view. A server of which nothing was read is named: it may be the wrong one.
    fn lost(&self, lost: &follow::Lost, follower: &Follower) -> Lost {
        let of = (!follower.has_told()).then(|| self.host.1.clone());
        Lost { since: lost.since, of, why: lost.why.clone(), hint: Some(HINT.to_owned()) }
    }

    /// The platform. Where there is none, or more than one, that is said, and looked at again when the person asks for it.
    async fn named(&mut self) -> String {
        let since = Timestamp::now();
        loop {
            if let Some(name) = self.name.take() {
                return name;
            }
            let failure = match self.found(since).await {
                Ok(Some(name)) => return name,
                Ok(None) => platform::none(None, &self.host.1),
                Err(Unclear::Read(error)) if platform::may_pass(&error) => {
                    self.never_reached(since, error.to_string());
                    tokio::select! {
                        biased;
                        Some(()) = self.refreshed.recv() => {}
                        () = tokio::time::sleep(AGAIN) => {}
                    }
                    continue;
                }
                Err(unclear) => unclear.failure(&self.host.1),
            };
            if let Some(give_up) = self.give_up.take() {
                let _gone = give_up.send(failure);
                let _gone = self.line.send(Message::Close);
                return std::future::pending().await;
            }
            let hint = failure.hint.map(|hint| format!("; {hint}")).unwrap_or_default();
            let _gone = self.line.send(Message::Link(None));
            let _gone = self.line.send(Message::Nothing(Some(format!("{}{hint}; ctrl-r looks again", failure.message))));
            let _asked = self.refreshed.recv().await;
        }
    }

    /// Asks for the platform; that there is no answer yet is said meanwhile.
    async fn found(&self, since: Timestamp) -> Result<Option<String>, Unclear> {
        let find = platform::find(None, self.host.0.as_ref());
        tokio::pin!(find);
        if let Ok(found) = tokio::time::timeout(PATIENCE, &mut find).await {
            return found;
        }
        self.never_reached(since, "it takes the connection and does not answer".to_owned());
        find.await
    }

    fn never_reached(&self, since: Timestamp, why: String) {
        let lost = Lost { since, of: Some(self.host.1.clone()), why, hint: Some(HINT.to_owned()) };
        let _gone = self.line.send(Message::Link(Some(lost)));
    }
}

/// What the connection is like, the view is told apart, with its time.
fn is_for_a_view(event: &plinth_run::Event) -> bool {
    !matches!(event.kind, EventKind::CheckFinished { .. })
}
