//! The terminal view from outside: what it costs while nothing happens, and in a multiplexer.

use std::{
    fs,
    process::{Command, Output},
    time::{Duration, Instant},
};

use portable_pty::CommandBuilder;
use tempfile::TempDir;

use crate::{
    looks::{JOURNAL, silent_server},
    terminal::Screen,
};

/// How long an idle terminal is watched.
const WATCHED: Duration = Duration::from_secs(20);

/// Seconds of processor time that a process has used (proc(5): fields 14 and 15 in hundredths).
fn used(process: u32) -> f64 {
    let stat = fs::read_to_string(format!("/proc/{process}/stat")).unwrap();
    // The name may hold blanks; it ends with the last bracket.
    let fields: Vec<&str> = stat[stat.rfind(')').unwrap() + 2..].split(' ').collect();
    (fields[11].parse::<f64>().unwrap() + fields[12].parse::<f64>().unwrap()) / 100.0
}

/// Percent of a core over some time in which nothing happens.
async fn share(screen: &Screen) -> f64 {
    let (before, started) = (used(screen.process()), Instant::now());
    tokio::time::sleep(WATCHED).await;
    (used(screen.process()) - before) / started.elapsed().as_secs_f64() * 100.0
}

#[tokio::test(flavor = "multi_thread")]
async fn show_06_idle() {
    let mut command = CommandBuilder::new(env!("CARGO_BIN_EXE_plinth"));
    command.args(["replay", JOURNAL, "--speed", "100000"]);
    command.env("TERM", "xterm-256color");
    let mut over = Screen::start(command);
    over.until_shows("DONE").await;
    let folder = TempDir::with_prefix("plinth-idle-").unwrap();
    let (_listener, kubeconfig) = silent_server(folder.path());
    let mut waiting = Screen::open(&["dash", "--kubeconfig", &kubeconfig]);
    waiting.until_shows("[2 TREE]").await;
    let (of_replay, of_dash) = tokio::join!(share(&over), share(&waiting));
    for (name, share) in [("replay", of_replay), ("dash", of_dash)] {
        assert!(share < 1.0, "an idle {name} takes {share:.2} % of a core");
    }
    for screen in [&mut over, &mut waiting] {
        screen.press("q");
        assert_eq!(screen.end().await, 0);
    }
    let seconds = WATCHED.as_secs();
    eprintln!("SHOW 06 idle replay {of_replay:.2} %, dash {of_dash:.2} % of a core over {seconds} s, unoptimised build");
}

/// A tmux server of its own, which ends with the test.
struct Tmux(TempDir);

impl Tmux {
    fn run(&self, arguments: &[&str]) -> Output {
        let socket = self.0.path().join("socket");
        let run = Command::new("tmux").arg("-S").arg(socket).args(["-f", "/dev/null"]).args(arguments).output();
        run.expect("this test needs tmux: apt-get install tmux (./dev test does)")
    }

    fn text(&self) -> String {
        String::from_utf8_lossy(&self.run(&["capture-pane", "-p", "-t", "plinth"]).stdout).into_owned()
    }

    async fn until_shows(&self, words: &str) -> String {
        let started = Instant::now();
        loop {
            let text = self.text();
            if text.contains(words) {
                return text;
            }
            assert!(started.elapsed() < Duration::from_mins(1), "the pane never showed {words:?}:\n{text}");
            tokio::time::sleep(Duration::from_millis(100)).await;
        }
    }

    fn press(&self, keys: &[&str]) {
        assert!(self.run(&[&["send-keys", "-t", "plinth"], keys].concat()).status.success());
    }
}

impl Drop for Tmux {
    fn drop(&mut self) {
        self.run(&["kill-server"]);
    }
}

#[tokio::test(flavor = "multi_thread")]
async fn show_06_tmux() {
    let tmux = Tmux(TempDir::with_prefix("plinth-tmux-").unwrap());
    let shell =
        ["new-session", "-d", "-s", "plinth", "-x", "80", "-y", "24", "env -u CI PS1='ready> ' bash --norc --noprofile -i"];
    let started = tmux.run(&shell);
    assert!(started.status.success(), "{}", String::from_utf8_lossy(&started.stderr));
    tmux.until_shows("ready>").await;
    tmux.press(&[&format!("'{}' replay '{JOURNAL}' --speed 100000", env!("CARGO_BIN_EXE_plinth")), "Enter"]);
    tmux.until_shows("DONE").await;
    tmux.press(&["4"]);
    tmux.until_shows("[4 EVENTS]").await;
    tmux.press(&["/"]);
    tmux.press(&["state:created"]);
    tmux.press(&["Enter"]);
    let filtered = tmux.until_shows("filter: state:created").await;
    assert!(filtered.lines().all(|line| line.chars().count() <= 80), "{filtered}");
    assert!(tmux.run(&["resize-window", "-t", "plinth", "-x", "60", "-y", "15"]).status.success());
    tmux.press(&["2"]);
    tmux.until_shows("[2 TREE]").await;
    tmux.press(&["q"]);
    let left = tmux.until_shows("ready>").await;
    assert!(!left.contains("[2 TREE]"), "the screen from before is back:\n{left}");
    eprintln!("SHOW 06 tmux keys by send-keys, screens by capture-pane, one resize, and the shell's screen is back");
}
