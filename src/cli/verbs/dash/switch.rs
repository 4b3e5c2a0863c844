//! What the view wishes for, on the cluster that it looks at, and the change to another one.

use std::sync::mpsc;

use plinth_tui::{Effect, Message};
use tokio::sync::{mpsc as channel, oneshot};
use tokio_util::task::AbortOnDropHandle;

use super::following::Following;
use crate::{
    args::Global,
    exit::Failure,
    follow,
    wire::{Contexts, Fetcher, Host, Line, Wanted, connect},
};

/// The platform that is asked for, and who is told where there is nothing to look at: only the cluster that the command line means.
type First = (Option<String>, Option<oneshot::Sender<Failure>>);

/// One cluster that is looked at. Dropped, it says nothing any more.
struct Connection {
    line: Line,
    fetcher: Fetcher,
    refresh: channel::Sender<()>,
    _following: AbortOnDropHandle<()>,
}

impl Connection {
    /// Begins to tell what there is. Must be called inside the runtime.
    fn open((host, server): (Host, String), (name, give_up): First, sender: &mpsc::Sender<Message>) -> Self {
        let line = Line::from(sender.clone());
        let _open = line.send(Message::Run(Box::new(follow::opening(&server))));
        let (asks, asked) = channel::channel(1);
        let fetcher = Fetcher::new(host.clone(), Wanted::Graphs(asks), line.clone());
        let (refresh, refreshed) = channel::channel(1);
        let following = Following { host, server, name, give_up, refreshed, asked, line: line.clone() };
        let task = AbortOnDropHandle::new(tokio::spawn(following.run()));
        Self { line, fetcher, refresh, _following: task }
    }
}

/// Fulfils wishes, one after the other.
pub(super) struct Switch {
    global: Global,
    sender: mpsc::Sender<Message>,
    now: Connection,
}

impl Switch {
    /// Looks at the first cluster already. Must be called inside the runtime.
    pub(super) fn open(
        global: &Global,
        host: (Host, String),
        (name, give_up): (Option<String>, oneshot::Sender<Failure>),
        sender: mpsc::Sender<Message>,
    ) -> Self {
        let now = Connection::open(host, (name, Some(give_up)), &sender);
        Self { global: global.clone(), sender, now }
    }

    /// Runs until nobody wishes for anything any more.
    pub(super) async fn run(mut self, mut wishes: channel::UnboundedReceiver<Effect>) {
        while let Some(wish) = wishes.recv().await {
            match wish {
                Effect::Fetch(ask) => self.now.fetcher.ask(ask),
                // One wish that waits is enough.
                Effect::Refresh => drop(self.now.refresh.try_send(())),
                Effect::Contexts => {
                    let known = Contexts::read(self.global.kubeconfig.as_deref()).map(|known| known.names);
                    self.say(Message::Contexts(known));
                }
                Effect::Connect(context) => self.connect(context).await,
                _ => {}
            }
        }
    }

    /// Looks at another cluster. Where its context cannot be used, the one before stays, and why is said.
    async fn connect(&mut self, context: String) {
        let global = Global { context: Some(context.clone()), ..self.global.clone() };
        match connect(&global).await {
            Ok(host) => {
                self.now.line.close();
                self.say(Message::Connected(context));
                self.now = Connection::open(host, (None, None), &self.sender);
            }
            Err(failure) => self.say(Message::Notice(failure.message)),
        }
    }

    fn say(&self, message: Message) {
        // A terminal that is gone wishes for nothing more.
        let _gone = self.sender.send(message);
    }
}
