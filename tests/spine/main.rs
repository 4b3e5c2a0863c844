//! From a release channel to a running platform: the real `plinth` on a real API server and a real registry.
//!
//! Every line under "Show" of the spine is a test `show_01_*` that prints `SHOW 01 <word> <figure>`; the names in the
//! pure rooms (`show_01_names`) are held by `tests/architecture.rs`.

#![expect(clippy::unwrap_used, clippy::print_stderr, reason = "test code: a panic is a failed test, and figures are printed")]

mod attached;
mod back;
mod bad_channel;
mod bad_cluster;
mod bad_rgd;
mod bad_server;
mod beside;
mod by_hand;
mod chart;
mod charted;
mod distribution;
mod drift;
mod egress;
mod embedded;
mod frozen;
mod grant;
mod idle;
mod in_cluster;
mod kill;
mod lacking;
mod load;
mod looks;
mod mirror;
mod names;
mod namespace;
mod offers;
mod platform;
mod plinth;
mod rgd;
mod sample;
mod server;
mod show;
mod state;
mod taken;
mod terminal;
mod torn;
mod unfinished;
mod upgrade;
mod verbs;
mod watch;
mod world;
