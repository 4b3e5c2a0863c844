//! A TCP proxy that can cut connections.

use std::{
    io,
    net::{Shutdown, SocketAddr, TcpListener, TcpStream},
    sync::{
        Arc, Mutex, PoisonError,
        atomic::{AtomicBool, AtomicUsize, Ordering},
    },
    thread,
    time::Duration,
};

use crate::process::StartError;

/// Passes bytes between its own port and a target until told to cut.
#[derive(Debug)]
pub struct Proxy {
    address: SocketAddr,
    state: Arc<State>,
}

#[derive(Debug, Default)]
struct State {
    open: Mutex<Vec<TcpStream>>,
    refuse: AtomicBool,
    accepted: AtomicUsize,
    stopped: AtomicBool,
}

impl Proxy {
    /// Listens on a free port of 127.0.0.1 for connections to `target`.
    pub fn start(target: SocketAddr) -> Result<Self, StartError> {
        let listener = TcpListener::bind("127.0.0.1:0").map_err(StartError::io("start a proxy"))?;
        let address = listener.local_addr().map_err(StartError::io("start a proxy"))?;
        let state = Arc::new(State::default());
        let shared = Arc::clone(&state);
        thread::spawn(move || accept(&listener, target, &shared));
        Ok(Self { address, state })
    }

    /// Where it listens.
    pub fn address(&self) -> SocketAddr {
        self.address
    }

    /// How many connections it passed on.
    pub fn accepted(&self) -> usize {
        self.state.accepted.load(Ordering::SeqCst)
    }

    /// Cuts every open connection in the middle of whatever it carries, and says how many.
    pub fn cut(&self) -> usize {
        let open = std::mem::take(&mut *self.state.open.lock().unwrap_or_else(PoisonError::into_inner));
        for stream in &open {
            // An error means that one side was faster.
            let _ = stream.shutdown(Shutdown::Both);
        }
        // Each connection has two ends.
        open.len() / 2
    }

    /// From now on closes every connection at once (`true`, which also cuts the open ones), or serves again.
    pub fn refuse(&self, refuse: bool) {
        self.state.refuse.store(refuse, Ordering::SeqCst);
        if refuse {
            self.cut();
        }
    }
}

impl Drop for Proxy {
    fn drop(&mut self) {
        self.state.stopped.store(true, Ordering::SeqCst);
        self.cut();
        // Wakes the thread that waits in `accept`.
        let _ = TcpStream::connect_timeout(&self.address, Duration::from_secs(1));
    }
}

fn accept(listener: &TcpListener, target: SocketAddr, state: &Arc<State>) {
    for client in listener.incoming().filter_map(Result::ok) {
        if state.stopped.load(Ordering::SeqCst) {
            return;
        }
        if state.refuse.load(Ordering::SeqCst) {
            continue;
        }
        // Where the target is down, the client sees its connection closed, as it would without us.
        let _ = connect(client, target, state);
    }
}

fn connect(client: TcpStream, target: SocketAddr, state: &State) -> io::Result<()> {
    let server = TcpStream::connect(target)?;
    let pairs = [(client.try_clone()?, server.try_clone()?), (server.try_clone()?, client.try_clone()?)];
    let mut open = state.open.lock().unwrap_or_else(PoisonError::into_inner);
    open.extend([client, server]);
    drop(open);
    state.accepted.fetch_add(1, Ordering::SeqCst);
    for (mut from, mut to) in pairs {
        thread::spawn(move || {
            let _ = io::copy(&mut from, &mut to);
            let _ = to.shutdown(Shutdown::Write);
        });
    }
    Ok(())
}
