//! `plinth dash`: a platform on day 2. Reads only.

use std::{sync::mpsc, time::Duration};

use jiff::Timestamp;
use plinth_api::{Object, ObjectKey};
use plinth_run::{Filter, Outcome, Sink};
use plinth_tui::{Effect, Message};
use tokio::{
    sync::{mpsc as channel, oneshot},
    time::timeout,
};

use crate::{
    args::{Dash, Global},
    config::Config,
    exit::Failure,
    follow::{self, Follower},
    out::Out,
    platform,
    present::Talk,
    screen,
    wire::{Fetcher, Host, Wanted, connect, stopped},
};

/// How long the server may take to say which platform there is before the view opens without knowing.
const PATIENCE: Duration = Duration::from_secs(2);
/// How often a server that does not answer is asked again.
const AGAIN: Duration = Duration::from_secs(2);

/// Runs `plinth dash`: on a terminal the view, else a line for every change until a signal comes.
pub(crate) async fn run(global: &Global, args: &Dash, out: Out) -> Result<Outcome, Failure> {
    let filter = args.filter.as_deref().unwrap_or_default();
    let parsed = Filter::parse(filter).map_err(|error| Failure::new(Outcome::Usage, format!("--filter: {error}")))?;
    let config = Config::load(global);
    let (host, server) = connect(global).await?;
    let asked = args.which.platform.as_deref();
    if let Some(teller) = screen::teller(&config, args.output, out) {
        let follow = async {
            let found = platform::await_it(asked, &host, Duration::MAX, &Talk::new(out)).await?;
            let name = found.ok_or_else(|| platform::none(None, &host.1))?;
            let mut follower = Follower::new(host.clone(), &name);
            teller.take(&follower.begin(&name, &server));
            loop {
                follower.next().await.iter().for_each(|event| teller.take(event));
            }
        };
        return stopped(follow).await.map(|()| Outcome::Done);
    }
    let name = named_at_once(asked, &host).await?;
    let (sender, messages) = mpsc::channel();
    let _open = sender.send(Message::Run(Box::new(follow::opening(&server))));
    let (asks, asked) = channel::channel(1);
    let fetcher = Fetcher::new(host.clone(), Wanted::Graphs(asks), sender.clone());
    let (refresh, refreshed) = channel::channel(1);
    let place = global.context.clone().unwrap_or_else(|| server.clone());
    let following = tokio::spawn(Following { host, server, name, refreshed, asked, sender }.run());
    let mut model = screen::model(&config).watching(place);
    filter.clone_into(&mut model.ui.filter_text);
    model.ui.filter = parsed;
    let perform = move |effect| match effect {
        Effect::Fetch(ask) => fetcher.ask(ask),
        // One wish that waits is enough.
        Effect::Refresh => drop(refresh.try_send(())),
        _ => {}
    };
    let shown = screen::look(model, messages, Timestamp::now, perform).await;
    following.abort();
    shown.map(|_| Outcome::Done)
}

/// The platform that is meant; `None` where the server takes its time: the view is there before it answers.
async fn named_at_once(asked: Option<&str>, host: &Host) -> Result<Option<String>, Failure> {
    match timeout(PATIENCE, platform::find(asked, host.0.as_ref())).await {
        Ok(Ok(Some(name))) => Ok(Some(name)),
        Ok(Ok(None)) => Err(platform::none(None, &host.1)),
        Ok(Err(unclear)) if !unclear.may_pass() => Err(unclear.failure(&host.1)),
        Ok(Err(_)) | Err(_) => Ok(None),
    }
}

/// Tells the view what the cluster says.
struct Following {
    host: Host,
    server: String,
    /// The platform, where it is known.
    name: Option<String>,
    refreshed: channel::Receiver<()>,
    /// Objects whose wanted form the view asks for.
    asked: channel::Receiver<(ObjectKey, oneshot::Sender<Option<Object>>)>,
    sender: mpsc::Sender<Message>,
}

impl Following {
    async fn run(mut self) {
        let name = self.named().await;
        let mut follower = Follower::new(self.host.clone(), &name);
        let mut events = vec![follower.begin(&name, &self.server)];
        loop {
            for event in events.drain(..) {
                if self.sender.send(Message::Run(Box::new(event))).is_err() {
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
            let _gone = self.sender.send(Message::Notice(format!("{}{hint}", failure.message)));
            let _asked = self.refreshed.recv().await;
        }
    }
}
