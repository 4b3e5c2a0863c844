//! What tests and ./dev sample start: a real API server, a real registry, and what stands in for a cluster.
//!
//! Invariants: nothing outlives the process that started it, however that process ends ([`process`]); a missing program
//! is an error that names the command which gets it, never a skipped test.

#![cfg_attr(test, allow(clippy::unwrap_used))]

pub mod api_server;
pub mod audit;
pub mod certificates;
pub mod ctf;
pub mod json_schema;
pub mod process;
pub mod programs;
pub mod proxy;
pub mod registry;
pub mod scenario;
pub mod stand_in;

pub use api_server::{ApiServer, Identity, code_of};
pub use audit::{AuditEvent, AuditLog, AuditObject};
pub use ctf::Ctf;
pub use process::{Process, StartError};
pub use proxy::Proxy;
pub use registry::{Registry, RegistryOptions};
pub use scenario::Scenario;
pub use stand_in::StandIn;

/// Runs a future to its end from code that may or may not be inside a runtime.
///
/// Uses its own thread and runtime, because blocking inside somebody else's runtime panics.
pub(crate) fn block_on<F>(future: F) -> F::Output
where
    F: Future + Send,
    F::Output: Send,
{
    std::thread::scope(|scope| {
        let worker = scope.spawn(|| {
            tokio::runtime::Builder::new_current_thread()
                .enable_all()
                .build()
                .expect("a runtime needs only memory and an event queue")
                .block_on(future)
        });
        worker.join().unwrap_or_else(|panic| std::panic::resume_unwind(panic))
    })
}

/// Chooses ring as the process's TLS provider; kube and reqwest are both built without a default one.
pub fn use_ring() {
    // An error only says that a provider was chosen before.
    let _ = rustls::crypto::ring::default_provider().install_default();
}
