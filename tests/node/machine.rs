//! A machine inside of this one: namespaces for the network, mounts and processes, and a cgroup of its own.
//!
//! Its first process ends with the test that started it, and the kernel ends everything else in it then: containers and their shims too.

use std::{
    fs,
    path::{Path, PathBuf},
    process::Command,
    thread,
    time::Duration,
};

use plinth_support::{Process, programs};
use serde_json::Value;
use tempfile::TempDir;

/// Where the folder for everything that the node writes is told.
const FOLDER: &str = "PLINTH_NODE_FOLDER";
/// Where the name of its cgroup is told.
const CGROUP: &str = "PLINTH_NODE_CGROUP";
const CGROUPS: &str = "/sys/fs/cgroup";

/// What the first process does before it runs the test. What nodes keep in folders with fixed names is kept in folders of its own.
const SETUP: &str = r#"
set -e
mount --make-rshared /
for folder in /run/netns /run/containerd /var/lib/cni /var/lib/kubelet; do
  mkdir -p "$folder"
  mount -t tmpfs node "$folder"
done
ip link set lo up
ip address add 10.233.0.1/32 dev lo
ip route add default dev lo
ip -6 route add default dev lo
nft -f "$PLINTH_NODE_FOLDER/egress.nft"
"$@"
"#;

/// Only loopback, the node and its pods are reached, by the node and by pods. Everything else is routed, so that it meets the rule.
const EGRESS: &str = "
table inet egress {
  counter refused { }
  chain output {
    type filter hook output priority 0; policy accept;
    meta l4proto ipv6-icmp accept
    udp dport 53 counter name refused reject
    tcp dport 53 counter name refused reject with tcp reset
    ip daddr { 127.0.0.0/8, 10.233.0.0/24, 10.234.0.0/24 } accept
    ip6 daddr ::1 accept
    ip daddr 224.0.0.0/4 drop
    meta l4proto tcp counter name refused reject with tcp reset
    counter name refused reject
  }
  chain forward {
    type filter hook forward priority 0; policy accept;
    ip daddr { 10.233.0.0/24, 10.234.0.0/24 } accept
    meta l4proto ipv6-icmp accept
    meta l4proto tcp counter name refused reject with tcp reset
    counter name refused reject
  }
}
";

/// The programs that a node is made of, with the Debian packages that they come from.
const PROGRAMS: [(&str, &str); 7] = [
    ("unshare", "util-linux"),
    ("ip", "iproute2"),
    ("nft", "nftables"),
    ("containerd", "containerd"),
    ("runc", "runc"),
    ("openssl", "openssl"),
    ("docker-registry", "docker-registry"),
];

/// The machine; everything in it ends when it is dropped.
pub(crate) struct Machine {
    folder: TempDir,
    cgroup: String,
}

impl Machine {
    /// Makes one, or says why this machine has none to give.
    pub(crate) fn make() -> Result<Self, String> {
        for (program, package) in PROGRAMS {
            programs::from_debian(program, package).map_err(|error| error.to_string())?;
        }
        if !Path::new("/usr/lib/cni/bridge").is_file() {
            return Err("/usr/lib/cni/bridge is missing: apt-get install containernetworking-plugins".to_owned());
        }
        let mut probe = Command::new("unshare");
        probe.args(["--mount", "--pid", "--net", "--fork", "--mount-proc", "ip", "link", "add", "probe", "type", "bridge"]);
        let probed = probe.output().map_err(|error| format!("start unshare: {error}"))?;
        if !probed.status.success() {
            let said = String::from_utf8_lossy(&probed.stderr).trim().to_owned();
            return Err(format!("namespaces and a bridge cannot be made ({said}); a node needs root"));
        }
        let folder = TempDir::with_prefix("plinth-node-").map_err(|error| format!("make a folder: {error}"))?;
        fs::write(folder.path().join("egress.nft"), EGRESS).map_err(|error| format!("write the rules: {error}"))?;
        let machine = Self { folder, cgroup: format!("plinth-node-{}", std::process::id()) };
        for tree in trees() {
            let path = tree.join(&machine.cgroup);
            fs::create_dir(&path).map_err(|error| format!("make the cgroup {}: {error}", path.display()))?;
        }
        Ok(machine)
    }

    /// Runs one test of this program inside, and hands its output on. Whether it passed.
    pub(crate) fn run_test(&self, name: &str) -> bool {
        let program = std::env::current_exe().unwrap();
        let mut command = Command::new("unshare");
        command.args([
            "--mount",
            "--pid",
            "--net",
            "--ipc",
            "--fork",
            "--kill-child",
            "--mount-proc",
            "sh",
            "-c",
            SETUP,
            "machine",
        ]);
        command.arg(program).args(["--exact", name, "--ignored", "--nocapture"]);
        command.env(FOLDER, self.folder.path()).env(CGROUP, &self.cgroup).env("TMPDIR", self.folder.path());
        let log = self.folder.path().join("test.log");
        let mut process = Process::start_with_folder(&command, &log, self.folder.path()).unwrap();
        let mut told = 0;
        loop {
            let code = process.exit_code();
            let text = fs::read_to_string(&log).unwrap_or_default();
            eprint!("{}", &text[told..]);
            told = text.len();
            // A name that fits no test would pass as well.
            match code {
                Some(code) => return code == 0 && text.contains("1 passed"),
                None => thread::sleep(Duration::from_millis(200)),
            }
        }
    }
}

impl Drop for Machine {
    /// The processes are gone; their cgroups stay until somebody removes them.
    fn drop(&mut self) {
        for tree in trees() {
            for _ in 0..50 {
                if remove(&tree.join(&self.cgroup)) {
                    break;
                }
                thread::sleep(Duration::from_millis(100));
            }
        }
    }
}

/// The hierarchies of cgroups: one for each controller, or one for all of them.
fn trees() -> Vec<PathBuf> {
    if Path::new(CGROUPS).join("cgroup.controllers").exists() {
        return vec![PathBuf::from(CGROUPS)];
    }
    let entries = fs::read_dir(CGROUPS).into_iter().flatten().flatten().map(|entry| entry.path());
    entries.filter(|path| path.is_dir() && path.join("cgroup.procs").exists()).collect()
}

/// A cgroup with those below it. Whether it is gone.
fn remove(path: &Path) -> bool {
    for entry in fs::read_dir(path).into_iter().flatten().flatten() {
        if entry.path().is_dir() {
            remove(&entry.path());
        }
    }
    fs::remove_dir(path).is_ok() || !path.exists()
}

/// Inside: the folder for everything that the node writes.
pub(crate) fn folder() -> PathBuf {
    std::env::var_os(FOLDER).expect("the machine sets it").into()
}

/// Inside: the cgroup below which all pods are.
pub(crate) fn cgroup() -> String {
    std::env::var(CGROUP).expect("the machine sets it")
}

/// Inside: how many packets to somewhere else were refused so far.
pub(crate) fn refused() -> u64 {
    let listed = Command::new("nft").args(["-j", "list", "counter", "inet", "egress", "refused"]).output().unwrap();
    let answer: Value = serde_json::from_slice(&listed.stdout).unwrap();
    let counter = answer["nftables"].as_array().unwrap().iter().find_map(|entry| entry.get("counter"));
    counter.unwrap()["packets"].as_u64().unwrap()
}
