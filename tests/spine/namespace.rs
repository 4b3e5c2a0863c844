//! A network namespace of its own in which every destination but loopback is refused and counted.

use std::{
    fs,
    io::Write,
    path::Path,
    process::{Command, Stdio},
};

use serde_json::Value;

/// What a namespace is called: with our process, so that leftovers of a killed one are known.
const PREFIX: &str = "plinth-test-";

/// Everything that is not loopback is routed, so that it meets the rule and not only a missing route. Names are asked for at a port that
/// may be on loopback: that counts too. Announcements of the IPv6 stack itself are nobody's request.
const RULES: &str = "
table inet egress {
  counter refused { }
  chain output {
    type filter hook output priority 0; policy accept;
    meta l4proto ipv6-icmp accept
    udp dport 53 counter name refused reject
    tcp dport 53 counter name refused reject with tcp reset
    ip daddr 127.0.0.0/8 accept
    ip6 daddr ::1 accept
    meta l4proto tcp counter name refused reject with tcp reset
    counter name refused reject
  }
}
";

/// The namespace; removed when dropped.
pub(crate) struct Namespace(String);

impl Namespace {
    /// Makes one, or says why this machine has none to give.
    pub(crate) fn make() -> Result<Self, String> {
        remove_leftovers();
        let namespace = Self(format!("{PREFIX}{}", std::process::id()));
        let name = namespace.0.as_str();
        run(Command::new("ip").args(["netns", "add", name]), "")?;
        for arguments in [
            &["link", "set", "lo", "up"][..],
            &["route", "add", "default", "dev", "lo"],
            &["-6", "route", "add", "default", "dev", "lo"],
        ] {
            run(Command::new("ip").args(["-n", name]).args(arguments), "")?;
        }
        run(namespace.command("nft").args(["-f", "-"]), RULES)?;
        Ok(namespace)
    }

    /// Runs one test of this program inside, and hands its output on. Whether it passed.
    pub(crate) fn run_test(&self, name: &str, variables: &[(&str, &str)]) -> bool {
        let program = std::env::current_exe().unwrap();
        let mut command = self.command(program.to_str().unwrap());
        command.args(["--exact", name, "--ignored", "--nocapture"]).envs(variables.iter().copied());
        let output = command.output().unwrap();
        let text = String::from_utf8_lossy(&output.stdout).into_owned() + &String::from_utf8_lossy(&output.stderr);
        eprintln!("--- inside of the namespace\n{text}---");
        // A name that fits no test would pass as well.
        output.status.success() && text.contains("1 passed")
    }

    /// How many packets the rule has refused so far.
    pub(crate) fn refused(&self) -> u64 {
        let text = run(self.command("nft").args(["-j", "list", "counter", "inet", "egress", "refused"]), "").unwrap();
        let answer: Value = serde_json::from_str(&text).unwrap();
        let counter = answer["nftables"].as_array().unwrap().iter().find_map(|entry| entry.get("counter"));
        counter.unwrap()["packets"].as_u64().unwrap()
    }

    fn command(&self, program: &str) -> Command {
        let mut command = Command::new("ip");
        command.args(["netns", "exec", &self.0, program]);
        command
    }
}

impl Drop for Namespace {
    fn drop(&mut self) {
        let _gone = run(Command::new("ip").args(["netns", "del", &self.0]), "");
    }
}

/// Namespaces of tests that were killed.
fn remove_leftovers() {
    for entry in fs::read_dir("/run/netns").into_iter().flatten().flatten() {
        let name = entry.file_name().to_string_lossy().into_owned();
        let is_over = name.strip_prefix(PREFIX).is_some_and(|id| !Path::new("/proc").join(id).exists());
        if is_over {
            let _gone = run(Command::new("ip").args(["netns", "del", &name]), "");
        }
    }
}

/// Standard output, or what went wrong.
fn run(command: &mut Command, input: &str) -> Result<String, String> {
    let shown = format!("{command:?}");
    let said = |what: String| format!("{shown}: {what}");
    command.stdin(Stdio::piped()).stdout(Stdio::piped()).stderr(Stdio::piped());
    let mut child = command.spawn().map_err(|error| said(format!("{error} (apt-get install iproute2 nftables)")))?;
    // Whoever does not read it says why itself.
    let _closed = child.stdin.take().map(|mut stdin| stdin.write_all(input.as_bytes()));
    let output = child.wait_with_output().map_err(|error| said(error.to_string()))?;
    if output.status.success() {
        return Ok(String::from_utf8_lossy(&output.stdout).into_owned());
    }
    Err(said(String::from_utf8_lossy(&output.stderr).trim().to_owned()))
}
