//! `docker-credential-NAME`: programs that know logins. One that does not come to its end is ended.

use std::io::{Read, Write};
use std::process::{Child, ChildStdout, Command, ExitStatus, Stdio};
use std::sync::{Mutex, PoisonError, mpsc};
use std::time::{Duration, Instant};

use serde::Deserialize;

use super::HelperError;
use crate::options::Credential;

/// Helpers are not made for being run twice at once.
static ONE_HELPER: Mutex<()> = Mutex::new(());

/// Bytes of an answer that are read.
const ANSWER: u64 = 1 << 20;
/// Between two looks at whether a helper has ended.
const LOOK: Duration = Duration::from_millis(5);

#[derive(Deserialize)]
#[serde(rename_all = "PascalCase")]
struct HelperAnswer {
    username: String,
    secret: String,
}

/// Asks `docker-credential-NAME get`, which has `patience` for all of it. `None` where the helper knows nothing of the server.
pub(super) fn ask(name: &str, server: &str, patience: Duration) -> Result<Option<Credential>, HelperError> {
    let helper = format!("docker-credential-{name}");
    let failed = |reason: String| HelperError { helper: helper.clone(), reason };
    if name.contains(['/', '\\']) {
        return Err(failed("its name is a path".to_owned()));
    }
    let _guard = ONE_HELPER.lock().unwrap_or_else(PoisonError::into_inner);
    let (status, answer) = run(&helper, server, patience).map_err(failed)?;
    let answer = String::from_utf8_lossy(&answer);
    if !status.success() {
        let knows_nothing = answer.contains("credentials not found");
        return if knows_nothing { Ok(None) } else { Err(failed(format!("it ended with {status}"))) };
    }
    let answer: HelperAnswer =
        serde_json::from_str(&answer).map_err(|_| failed("its answer is not the JSON of a credential".to_owned()))?;
    let is_token = answer.username == "<token>";
    Ok(Some(if is_token {
        Credential::IdentityToken(answer.secret)
    } else {
        Credential::Basic { user: answer.username, password: answer.secret }
    }))
}

fn run(helper: &str, server: &str, patience: Duration) -> Result<(ExitStatus, Vec<u8>), String> {
    let mut child = Command::new(helper)
        .arg("get")
        .stdin(Stdio::piped())
        .stdout(Stdio::piped())
        .stderr(Stdio::null())
        .spawn()
        .map_err(|error| error.to_string())?;
    let deadline = Instant::now() + patience;
    if let Some(mut input) = child.stdin.take() {
        // A helper that does not read is a helper whose answer counts all the same.
        let _ = input.write_all(server.as_bytes());
    }
    let output = read(child.stdout.take().expect("it was asked for"));
    let ended = ended(&mut child, deadline).and_then(|status| {
        let left = deadline.saturating_duration_since(Instant::now()).max(LOOK);
        output.recv_timeout(left).ok().map(|answer| (status, answer))
    });
    if ended.is_none() {
        // It may have ended in between.
        let _ = child.kill();
        let _ = child.wait();
    }
    ended.ok_or_else(|| format!("asked for {server}, it did not answer within {} s and was ended", patience.as_secs_f64()))
}

/// What it says, read beside, for a program may wait until somebody does. What it has started may keep the pipe open after its end: that is
/// not waited for.
fn read(output: ChildStdout) -> mpsc::Receiver<Vec<u8>> {
    let (sender, receiver) = mpsc::channel();
    std::thread::spawn(move || {
        let mut answer = Vec::new();
        // Half an answer is no JSON, which is said.
        let _ = output.take(ANSWER).read_to_end(&mut answer);
        let _ = sender.send(answer);
    });
    receiver
}

fn ended(child: &mut Child, deadline: Instant) -> Option<ExitStatus> {
    while Instant::now() < deadline {
        match child.try_wait() {
            Ok(None) => std::thread::sleep(LOOK),
            Ok(status) => return status,
            Err(_) => return None,
        }
    }
    None
}
