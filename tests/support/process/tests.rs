use std::fs;

use super::*;

fn sleeper(dir: &Path) -> (Process, String) {
    let mut command = Command::new("sh");
    command.arg("-c").arg(format!("sleep 1000 & echo $! >{}; wait", dir.join("pid").display()));
    let mut process = Process::start(&command, &dir.join("log")).unwrap();
    let pid_file = dir.join("pid");
    process.wait_until(Duration::from_secs(10), || fs::read_to_string(&pid_file).is_ok_and(|pid| pid.ends_with('\n'))).unwrap();
    (process, fs::read_to_string(pid_file).unwrap().trim().to_owned())
}

fn is_alive(pid: &str) -> bool {
    // A zombie has no command line.
    fs::read(format!("/proc/{pid}/cmdline")).is_ok_and(|line| !line.is_empty())
}

fn is_gone_soon(pid: &str) -> bool {
    let started = Instant::now();
    while is_alive(pid) && started.elapsed() < Duration::from_secs(5) {
        thread::sleep(Duration::from_millis(10));
    }
    !is_alive(pid)
}

#[test]
fn grandchildren_end_when_it_is_dropped() {
    let dir = tempfile::tempdir().unwrap();
    let (process, pid) = sleeper(dir.path());
    assert!(is_alive(&pid));
    drop(process);
    assert!(is_gone_soon(&pid));
}

#[test]
fn grandchildren_end_when_the_owner_panics() {
    let dir = tempfile::tempdir().unwrap();
    let (process, pid) = sleeper(dir.path());
    let owner = thread::spawn(move || {
        let _process = process;
        panic!("on purpose");
    });
    assert!(owner.join().is_err());
    assert!(is_gone_soon(&pid));
}

/// The lifeline is a pipe, so signal 9 to its holder must end the group as well. The holder here is a shell.
#[test]
fn grandchildren_end_when_the_owner_is_killed_with_signal_9() {
    let dir = tempfile::tempdir().unwrap();
    let pid_file = dir.path().join("pid");
    let mut holder = Command::new("sh");
    // `sleep` holds the writing end; the watch runs in its own session as `process_group(0)` does it.
    holder.arg("-c").arg(r#"exec sleep 1000 | setsid sh -c "$1" watch sh -c "$2""#);
    let owned = dir.path().join("owned");
    fs::create_dir(&owned).unwrap();
    holder.env("PLINTH_REMOVE", &owned);
    holder.arg("holder").arg(WATCH).arg(format!("sleep 1000 & echo $! >{}; wait", pid_file.display()));
    let mut shell = holder.process_group(0).spawn().unwrap();
    let started = Instant::now();
    while !fs::read_to_string(&pid_file).is_ok_and(|pid| pid.ends_with('\n')) {
        assert!(started.elapsed() < Duration::from_secs(10));
        thread::sleep(Duration::from_millis(10));
    }
    let pid = fs::read_to_string(&pid_file).unwrap().trim().to_owned();
    assert!(is_alive(&pid));
    Command::new("kill").args(["-KILL", "--", &format!("-{}", shell.id())]).status().unwrap();
    shell.wait().unwrap();
    assert!(is_gone_soon(&pid));
    let started = Instant::now();
    while owned.exists() && started.elapsed() < Duration::from_secs(5) {
        thread::sleep(Duration::from_millis(10));
    }
    assert!(!owned.exists());
}

#[test]
fn an_early_end_is_told_with_the_log() {
    let dir = tempfile::tempdir().unwrap();
    let mut command = Command::new("sh");
    command.arg("-c").arg("echo no such flag; exit 3");
    let mut process = Process::start(&command, &dir.path().join("log")).unwrap();
    let error = process.wait_until(Duration::from_secs(10), || false).unwrap_err();
    assert!(error.to_string().contains("ended before it was ready"), "{error}");
    assert!(error.to_string().contains("no such flag"), "{error}");
    assert_eq!(process.exit_code(), Some(3));
}

#[test]
fn a_taken_port_is_tried_again() {
    let mut attempts = 0;
    let result: Result<(), _> = with_free_ports(|| {
        attempts += 1;
        Err(StartError::NotReady { program: "x".into(), what: "ended".into(), log: "bind: address already in use".into() })
    });
    assert!(result.is_err());
    assert_eq!(attempts, 3);
}
