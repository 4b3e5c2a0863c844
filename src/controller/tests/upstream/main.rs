//! The loop on the embedded control plane, over what people found wrong with kro (kro.md section 22).
#![allow(clippy::unwrap_used, reason = "tests may unwrap")]

mod rows;
mod stage;
mod waiting;
