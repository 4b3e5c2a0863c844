//! What the terminal asks the world for.

/// A wish of [`crate::update::update`]; whoever runs the loop fulfils it.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Effect {
    /// The plan is agreed to.
    Approve,
    /// The plan is turned down: nothing is written.
    Decline,
    /// A run that goes on is to be interrupted; it can be resumed.
    Interrupt,
    /// The terminal closes.
    Quit,
}
