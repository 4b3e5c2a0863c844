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
use plinth_run::{Event, History, Outcome};
use plinth_tui::{Effect, Message, Model, app, terminal};

use crate::{
    args::{Color, RunOutput},
    config::Config,
    exit::Failure,
    out::Out,
    present::Teller,
    wire::listen,
};

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

/// How a verb that looks is told as text: where that was asked for, or where nothing can be drawn. `None` where a view is shown.
pub(crate) fn teller(config: &Config, output: Option<RunOutput>, out: Out) -> Option<Teller> {
    if output.is_none() {
        let obstacle = obstacle(config)?;
        tracing::info!("lines are printed: {obstacle}");
    }
    config.tell(out);
    Some(Teller::new(output.unwrap_or(RunOutput::Lines), out))
}

/// The way to a view that only looks at a run; how long earlier runs took is told first.
pub(crate) fn watched(earlier: &[Event]) -> (mpsc::Sender<Message>, mpsc::Receiver<Message>) {
    let (sender, messages) = mpsc::channel();
    let _open = sender.send(Message::History(Box::new(History::learn(earlier))));
    (sender, messages)
}

/// A model as the user likes it; the footer says what is wrong with the configuration.
pub(crate) fn model(config: &Config) -> Model {
    if config.color.value == Color::Always {
        // Said on purpose, so it counts more than NO_COLOR, which crossterm looks at itself.
        terminal::force_colour();
    }
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
    mut perform: impl FnMut(Effect) + Send + 'static,
) -> Result<Model, Failure> {
    let signals = listen()?;
    let close = Arc::new(AtomicBool::new(false));
    let closing = Arc::clone(&close);
    let perform = move |effect| {
        // Once a screen is there to be given back: a test has to see that a panic leaves a sane terminal.
        let panics = cfg!(debug_assertions) && effect == Effect::Refresh && std::env::var_os("PLINTH_TEST_PANIC").is_some();
        assert!(!panics, "PLINTH_TEST_PANIC asked for it");
        perform(effect);
    };
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
