//! The platform of one cluster, told to the view.

use std::time::Duration;

use plinth_api::{Object, ObjectKey};
use plinth_tui::Message;
use tokio::sync::{mpsc as channel, oneshot};

use crate::{
    follow::Follower,
    platform,
    wire::{Host, Line},
};

/// How often a server that does not answer is asked again.
const AGAIN: Duration = Duration::from_secs(2);

/// Tells the view what the cluster says.
pub(super) struct Following {
    pub(super) host: Host,
    pub(super) server: String,
    /// The platform, where it is known.
    pub(super) name: Option<String>,
    pub(super) refreshed: channel::Receiver<()>,
    /// Objects whose wanted form the view asks for.
    pub(super) asked: channel::Receiver<(ObjectKey, oneshot::Sender<Option<Object>>)>,
    pub(super) line: Line,
}

impl Following {
    /// Runs until the line is closed or nobody looks.
    pub(super) async fn run(mut self) {
        let name = self.named().await;
        let mut follower = Follower::new(self.host.clone(), &name);
        let mut events = vec![follower.begin(&name, &self.server)];
        loop {
            self.line.send(Message::Watches(follower.watches()));
            for event in events.drain(..) {
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

    /// The platform. Where there is none, or more than one, that is said, and looked at again when the person asks for it.
    async fn named(&mut self) -> String {
        loop {
            if let Some(name) = self.name.take() {
                return name;
            }
            let failure = match platform::find(None, self.host.0.as_ref()).await {
                Ok(Some(name)) => return name,
                Ok(None) => platform::none(None, &self.host.1),
                Err(unclear) if unclear.may_pass() => {
                    tokio::time::sleep(AGAIN).await;
                    continue;
                }
                Err(unclear) => unclear.failure(&self.host.1),
            };
            let hint = failure.hint.map(|hint| format!("; {hint}")).unwrap_or_default();
            let _gone = self.line.send(Message::Notice(format!("{}{hint}", failure.message)));
            let _asked = self.refreshed.recv().await;
        }
    }
}
