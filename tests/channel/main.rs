//! Release channels and the air gap, with the real `plinth` on archives of both OCM tools and on a real registry.

#![expect(clippy::unwrap_used, reason = "test code: a panic is a failed test")]

mod bundle;
mod cache;
mod documents;
mod hostile;
mod list;
mod prove;
mod push;
mod words;

use std::path::{Path, PathBuf};
use std::process::Command;

use tempfile::TempDir;

/// The umbrella in the corpus.
const CHANNEL: &str = "acme.example/releasechannel/stable:2026.11.0";

/// The corpus: `PLINTH_DATA`, else beside the workspace.
fn corpus() -> PathBuf {
    let data = std::env::var_os("PLINTH_DATA")
        .map_or_else(|| Path::new(env!("CARGO_MANIFEST_DIR")).join("../shared/data"), PathBuf::from);
    data.join("ocm")
}

/// An archive of the corpus as a SOURCE.
fn archive(name: &str, component: &str) -> String {
    format!("ctf::{}//{component}", corpus().join(name).display())
}

/// A plinth that has ended.
struct Finished {
    code: i32,
    stdout: Vec<u8>,
    stderr: String,
}

impl Finished {
    fn with_code(self, code: i32) -> Self {
        assert_eq!(self.code, code, "stdout:\n{}\nstderr:\n{}", String::from_utf8_lossy(&self.stdout), self.stderr);
        self
    }

    fn text(&self) -> String {
        String::from_utf8(self.stdout.clone()).unwrap()
    }

    fn json(&self) -> serde_json::Value {
        serde_json::from_slice(&self.stdout).unwrap()
    }
}

/// The command, which sees no configuration of this machine.
fn command(home: &Path, arguments: &[&str]) -> Command {
    let mut command = Command::new(env!("CARGO_BIN_EXE_plinth"));
    command.args(arguments).env_remove("KUBECONFIG").env("HOME", home);
    for variable in ["XDG_STATE_HOME", "XDG_CACHE_HOME", "XDG_CONFIG_HOME", "DOCKER_CONFIG", "PLINTH_CACHE", "OCM_CONFIG"] {
        command.env_remove(variable);
    }
    command
}

fn finished(mut command: Command) -> Finished {
    let output = command.output().unwrap();
    let stderr = String::from_utf8_lossy(&output.stderr).into_owned();
    Finished { code: output.status.code().unwrap(), stdout: output.stdout, stderr }
}

/// Runs it to its end.
fn plinth(arguments: &[&str]) -> Finished {
    let home = TempDir::new().unwrap();
    finished(command(home.path(), arguments))
}

/// `bundle create` with these arguments and a small stand-in for plinth itself.
fn bundled(arguments: &[&str]) -> Finished {
    let folder = TempDir::new().unwrap();
    let program = folder.path().join("plinth");
    std::fs::write(&program, static_program()).unwrap();
    plinth(&[&["bundle", "create", "--program", program.to_str().unwrap()], arguments].concat())
}

/// A static executable of this machine, as far as its header says.
fn static_program() -> Vec<u8> {
    let mut bytes = vec![0; 50_000];
    bytes[..6].copy_from_slice(&[0x7f, b'E', b'L', b'F', 2, 1]);
    bytes[18] = 0x3e;
    bytes
}
