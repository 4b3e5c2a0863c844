//! Runs the binary that Cargo built for these tests.

use std::{
    fs,
    path::Path,
    process::Command,
    time::{Duration, Instant},
};

use plinth_run::{Event, EventKind, Outcome, journal};
use plinth_support::Process;
use tempfile::TempDir;

/// Longer than any run of a test takes on a busy machine.
const LIMIT: Duration = Duration::from_mins(3);

/// A running plinth; killed with signal 9 when dropped, and when the test is.
pub(crate) struct Run {
    process: Process,
    folder: TempDir,
    shown: String,
}

/// A plinth that has ended.
#[derive(Debug)]
pub(crate) struct Finished {
    pub(crate) code: i32,
    pub(crate) stdout: String,
    pub(crate) stderr: String,
}

impl Run {
    pub(crate) fn start(arguments: &[&str]) -> Self {
        Self::start_with(arguments, &[])
    }

    /// Starts it with further environment variables. It sees no configuration of the machine.
    pub(crate) fn start_with(arguments: &[&str], environment: &[(&str, &Path)]) -> Self {
        let folder = TempDir::with_prefix("plinth-run-").unwrap();
        let mut command = Command::new("sh");
        command
            .arg("-c")
            .arg(r#"echo $$ >"$PLINTH_PID"; exec "$@" >"$PLINTH_OUT" 2>"$PLINTH_ERR""#)
            .arg("run")
            .arg(env!("CARGO_BIN_EXE_plinth"));
        command.args(arguments).env("PLINTH_OUT", folder.path().join("out")).env("PLINTH_ERR", folder.path().join("err"));
        command.env("PLINTH_PID", folder.path().join("pid"));
        for variable in ["HOME", "XDG_STATE_HOME", "XDG_CACHE_HOME", "XDG_CONFIG_HOME", "DOCKER_CONFIG"] {
            command.env(variable, folder.path());
        }
        command.env_remove("KUBECONFIG").envs(environment.iter().copied());
        let process = Process::start(&command, &folder.path().join("log")).unwrap();
        Self { process, folder, shown: arguments.join(" ") }
    }

    pub(crate) fn is_running(&mut self) -> bool {
        self.process.is_running()
    }

    pub(crate) fn stdout(&self) -> String {
        fs::read_to_string(self.folder.path().join("out")).unwrap_or_default()
    }

    pub(crate) fn stderr(&self) -> String {
        fs::read_to_string(self.folder.path().join("err")).unwrap_or_default()
    }

    /// Sends it a signal, such as `-INT`.
    pub(crate) fn signal(&self, name: &str) {
        let pids = fs::read_to_string(self.folder.path().join("pid")).unwrap();
        assert!(Command::new("kill").args([name, pids.trim()]).status().unwrap().success());
    }

    /// Kills it with signal 9.
    pub(crate) fn kill(self) {
        drop(self);
    }

    /// Waits for its end.
    pub(crate) async fn finish(mut self) -> Finished {
        let started = Instant::now();
        loop {
            if let Some(code) = self.process.exit_code() {
                return Finished { code, stdout: self.stdout(), stderr: self.stderr() };
            }
            let (stdout, stderr) = (self.stdout(), self.stderr());
            assert!(started.elapsed() < LIMIT, "plinth {} did not end:\n{stdout}\n{stderr}", self.shown);
            tokio::time::sleep(Duration::from_millis(20)).await;
        }
    }
}

/// Runs it to its end.
pub(crate) async fn plinth(arguments: &[&str]) -> Finished {
    Run::start(arguments).finish().await
}

impl Finished {
    /// The same, after holding its exit code against `code`.
    pub(crate) fn with_code(self, code: i32) -> Self {
        assert_eq!(self.code, code, "stdout:\n{}\nstderr:\n{}", self.stdout, self.stderr);
        self
    }

    /// The events of a run with `-o json`.
    pub(crate) fn events(&self) -> Vec<EventKind> {
        events(self.stdout.as_bytes())
    }

    /// How a run with `-o json` ended, by its last event.
    pub(crate) fn outcome(&self) -> Outcome {
        match self.events().pop() {
            Some(EventKind::RunFinished { outcome, .. }) => outcome,
            other => panic!("the last event is {other:?}"),
        }
    }
}

/// Events of a stream or a journal, a cut last line left out.
pub(crate) fn events(text: &[u8]) -> Vec<EventKind> {
    let replay = journal::decode(text).unwrap();
    replay.events.into_iter().map(|Event { kind, .. }| kind).collect()
}
