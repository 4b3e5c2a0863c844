//! containerd and the kubelet: their configurations, and starting them.

use std::{fs, path::Path, process::Command, time::Duration};

use plinth_support::{Process, StartError, programs};

use crate::machine;

/// Longer than either takes on a busy machine.
const READY_WITHIN: Duration = Duration::from_mins(2);

/// Starts containerd, which pulls from `registry` over plain HTTP; gives the process.
pub(crate) fn start_containerd(folder: &Path, registry: &str) -> Result<Process, StartError> {
    let shown = folder.display();
    let config = format!(
        r#"version = 2
root = "{shown}/containerd/root"
state = "{shown}/containerd/state"
[grpc]
  address = "{socket}"
[plugins."io.containerd.internal.v1.opt"]
  path = "{shown}/containerd/opt"
[plugins."io.containerd.grpc.v1.cri"]
  sandbox_image = "{registry}/{PAUSE}"
  disable_apparmor = true
  restrict_oom_score_adj = true
  [plugins."io.containerd.grpc.v1.cri".containerd.runtimes.runc]
    runtime_type = "io.containerd.runc.v2"
  [plugins."io.containerd.grpc.v1.cri".cni]
    bin_dir = "/usr/lib/cni"
    conf_dir = "{shown}/cni"
  [plugins."io.containerd.grpc.v1.cri".registry.mirrors."{registry}"]
    endpoint = ["http://{registry}"]
"#,
        socket = socket(folder),
    );
    write(&folder.join("containerd.toml"), &config)?;
    write(&folder.join("cni/10-pods.conflist"), NETWORK)?;
    let mut command = Command::new(programs::from_debian("containerd", "containerd")?);
    command.arg("-c").arg(folder.join("containerd.toml"));
    let mut process = Process::start(&command, &folder.join("containerd.log"))?;
    let answers =
        || Command::new("ctr").args(["-a", &socket(folder), "version"]).output().is_ok_and(|output| output.status.success());
    process.wait_until(READY_WITHIN, answers)?;
    Ok(process)
}

/// Removes every image but the one that holds pods open, so that the next pod has to pull its own.
pub(crate) fn forget_images(folder: &Path) {
    let ctr = |arguments: &[&str]| {
        let output = Command::new("ctr").args(["-a", &socket(folder), "-n", "k8s.io", "images"]).args(arguments).output();
        let output = output.expect("containerd's package has it");
        assert!(output.status.success(), "{}", String::from_utf8_lossy(&output.stderr));
        String::from_utf8_lossy(&output.stdout).into_owned()
    };
    let listed = ctr(&["ls", "-q"]);
    let named: Vec<&str> = listed.lines().filter(|name| name.contains('/') && !name.ends_with(PAUSE)).collect();
    assert!(!named.is_empty(), "there are no images: {listed}");
    ctr(&[&["rm", "--sync"], &named[..]].concat());
}

/// Ordinary name of the image that holds a pod's namespaces open.
pub(crate) const PAUSE: &str = "images/plinth.test/pause:v1";

/// Pods are at a bridge of the node.
const NETWORK: &str = r#"{"cniVersion": "0.4.0", "name": "pods", "plugins": [
  {"type": "bridge", "bridge": "pods0", "isGateway": true, "ipMasq": false, "ipam": {
    "type": "host-local", "ranges": [[{"subnet": "10.234.0.0/24"}]], "routes": [{"dst": "0.0.0.0/0"}]}}]}
"#;

/// Starts the kubelet of the node `node`.
pub(crate) fn start_kubelet(folder: &Path, kubeconfig: &Path) -> Result<Process, StartError> {
    let config = format!(
        r#"apiVersion: kubelet.config.k8s.io/v1beta1
kind: KubeletConfiguration
cgroupDriver: cgroupfs
cgroupRoot: /{cgroup}
failCgroupV1: false
failSwapOn: false
makeIPTablesUtilChains: false
containerRuntimeEndpoint: unix://{socket}
authentication: {{anonymous: {{enabled: true}}, webhook: {{enabled: false}}}}
authorization: {{mode: AlwaysAllow}}
evictionHard: {{nodefs.available: "1%", imagefs.available: "1%", memory.available: "50Mi"}}
enforceNodeAllocatable: []
localStorageCapacityIsolation: false
resolvConf: "{folder}/resolv.conf"
address: 10.233.0.1
readOnlyPort: 0
healthzPort: 0
podLogsDir: "{folder}/pods"
"#,
        cgroup = machine::cgroup(),
        socket = socket(folder),
        folder = folder.display(),
    );
    write(&folder.join("kubelet.yaml"), &config)?;
    write(&folder.join("resolv.conf"), "nameserver 127.0.0.1\n")?;
    let mut command = Command::new(programs::server("kubelet")?);
    let flag = |name: &str, value: &Path| format!("--{name}={}", value.display());
    command.args([
        flag("config", &folder.join("kubelet.yaml")),
        flag("kubeconfig", kubeconfig),
        flag("root-dir", &folder.join("kubelet")),
        flag("cert-dir", &folder.join("kubelet-certificates")),
        "--node-ip=10.233.0.1".to_owned(),
        "--hostname-override=node".to_owned(),
    ]);
    Process::start(&command, &folder.join("kubelet.log"))
}

fn socket(folder: &Path) -> String {
    folder.join("containerd.sock").display().to_string()
}

fn write(path: &Path, text: &str) -> Result<(), StartError> {
    let failed = |source| StartError::Io { doing: format!("write {}", path.display()), source };
    fs::create_dir_all(path.parent().expect("it is in a folder")).map_err(failed)?;
    fs::write(path, text).map_err(failed)
}
