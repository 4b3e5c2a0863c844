//! The composition root: arguments, wiring, presenters, exit codes.

use std::process::ExitCode;

/// Parses the process's arguments, runs the verb and maps its outcome to an exit code.
pub fn main() -> ExitCode {
    ExitCode::SUCCESS
}
