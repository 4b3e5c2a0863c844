//! `peer-live DATA [PART OF A NAME]`: kro and our loop over the corpus' instances (`tests/peer/live.sh`).

use std::{io::Write, path::PathBuf, process::ExitCode};

#[tokio::main]
async fn main() -> ExitCode {
    plinth_support::use_ring();
    let mut arguments = std::env::args().skip(1);
    let Some(data) = arguments.next() else {
        let _ = writeln!(std::io::stderr(), "usage: peer-live DATA [PART OF A NAME]");
        return ExitCode::from(64);
    };
    let mut say = |line: &str| drop(writeln!(std::io::stdout(), "{line}"));
    match plinth_peer::live::run(PathBuf::from(data), &arguments.next().unwrap_or_default(), &mut say).await {
        Ok(true) => ExitCode::SUCCESS,
        Ok(false) => ExitCode::FAILURE,
        Err(error) => {
            let _ = writeln!(std::io::stderr(), "peer-live: {error}");
            ExitCode::FAILURE
        }
    }
}
