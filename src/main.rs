//! The `plinth` binary: everything lives in the rooms, wired by `plinth-cli`.

use std::process::ExitCode;

fn main() -> ExitCode {
    plinth_cli::main()
}
