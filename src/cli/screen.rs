//! The terminal view: whether there can be one, in which colours, and how a view that only looks is run.

use std::{
    io::IsTerminal,
    sync::{
        Arc,
        atomic::{AtomicBool, Ordering},
        mpsc,
    },
};

use jiff::Timestamp;
use plinth_run::Outcome;
use plinth_tui::{Effect, Message, Model, app, terminal};

use crate::{config::Config, exit::Failure, wire::listen};

/// Why there is no terminal view; `None` where there can be one (ux.md section 4).
pub(crate) fn obstacle(config: &Config) -> Option<String> {
    let set = |name: &str| std::env::var(name).ok().filter(|value| !value.is_empty());
    let term = set("TERM");
    if config.plain.value {
        Some(format!("{} asks for text that is only appended", config.plain.origin))
    } else if !std::io::stdin().is_terminal() || !std::io::stdout().is_terminal() {
        Some("here is no terminal".to_owned())
    } else if set("CI").is_some() {
        Some("CI is set, so nobody looks".to_owned())
    } else if !terminal::is_capable(term.as_deref()) {
        Some(format!("TERM={} is no terminal that can be drawn on", term.unwrap_or_default()))
    } else {
        None
    }
}

/// A model as the user likes it; the footer says what is wrong with the configuration.
pub(crate) fn model(config: &Config) -> Model {
    let mut model = Model::new(config.palette(), Timestamp::now());
    model.ui.why = config.why.value;
    model.ui.notice.clone_from(&config.problem);
    model
}

/// Shows messages until the person leaves or a signal ends the process. `perform` fulfils what the view wishes for.
pub(crate) async fn look(
    model: Model,
    messages: mpsc::Receiver<Message>,
    clock: impl Fn() -> Timestamp + Send + 'static,
    perform: impl FnMut(Effect) + Send + 'static,
) -> Result<Model, Failure> {
    let signals = listen()?;
    let close = Arc::new(AtomicBool::new(false));
    let closing = Arc::clone(&close);
    let screen = tokio::task::spawn_blocking(move || app::run(model, &messages, &closing, clock, perform));
    let signal = tokio::spawn(async move {
        signals.token().cancelled().await;
        close.store(true, Ordering::Relaxed);
    });
    let shown = screen.await;
    signal.abort();
    let shown = shown.map_err(|error| Failure::new(Outcome::Internal, format!("the terminal view ended: {error}")))?;
    shown.map_err(|error| Failure::failed(format!("draw on the terminal: {error}")))
}
