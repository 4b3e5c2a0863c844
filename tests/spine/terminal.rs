//! `plinth up` on a terminal: the real binary on a pseudo-terminal, its screen read as a person reads it.

use std::{
    io::{Read, Write},
    sync::{Arc, Mutex},
    thread,
    time::{Duration, Instant},
};

use plinth_support::Identity;
use portable_pty::{Child, CommandBuilder, MasterPty, PtySize, native_pty_system};
use tempfile::TempDir;

use crate::{distribution::Distribution, plinth::plinth, world::World};

/// How long a screen may take to show something.
const LIMIT: Duration = Duration::from_mins(2);
/// Back from the alternate screen: what a sane end leaves behind.
pub(crate) const LEFT: &str = "\u{1b}[?1049l";

/// A terminal of 100 columns and 30 rows with plinth in it.
pub(crate) struct Screen {
    child: Box<dyn Child + Send + Sync>,
    keys: Box<dyn Write + Send>,
    seen: Arc<Mutex<Seen>>,
    _master: Box<dyn MasterPty + Send>,
    _home: TempDir,
}

struct Seen {
    screen: vt100::Parser,
    bytes: Vec<u8>,
}

impl Screen {
    pub(crate) fn open(arguments: &[&str]) -> Self {
        let mut command = CommandBuilder::new(env!("CARGO_BIN_EXE_plinth"));
        command.args(arguments);
        command.env("TERM", "xterm-256color");
        command.env_remove("NO_COLOR");
        Self::start(command)
    }

    /// Starts any program on the terminal that its environment names. It sees no configuration of the machine.
    pub(crate) fn start(mut command: CommandBuilder) -> Self {
        let pair = native_pty_system().openpty(PtySize { rows: 30, cols: 100, pixel_width: 0, pixel_height: 0 }).unwrap();
        let home = TempDir::with_prefix("plinth-home-").unwrap();
        command.env("HOME", home.path());
        // On a build server it would rightly not draw.
        command.env_remove("CI");
        let child = pair.slave.spawn_command(command).unwrap();
        drop(pair.slave);
        let seen = Arc::new(Mutex::new(Seen { screen: vt100::Parser::new(30, 100, 0), bytes: Vec::new() }));
        let (mut reader, keys) = (pair.master.try_clone_reader().unwrap(), pair.master.take_writer().unwrap());
        let sink = Arc::clone(&seen);
        thread::spawn(move || {
            let mut buffer = [0; 4096];
            while let Ok(count @ 1..) = reader.read(&mut buffer) {
                let mut seen = sink.lock().unwrap();
                seen.screen.process(&buffer[..count]);
                seen.bytes.extend_from_slice(&buffer[..count]);
            }
        });
        Self { child, keys, seen, _master: pair.master, _home: home }
    }

    pub(crate) fn text(&self) -> String {
        self.seen.lock().unwrap().screen.screen().contents()
    }

    pub(crate) async fn until_shows(&self, words: &str) -> String {
        let started = Instant::now();
        loop {
            let text = self.text();
            if text.contains(words) {
                return text;
            }
            assert!(started.elapsed() < LIMIT, "the screen never showed {words:?}:\n{text}");
            tokio::time::sleep(Duration::from_millis(50)).await;
        }
    }

    pub(crate) fn press(&mut self, key: &str) {
        self.keys.write_all(key.as_bytes()).unwrap();
        self.keys.flush().unwrap();
    }

    /// Everything that was written so far.
    pub(crate) fn bytes(&self) -> String {
        String::from_utf8_lossy(&self.seen.lock().unwrap().bytes).into_owned()
    }

    /// The program's process.
    pub(crate) fn process(&self) -> u32 {
        self.child.process_id().unwrap()
    }

    /// Waits for its end; the terminal has to be as it was.
    pub(crate) async fn end(&mut self) -> u32 {
        let code = self.exit().await;
        let output = self.bytes();
        assert!(output.contains(LEFT), "the alternate screen was not left");
        assert!(output.rfind("\u{1b}[?25h") > output.rfind("\u{1b}[?25l"), "the cursor stayed hidden");
        code
    }

    /// Waits for its end.
    pub(crate) async fn exit(&mut self) -> u32 {
        let started = Instant::now();
        let status = loop {
            if let Some(status) = self.child.try_wait().unwrap() {
                break status;
            }
            assert!(started.elapsed() < LIMIT, "it did not end:\n{}", self.text());
            tokio::time::sleep(Duration::from_millis(20)).await;
        };
        tokio::time::sleep(Duration::from_millis(200)).await;
        status.exit_code()
    }
}

impl Drop for Screen {
    fn drop(&mut self) {
        let _gone = self.child.kill();
    }
}

#[tokio::test(flavor = "multi_thread")]
async fn a_terminal_shows_the_plan_asks_once_and_shows_the_tree() {
    let distribution = Distribution::sample();
    let world = World::start(&distribution).await;
    let (source, kubeconfig) = (distribution.source(), world.kubeconfig());
    let journal = world.journal().display().to_string();
    let arguments = ["up", &source, "--kubeconfig", &kubeconfig, "--journal", &journal];

    let mut declined = Screen::open(&arguments);
    let question = declined.until_shows("apply this plan?").await;
    assert!(question.contains("deferred") || question.contains("defer "), "the plan does not say what waits:\n{question}");
    let context = format!("context   {}", Identity::Admin.name());
    assert!(question.contains(&context), "the question does not say which context it is about:\n{question}");
    declined.press("n");
    assert_eq!(declined.end().await, 4);
    assert!(world.writes().is_empty(), "a plan that was declined wrote {:#?}", world.writes());

    // No answer: at the question, and while the plan is looked at first.
    for keys in ["\u{3}", "\u{1b}\u{3}"] {
        let mut interrupted = Screen::open(&arguments);
        interrupted.until_shows("apply this plan?").await;
        for key in keys.chars() {
            interrupted.press(&key.to_string());
            tokio::time::sleep(Duration::from_millis(300)).await;
        }
        assert_eq!(interrupted.end().await, 130);
        assert!(world.writes().is_empty(), "an interrupted question wrote {:#?}", world.writes());
    }

    let mut screen = Screen::open(&arguments);
    screen.until_shows("apply this plan?").await;
    screen.press("y");
    screen.until_shows("waiting").await;
    let done = screen.until_shows("DONE").await;
    for words in ["[2 TREE]", "OpenControl", "OpenMCPOp", "/default", "why:"] {
        assert!(done.contains(words), "the screen lacks {words}:\n{done}");
    }
    screen.press("q");
    assert_eq!(screen.end().await, 0);
    assert!(!world.writes().is_empty());
}

/// For screen readers: the same plan and the same question, in lines that are only appended.
#[tokio::test(flavor = "multi_thread")]
async fn plain_text_asks_too() {
    let distribution = Distribution::sample();
    let world = World::start(&distribution).await;
    let (source, kubeconfig) = (distribution.source(), world.kubeconfig());
    let journal = world.journal().display().to_string();
    let arguments = ["up", &source, "--plain", "--kubeconfig", &kubeconfig, "--journal", &journal];

    let mut declined = Screen::open(&arguments);
    declined.until_shows("y applies it").await;
    assert!(declined.bytes().contains("waits for"), "the plan does not say what waits:\n{}", declined.bytes());
    declined.press("n\n");
    assert_eq!(declined.exit().await, 4);
    assert!(world.writes().is_empty(), "a plan that was declined wrote {:#?}", world.writes());

    let mut screen = Screen::open(&arguments);
    screen.until_shows("y applies it").await;
    screen.press("y\n");
    assert_eq!(screen.exit().await, 0, "{}", screen.bytes());
    assert!(screen.bytes().contains("done") && !screen.bytes().contains('\u{1b}'), "{}", screen.bytes());
}

/// The first thing that somebody runs: nothing is asked, and nothing is needed.
#[tokio::test(flavor = "multi_thread")]
async fn a_demo_is_watched() {
    let folder = TempDir::new().unwrap();
    let kubeconfig = folder.path().join("config");
    std::fs::write(&kubeconfig, "{contexts: [{name: production, context: {cluster: c}}], current-context: production}").unwrap();
    let mut screen = Screen::open(&["demo", "--fast", "--kubeconfig", &kubeconfig.display().to_string()]);
    let done = screen.until_shows("DONE").await;
    assert!(done.contains("in this process") && !done.contains("production"), "a demo touches no cluster:\n{done}");
    assert!(done.contains("OpenMCPOp"), "the screen lacks the platform:\n{done}");
    screen.press("q");
    assert_eq!(screen.end().await, 0);
}

#[tokio::test(flavor = "multi_thread")]
async fn without_a_terminal_up_says_what_to_do_instead() {
    let distribution = Distribution::sample();
    let run = plinth(&["up", &distribution.source()]).await.with_code(64);
    assert!(run.stderr.contains("--apply") && run.stderr.contains("plinth plan"), "{}", run.stderr);
}

#[tokio::test(flavor = "multi_thread")]
async fn down_shows_its_plan_and_asks() {
    let distribution = Distribution::sample();
    let world = World::start(&distribution).await;
    let kubeconfig = world.kubeconfig();
    world.up(&distribution.source(), &[]).await.with_code(0);
    let written = world.writes();
    for (answer, code) in [("n\n", 4), ("y\n", 4), ("default\n", 0)] {
        let mut screen = Screen::open(&["down", "--kubeconfig", &kubeconfig]);
        let question = screen.until_shows("everything else writes nothing").await;
        assert!(question.contains("delete"), "the plan does not say what goes:\n{question}");
        assert!(question.contains("default applies it"), "a platform is taken away by its name:\n{question}");
        assert_eq!(world.writes(), written, "nothing is removed before the answer");
        screen.press(answer);
        assert_eq!(screen.exit().await, code);
    }
}
