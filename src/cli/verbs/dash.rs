//! `plinth dash`: a platform on day 2. Reads only.

mod following;
mod switch;

use std::{sync::mpsc, time::Duration};

use jiff::Timestamp;
use plinth_run::{Filter, Outcome, Sink};
use tokio::sync::{mpsc as channel, oneshot};
use tokio_util::task::AbortOnDropHandle;

use switch::Switch;

use crate::{
    args::{Dash, Global},
    config::Config,
    exit::Failure,
    follow::Follower,
    out::Out,
    platform,
    present::Talk,
    screen,
    wire::{Contexts, connect, stopped},
};

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
    // The view is there before the server answers. Where it turns out that there is nothing to look at, it closes and that is said.
    let name = asked.map(str::to_owned);
    let (give_up, mut given_up) = oneshot::channel();
    let (sender, messages) = mpsc::channel();
    let place = Contexts::chosen(global).unwrap_or_else(|| server.clone());
    // A person presses no key faster than a wish is passed on.
    let (wish, wishes) = channel::unbounded_channel();
    let switch = AbortOnDropHandle::new(tokio::spawn(Switch::open(global, (host, server), (name, give_up), sender).run(wishes)));
    let mut model = screen::model(&config).watching(place).choosing();
    filter.clone_into(&mut model.ui.filter_text);
    model.ui.filter = parsed;
    let shown = screen::look(model, messages, Timestamp::now, move |effect| drop(wish.send(effect))).await;
    drop(switch);
    match (shown, given_up.try_recv()) {
        (Ok(_), Ok(failure)) => Err(failure),
        (shown, _) => shown.map(|_| Outcome::Done),
    }
}
