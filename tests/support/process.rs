//! A child process that cannot outlive us.
//!
//! The child runs under a shell that waits on a pipe whose other end is ours. When we drop it, panic or are killed with
//! signal 9, the kernel closes the pipe, the shell reads the end of it and kills its whole process group. No signal
//! handler, no `prctl`, no unsafe code.

use std::{
    fs::{File, OpenOptions},
    io,
    os::unix::process::CommandExt,
    path::{Path, PathBuf},
    process::{Child, ChildStdin, Command, Stdio},
    thread,
    time::{Duration, Instant},
};

use thiserror::Error;

/// Why something could not be started.
#[derive(Debug, Error)]
pub enum StartError {
    /// A program is not on this machine.
    #[error("{program} is missing: {get_it}")]
    Missing {
        /// Its name.
        program: String,
        /// The command that gets it.
        get_it: String,
    },
    /// The operating system refused something.
    #[error("{doing}: {source}")]
    Io {
        /// What was being done to which thing.
        doing: String,
        /// The cause.
        source: io::Error,
    },
    /// A program ended, or was not ready in time.
    #[error("{program} {what}; the end of its log:\n{log}")]
    NotReady {
        /// Its name.
        program: String,
        /// What happened.
        what: String,
        /// The last lines it wrote.
        log: String,
    },
    /// A helper program answered with an error.
    #[error("{doing}: {message}")]
    Helper {
        /// What was being done to which thing.
        doing: String,
        /// What the helper said.
        message: String,
    },
}

impl StartError {
    pub(crate) fn io(doing: impl Into<String>) -> impl FnOnce(io::Error) -> Self {
        let doing = doing.into();
        move |source| Self::Io { doing, source }
    }

    /// Whether another process took the port between our choosing and using it.
    pub(crate) fn is_port_taken(&self) -> bool {
        matches!(self, Self::NotReady { log, .. } if log.contains("address already in use"))
    }
}

/// Descriptor 3 is the pipe. The child must not inherit it, or it would keep the watch from ending.
/// `PLINTH_REMOVE` is a folder that goes with the child, for owners that never get to remove it themselves.
const WATCH: &str = r#"
exec 3<&0 </dev/null
"$@" 3<&- &
child=$!
(read -r _ <&3; trap "" TERM; kill -KILL "$child"; [ -z "$PLINTH_REMOVE" ] || rm -rf "$PLINTH_REMOVE"; kill -KILL 0) &
watch=$!
exec 3<&-
wait "$child"
code=$?
kill "$watch"
exit "$code"
"#;

/// How many lines of a log an error shows.
const LOG_LINES: usize = 25;

/// A running program, killed with its whole group when dropped.
#[derive(Debug)]
pub struct Process {
    program: String,
    log: PathBuf,
    shell: Child,
    lifeline: Option<ChildStdin>,
}

impl Process {
    /// Starts `command` with standard output and error appended to `log`.
    pub fn start(command: &Command, log: &Path) -> Result<Self, StartError> {
        Self::start_with_folder(command, log, Path::new(""))
    }

    /// The same for a program that owns `folder`, which is removed when we end, however we end.
    pub fn start_with_folder(command: &Command, log: &Path, folder: &Path) -> Result<Self, StartError> {
        let program = command.get_program().to_string_lossy().into_owned();
        let output = append_to(log)?;
        let errors = output.try_clone().map_err(StartError::io(format!("open {}", log.display())))?;
        let mut watched = Command::new("sh");
        watched.arg("-c").arg(WATCH).arg("watch").arg(&program).args(command.get_args());
        for (name, value) in command.get_envs() {
            match value {
                Some(value) => watched.env(name, value),
                None => watched.env_remove(name),
            };
        }
        watched.env("PLINTH_REMOVE", folder);
        // Its own group: an interrupt from the terminal reaches us alone, and the pipe does the rest.
        watched.process_group(0).stdin(Stdio::piped()).stdout(output).stderr(errors);
        let mut shell = watched.spawn().map_err(StartError::io(format!("start {program}")))?;
        let lifeline = shell.stdin.take();
        Ok(Self { program, log: log.to_owned(), shell, lifeline })
    }

    /// Whether it still runs.
    pub fn is_running(&mut self) -> bool {
        matches!(self.shell.try_wait(), Ok(None))
    }

    /// Waits until `ready` holds, the program ends, or `limit` is over.
    pub fn wait_until(&mut self, limit: Duration, mut ready: impl FnMut() -> bool) -> Result<(), StartError> {
        let started = Instant::now();
        while started.elapsed() < limit {
            if !self.is_running() {
                return Err(self.not_ready("ended before it was ready"));
            }
            if ready() {
                return Ok(());
            }
            thread::sleep(Duration::from_millis(50));
        }
        Err(self.not_ready(&format!("was not ready within {} s", limit.as_secs())))
    }

    /// The exit code once it has ended: the shell's, so 128 and the number for a signal. `None` while it runs.
    pub fn exit_code(&mut self) -> Option<i32> {
        self.shell.try_wait().ok().flatten().and_then(|status| status.code())
    }

    /// The program's own process id; `None` once it has ended.
    pub fn pid(&self) -> Option<u32> {
        let is_child = |pid: &u32| {
            let stat = std::fs::read_to_string(format!("/proc/{pid}/stat")).unwrap_or_default();
            // Behind the name in brackets: state, then the parent.
            let parent = stat.rsplit(')').next().and_then(|rest| rest.split_whitespace().nth(1)?.parse().ok());
            parent == Some(self.shell.id())
        };
        let runs_program = |pid: &u32| {
            let words = std::fs::read(format!("/proc/{pid}/cmdline")).unwrap_or_default();
            words.split(|byte| *byte == 0).next() == Some(self.program.as_bytes())
        };
        let all = std::fs::read_dir("/proc").ok()?.filter_map(|entry| entry.ok()?.file_name().to_str()?.parse().ok());
        all.filter(is_child).find(runs_program)
    }

    fn not_ready(&self, what: &str) -> StartError {
        StartError::NotReady { program: self.program.clone(), what: what.to_owned(), log: tail(&self.log) }
    }
}

impl Drop for Process {
    fn drop(&mut self) {
        self.lifeline = None;
        // The group was killed with signal 9, so this returns at once; an error means it is gone already.
        let _ = self.shell.wait();
    }
}

fn append_to(log: &Path) -> Result<File, StartError> {
    OpenOptions::new().create(true).append(true).open(log).map_err(StartError::io(format!("open {}", log.display())))
}

fn tail(log: &Path) -> String {
    let text = std::fs::read(log).map(|bytes| String::from_utf8_lossy(&bytes).into_owned()).unwrap_or_default();
    let lines: Vec<_> = text.lines().collect();
    lines[lines.len().saturating_sub(LOG_LINES)..].join("\n")
}

/// Runs a helper program to its end and gives its standard output.
pub(crate) fn output(command: &mut Command, doing: &str) -> Result<Vec<u8>, StartError> {
    let result = command.output().map_err(StartError::io(doing))?;
    if result.status.success() {
        return Ok(result.stdout);
    }
    let message = String::from_utf8_lossy(&result.stderr).trim().to_owned();
    Err(StartError::Helper { doing: doing.to_owned(), message })
}

/// A port of 127.0.0.1 that was free a moment ago; who uses it tries again where it was taken meanwhile.
pub(crate) fn free_port() -> Result<u16, StartError> {
    let listener = std::net::TcpListener::bind("127.0.0.1:0").map_err(StartError::io("find a free port"))?;
    Ok(listener.local_addr().map_err(StartError::io("find a free port"))?.port())
}

/// Tries `start` again where a port was taken, three times in all.
pub(crate) fn with_free_ports<T>(mut start: impl FnMut() -> Result<T, StartError>) -> Result<T, StartError> {
    for _ in 0..2 {
        match start() {
            Err(error) if error.is_port_taken() => {}
            done => return done,
        }
    }
    start()
}

#[cfg(test)]
mod tests;
