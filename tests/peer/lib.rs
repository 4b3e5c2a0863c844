//! kro and our loop side by side on real API servers.
//!
//! Two programs use this: `peer-live` holds children and status of corpus instances against each other, `peer-bench` measures
//! the same work done by each. Neither is part of the tests: kro is built from its public module first (`build-kro.sh`).

pub mod bench;
pub mod live;
pub mod objects;
pub mod peers;

/// What anything here may fail with; both programs end with it.
pub type Result<T> = std::result::Result<T, Box<dyn std::error::Error + Send + Sync>>;
