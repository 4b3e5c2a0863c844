//! What goes wrong on purpose: an API server that is away, writes that conflict. Requests of the control plane itself are spared.

use http::Method;
use thiserror::Error;

use super::api::state::Call;

/// The API server does not answer.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Error)]
#[error("connection refused: the API server is away")]
pub struct Away;

/// The faults in force.
#[derive(Clone, Debug, Default, PartialEq, Eq)]
pub struct Faults {
    away: bool,
    /// How often watches were cut: one that began before the last time ends.
    pub(crate) cuts: u64,
    conflicts: Option<Conflicting>,
}

#[derive(Clone, Debug, PartialEq, Eq)]
struct Conflicting {
    every: u32,
    left: Option<u32>,
    writes: u32,
}

impl Faults {
    /// No request is answered from now on, and running watches break; or all is well again.
    pub fn set_away(&mut self, away: bool) {
        self.away = away;
        self.cuts += u64::from(away);
    }

    /// Every `every`th update or patch is refused as a conflict, `times` in all or without end.
    pub fn conflict_every(&mut self, every: u32, times: Option<u32>) {
        self.conflicts = Some(Conflicting { every: every.max(1), left: times, writes: 0 });
    }

    /// Whether a request meets a conflict instead of its answer.
    pub(crate) fn hit(&mut self, call: &Call) -> Result<bool, Away> {
        if self.away {
            return Err(Away);
        }
        let is_write = [Method::PUT, Method::PATCH].contains(&call.method) && call.query.some("dryRun").is_none();
        let conflicts = self.conflicts.as_mut().filter(|_| is_write);
        Ok(conflicts.is_some_and(Conflicting::hits))
    }
}

impl Conflicting {
    fn hits(&mut self) -> bool {
        self.writes = (self.writes + 1) % self.every;
        if self.writes != 0 || self.left == Some(0) {
            return false;
        }
        self.left = self.left.map(|left| left - 1);
        true
    }
}
