//! Health in words that people read.

pub use plinth_engine::health::Health;

/// Reason of what is wanted and does not exist.
pub const MISSING: &str = "NotFound";
/// Reason of what does not exist and is not wanted any more.
pub const NOT_WANTED: &str = "NotWanted";
/// Reason of what the API server refuses: trying again does not help.
pub const REFUSED: &str = "Refused";

/// All of them, in the order of the enum.
pub const ALL: [Health; 7] = [
    Health::Current,
    Health::InProgress,
    Health::Waiting,
    Health::Failed,
    Health::Terminating,
    Health::NotFound,
    Health::Unknown,
];

/// The word for it, lower case. Waiting, progressing and failed are three words (ux.md lesson 2).
pub fn word(health: Health) -> &'static str {
    match health {
        Health::Current => "ready",
        Health::InProgress => "progressing",
        Health::Waiting => "waiting",
        Health::Failed => "failed",
        Health::Terminating => "terminating",
        Health::NotFound => "missing",
        Health::Unknown => "unknown",
    }
}
