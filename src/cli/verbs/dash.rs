//! `plinth dash`: a platform on day 2. Reads only.

use std::{collections::BTreeMap, sync::mpsc};

use jiff::Timestamp;
use plinth_run::{Filter, Outcome, Sink};
use plinth_tui::{Effect, Message};
use tokio::sync::mpsc as channel;

use crate::{
    args::{Dash, Global},
    config::Config,
    exit::Failure,
    follow::Follower,
    out::Out,
    screen,
    wire::{Fetcher, connect, stopped},
};

/// Runs `plinth dash`: on a terminal the view, else a line for every change until a signal comes.
pub(crate) async fn run(global: &Global, args: &Dash, out: Out) -> Result<Outcome, Failure> {
    let filter = args.filter.as_deref().unwrap_or_default();
    let parsed = Filter::parse(filter).map_err(|error| Failure::new(Outcome::Usage, format!("--filter: {error}")))?;
    let config = Config::load(global);
    let (host, server) = connect(global).await?;
    let mut follower = Follower::new(host.0.clone(), "default");
    let begin = follower.begin("default", &server);
    if let Some(teller) = screen::teller(&config, args.output, out) {
        teller.take(&begin);
        let follow = async {
            loop {
                follower.next().await.iter().for_each(|event| teller.take(event));
            }
        };
        return stopped(follow).await.map(|()| Outcome::Done);
    }
    let (sender, messages) = mpsc::channel();
    let _open = sender.send(Message::Run(Box::new(begin)));
    let fetcher = Fetcher::new(host, BTreeMap::new(), sender.clone());
    let (refresh, refreshed) = channel::channel(1);
    let following = tokio::spawn(follow(follower, refreshed, sender));
    let place = global.context.clone().unwrap_or(server);
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

async fn follow(mut follower: Follower, mut refreshed: channel::Receiver<()>, sender: mpsc::Sender<Message>) {
    loop {
        tokio::select! {
            biased;
            Some(()) = refreshed.recv() => follower.refresh(),
            events = follower.next() => {
                for event in events {
                    if sender.send(Message::Run(Box::new(event))).is_err() {
                        return;
                    }
                }
            }
        }
    }
}
