//! The loop: keys, size, time and the run's events go in, screens and effects come out.

use std::{
    io,
    sync::{
        atomic::{AtomicBool, Ordering},
        mpsc::{Receiver, TryRecvError},
    },
    time::Duration,
};

use crossterm::event::{self, Event as Input};
use jiff::Timestamp;

use crate::{
    effect::Effect,
    message::Message,
    model::Model,
    terminal::{self, Guard},
    update::update,
    view,
};

/// How long the loop waits for a key before it looks at the run again: at most ten frames a second, which SSH bears.
const PATIENCE: Duration = Duration::from_millis(100);

/// Runs until [`Effect::Quit`], or until `close` is set (a signal asked the process to end). `clock` gives the time, `perform` fulfils every other effect.
///
/// Blocks its thread. Ends with an error where the terminal cannot be used.
pub fn run(
    mut model: Model,
    messages: &Receiver<Message>,
    close: &AtomicBool,
    clock: impl Fn() -> Timestamp,
    mut perform: impl FnMut(Effect),
) -> io::Result<Model> {
    let mut guard = Guard::open()?;
    let size = guard.screen.size()?;
    update(&mut model, Message::Resize { width: size.width, height: size.height });
    let mut drawn_at = None;
    while !close.load(Ordering::Relaxed) {
        // Ages are shown in seconds: while nothing happens, one frame a second is enough, and a terminal that waits costs nothing.
        let now = clock();
        if drawn_at != Some(now.as_second()) {
            update(&mut model, Message::Tick(now));
            guard.screen.draw(|frame| view::draw(&model, frame))?;
            drawn_at = Some(now.as_second());
        }
        let (mut effects, mut happened) = drain(&mut model, messages);
        if event::poll(PATIENCE)? {
            effects.extend(input(&mut model, &event::read()?));
            happened = true;
        }
        if happened {
            drawn_at = None;
        }
        for effect in effects {
            match effect {
                Effect::Quit => return Ok(model),
                Effect::Copy(text) => terminal::copy(&text)?,
                Effect::Suspend => {
                    guard = guard.suspend()?;
                    drawn_at = None;
                }
                effect => perform(effect),
            }
        }
    }
    Ok(model)
}

/// Takes what the run said since the last look, and whether there was anything. A run that has gone away has already said how
/// it ended.
fn drain(model: &mut Model, messages: &Receiver<Message>) -> (Vec<Effect>, bool) {
    let mut effects = Vec::new();
    let mut happened = false;
    loop {
        match messages.try_recv() {
            Ok(message) => effects.extend(update(model, message)),
            Err(TryRecvError::Empty | TryRecvError::Disconnected) => return (effects, happened),
        }
        happened = true;
    }
}

fn input(model: &mut Model, input: &Input) -> Vec<Effect> {
    match input {
        Input::Key(event) => terminal::key(*event).map(|key| update(model, Message::Key(key))).unwrap_or_default(),
        Input::Resize(width, height) => update(model, Message::Resize { width: *width, height: *height }),
        _ => Vec::new(),
    }
}
