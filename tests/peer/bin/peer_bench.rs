//! `peer-bench [kro|plinth] [--quick]`: what the same work costs kro and our loop (`bench/peer-kro`).

use std::{io::Write, process::ExitCode};

use plinth_peer::{bench, peers::Peer};

#[tokio::main]
async fn main() -> ExitCode {
    plinth_support::use_ring();
    let arguments: Vec<String> = std::env::args().skip(1).collect();
    let asked = |word: &str| arguments.iter().any(|argument| argument == word);
    let peers = match (asked("kro"), asked("plinth")) {
        (true, false) => vec![Peer::Kro],
        (false, true) => vec![Peer::Plinth],
        _ => vec![Peer::Kro, Peer::Plinth],
    };
    let mut say = |line: &str| {
        let mut stdout = std::io::stdout();
        let _ = writeln!(stdout, "{line}").and_then(|()| stdout.flush());
    };
    match bench::run(&peers, asked("--quick"), &mut say).await {
        Ok(()) => ExitCode::SUCCESS,
        Err(error) => {
            let _ = writeln!(std::io::stderr(), "peer-bench: {error}");
            ExitCode::FAILURE
        }
    }
}
