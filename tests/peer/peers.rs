//! The two controllers, and what the kernel says of their processes.

use std::{
    env, fs,
    path::{Path, PathBuf},
    process::Command,
    time::{Duration, Instant},
};

use plinth_api::{Object, crds};
use plinth_engine::yaml;
use plinth_support::{ApiServer, Identity, Process};

use crate::Result;

/// One of the two.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Peer {
    /// kro v0.9.4 with its default flags.
    Kro,
    /// Our loop.
    Plinth,
}

impl Peer {
    /// Its name in tables.
    pub fn name(self) -> &'static str {
        match self {
            Self::Kro => "kro",
            Self::Plinth => "plinth",
        }
    }

    /// The CRDs of definitions that it brings along.
    pub fn crds(self) -> Result<Vec<Object>> {
        match self {
            Self::Kro => objects_below(&kro_folder()?.join("crds")),
            Self::Plinth => Ok(crds::platform().into_iter().filter(|crd| crd.name().ends_with(".kro.run")).collect()),
        }
    }

    fn command(self, kubeconfig: &Path) -> Result<Command> {
        match self {
            Self::Kro => {
                let mut command = Command::new(kro_folder()?.join("kro"));
                command.arg("-kubeconfig").arg(kubeconfig);
                // No ports: two runs at once must not fight for them.
                command.args(["-metrics-bind-address", "0", "-health-probe-bind-address", "0"]);
                Ok(command)
            }
            Self::Plinth => {
                let mut command = Command::new(beside_us("peer-loop")?);
                command.arg(kubeconfig);
                Ok(command)
            }
        }
    }
}

/// The folder that `build-kro.sh` made.
fn kro_folder() -> Result<PathBuf> {
    let script = Path::new(env!("CARGO_MANIFEST_DIR")).join("build-kro.sh");
    let answer = Command::new(&script).arg("--where").output()?;
    let folder = PathBuf::from(String::from_utf8(answer.stdout)?.trim());
    if folder.join("kro").is_file() { Ok(folder) } else { Err(format!("kro is not built: run {}", script.display()).into()) }
}

fn beside_us(program: &str) -> Result<PathBuf> {
    let path = env::current_exe()?.with_file_name(program);
    if path.is_file() { Ok(path) } else { Err(format!("{} is missing: cargo build -p plinth-peer", path.display()).into()) }
}

/// All objects of the YAML files below a folder, in the order of their paths.
pub fn objects_below(folder: &Path) -> Result<Vec<Object>> {
    let mut objects = Vec::new();
    let mut paths: Vec<PathBuf> = fs::read_dir(folder)?.map(|entry| Ok(entry?.path())).collect::<Result<_>>()?;
    paths.sort();
    for path in paths {
        if path.is_dir() {
            objects.extend(objects_below(&path)?);
        } else if path.extension().is_some_and(|end| end == "yaml") {
            let text = fs::read_to_string(&path)?;
            let documents = yaml::documents(&text).map_err(|finding| format!("{}: {finding}", path.display()))?;
            objects.extend(documents.into_iter().filter_map(|document| Object::from_value(document.value)));
        }
    }
    Ok(objects)
}

/// A controller at work, as user `admin`; killed when dropped.
pub struct Running {
    process: Process,
    log: PathBuf,
}

impl Running {
    /// Starts it; its CRDs must be there.
    pub fn start(peer: Peer, server: &ApiServer) -> Result<Self> {
        let log = server.folder().join(format!("{}.log", peer.name()));
        let process = Process::start(&peer.command(&server.kubeconfig(Identity::Admin))?, &log)?;
        let began = Instant::now();
        // Between fork and exec it is still the shell.
        while process.pid().is_none() && began.elapsed() < Duration::from_secs(10) {
            std::thread::sleep(Duration::from_millis(20));
        }
        Ok(Self { process, log })
    }

    /// Its memory and time so far.
    ///
    /// # Errors
    /// Where it has ended; with the end of its log.
    pub fn usage(&self) -> Result<Usage> {
        let usage = self.process.pid().and_then(|pid| Usage::of(pid).ok());
        usage.ok_or_else(|| {
            let log = fs::read_to_string(&self.log).unwrap_or_default();
            let tail: Vec<&str> = log.lines().rev().take(20).collect();
            format!("the controller has ended:\n{}", tail.into_iter().rev().collect::<Vec<_>>().join("\n")).into()
        })
    }
}

/// What a process used.
#[derive(Clone, Copy, Debug, Default)]
pub struct Usage {
    /// Resident memory now, MiB.
    pub resident: f64,
    /// The most it ever was, MiB.
    pub peak: f64,
    /// Processor time, seconds.
    pub cpu: f64,
}

impl Usage {
    fn of(pid: u32) -> Result<Self> {
        let status = fs::read_to_string(format!("/proc/{pid}/status"))?;
        let kib = |field: &str| {
            let line = status.lines().find_map(|line| line.strip_prefix(field)).unwrap_or_default();
            line.trim().trim_end_matches("kB").trim().parse::<f64>().unwrap_or_default()
        };
        let stat = fs::read_to_string(format!("/proc/{pid}/stat"))?;
        // Fields count from behind the program's name, which may hold spaces; times are in hundredths of a second.
        let fields: Vec<&str> = stat.rsplit(')').next().unwrap_or_default().split_whitespace().collect();
        let ticks = |index: usize| fields.get(index).and_then(|field| field.parse::<f64>().ok()).unwrap_or_default();
        Ok(Self { resident: kib("VmRSS:") / 1024.0, peak: kib("VmHWM:") / 1024.0, cpu: (ticks(11) + ticks(12)) / 100.0 })
    }
}
