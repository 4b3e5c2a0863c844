//! From signals to an orderly end.

use std::{
    io,
    sync::{Arc, OnceLock},
};

use tokio::signal::unix::{SignalKind, signal};
use tokio_util::{sync::CancellationToken, task::AbortOnDropHandle};

/// Waits for SIGINT and SIGTERM as long as it lives. The first one cancels the token; what a second one means is the
/// caller's affair ([`Shutdown::again`]).
pub struct Shutdown {
    token: CancellationToken,
    again: CancellationToken,
    cause: Arc<OnceLock<&'static str>>,
    _listener: AbortOnDropHandle<()>,
}

impl Shutdown {
    /// Starts to listen.
    pub fn on_signals() -> io::Result<Self> {
        let mut interrupt = signal(SignalKind::interrupt())?;
        let mut terminate = signal(SignalKind::terminate())?;
        let (token, again, cause) = (CancellationToken::new(), CancellationToken::new(), Arc::new(OnceLock::new()));
        let (first, second, why) = (token.clone(), again.clone(), Arc::clone(&cause));
        let listener = tokio::spawn(async move {
            for token in [first, second] {
                let name = tokio::select! {
                    biased;
                    _ = terminate.recv() => "SIGTERM",
                    _ = interrupt.recv() => "SIGINT",
                };
                let _ = why.set(name);
                token.cancel();
            }
        });
        Ok(Self { token, again, cause, _listener: AbortOnDropHandle::new(listener) })
    }

    /// Cancelled by the first signal.
    pub fn token(&self) -> CancellationToken {
        self.token.clone()
    }

    /// Cancelled by the second signal: somebody is impatient.
    pub fn again(&self) -> CancellationToken {
        self.again.clone()
    }

    /// Name of the first signal, once there was one.
    pub fn cause(&self) -> Option<&'static str> {
        self.cause.get().copied()
    }
}
