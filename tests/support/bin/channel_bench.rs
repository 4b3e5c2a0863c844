//! `channel-bench PLINTH [BLOB_BYTES]`: what resolving and downloading channels costs, and the memory that a large blob takes.
//!
//! The content is that of the measured peers (reference/ocm-measure.md): an umbrella with N references, each with a definition of four
//! documents, the same compressed, and an image with one incompressible layer of 256 KiB.

use std::{
    error::Error,
    fs,
    io::{self, Write},
    path::Path,
    process::{Command, ExitCode, Stdio},
    time::{Duration, Instant},
};

use plinth_support::Registry;
use serde_json::json;
use sha2::{Digest, Sha256};
use tempfile::TempDir;

type Answer<T> = Result<T, Box<dyn Error>>;

/// What the two OCM tools took: references, requests of v1 and v2, median wall time in seconds, memory in MiB.
const RESOLVE_BY_PEERS: [(usize, &str); 2] = [
    (10, "v1 77 requests 0.45 s 105 MiB, v2 48 requests 0.23 s 40 MiB"),
    (50, "v1 357 requests 1.14 s 111 MiB, v2 208 requests 0.55 s 45 MiB"),
];
const DOWNLOAD_BY_PEERS: [(usize, &str); 2] = [
    (10, "v1 187 requests 0.92 s 120 MiB, v2 328 requests 3.51 s 41 MiB"),
    (50, "v1 907 requests 2.97 s 192 MiB, v2 1608 requests 15.10 s 44 MiB"),
];

fn main() -> ExitCode {
    let arguments: Vec<String> = std::env::args().skip(1).collect();
    let result = match arguments.as_slice() {
        [plinth] => run(plinth, 2 << 30),
        [plinth, bytes] => bytes.parse().map_err(Into::into).and_then(|bytes| run(plinth, bytes)),
        _ => Err("usage: channel-bench PLINTH [BLOB_BYTES]".into()),
    };
    match result {
        Ok(()) => ExitCode::SUCCESS,
        Err(error) => {
            say(&format!("channel-bench: {error}"));
            ExitCode::FAILURE
        }
    }
}

fn run(plinth: &str, blob: u64) -> Answer<()> {
    for references in [10, 50, 500] {
        channel(plinth, references)?;
    }
    if blob > 0 { large_blob(plinth, blob) } else { Ok(()) }
}

fn channel(plinth: &str, references: usize) -> Answer<()> {
    let (folder, registry) = (TempDir::new()?, Registry::start()?);
    let (host, place) = (registry.host(), |name: &str| folder.path().join(name).display().to_string());
    // A small stand-in for plinth itself: what is measured is the channel.
    let program = place("plinth");
    write_program(Path::new(&program))?;
    // First the images, under their own names; then a channel that refers to them there, as the peers' content does.
    for (round, verb) in [(None, ["bundle", "create"]), (Some(host.as_str()), ["channel", "pack"])] {
        write_channel(folder.path(), references, round)?;
        let file = place(verb[0]);
        let program: &[&str] = if round.is_none() { &["--program", &program] } else { &[] };
        measure(plinth, folder.path(), &[&[verb[0], verb[1], &place("local"), "-f", &file], program].concat())?;
        let target = format!("{host}/bench");
        measure(plinth, folder.path(), &["bundle", "push", &file, &target, "--plain-http", &host, "--move-tags"])?;
        fs::remove_dir_all(folder.path().join("local"))?;
    }
    let source = format!("{host}/bench//acme.example/bench/channel:1.0.0");
    let by_peers = |rows: [(usize, &'static str); 2]| {
        rows.into_iter().find(|(n, _)| *n == references).map_or_else(String::new, |(_, words)| format!(" ({words})"))
    };
    for (word, peers, arguments) in [
        ("resolve", by_peers(RESOLVE_BY_PEERS), vec!["channel", "ls", &source, "-o", "json", "--no-cache"]),
        (
            "download",
            by_peers(DOWNLOAD_BY_PEERS),
            vec!["bundle", "create", &source, "-f", &place("downloaded"), "--program", &program, "--no-cache"],
        ),
        ("resolve-cold", String::new(), vec!["channel", "ls", &source, "-o", "json"]),
        ("resolve-warm", String::new(), vec!["channel", "ls", &source, "-o", "json"]),
    ] {
        let before = registry.requests()?;
        let cost = measure(plinth, folder.path(), &[&arguments[..], &["--plain-http", &host]].concat())?;
        let requests = registry.requests()? - before;
        say(&format!("SHOW 04 bench-{word} {references} references: {requests} requests {cost}{peers}"));
        if word == "resolve" && requests > 2 * (references + 1) {
            return Err(format!("{requests} requests are more than two a component version").into());
        }
    }
    Ok(())
}

/// One component version with one blob that nothing compresses, through an archive into a registry.
fn large_blob(plinth: &str, bytes: u64) -> Answer<()> {
    const MOST_MIB: u64 = 64;
    let (folder, registry) = (TempDir::new()?, Registry::start()?);
    let (host, place) = (registry.host(), |name: &str| folder.path().join(name).display().to_string());
    fs::create_dir(folder.path().join("local"))?;
    write_noise(&folder.path().join("local/blob"), bytes)?;
    let resource = json!({"name": "blob", "type": "blob", "version": "1.0.0", "relation": "local", "input": {"type": "file", "path": "blob"}});
    write_constructor(folder.path(), &[component("acme.example/bench/blob", &[resource], &[])])?;
    let (bundle, lock, again) = (place("bundle.tar"), place("lock.json"), place("again.tar"));
    let create = measure(plinth, folder.path(), &["bundle", "create", &place("local"), "-f", &bundle])?;
    fs::remove_dir_all(place("local"))?;
    measure(plinth, folder.path(), &["channel", "lock", &bundle, "-f", &lock])?;
    let push = measure(plinth, folder.path(), &["bundle", "push", &bundle, &host, "--plain-http", &host])?;
    fs::remove_file(&bundle)?;
    let verify = measure(plinth, folder.path(), &["bundle", "verify", &host, "--lock", &lock, "--plain-http", &host])?;
    let source = format!("{host}//acme.example/bench/blob");
    let fetch =
        measure(plinth, folder.path(), &["bundle", "create", &source, "-f", &again, "--plain-http", &host, "--no-cache"])?;
    for (word, cost) in [("create", &create), ("push", &push), ("verify", &verify), ("create-from-registry", &fetch)] {
        say(&format!("SHOW 04 bench-blob {word} of {bytes} bytes: {cost}"));
        if cost.mib >= MOST_MIB {
            return Err(format!("bundle {word} took {} MiB, not less than {MOST_MIB}", cost.mib).into());
        }
    }
    Ok(())
}

/// Wall time, and the most memory that was seen.
struct Cost {
    wall: Duration,
    mib: u64,
}

impl std::fmt::Display for Cost {
    fn fmt(&self, f: &mut std::fmt::Formatter<'_>) -> std::fmt::Result {
        write!(f, "{:.2} s {} MiB", self.wall.as_secs_f64(), self.mib)
    }
}

/// Runs plinth to its end. Its high-water mark is read while it runs: the last look is a few milliseconds old.
fn measure(plinth: &str, home: &Path, arguments: &[&str]) -> Answer<Cost> {
    let mut command = Command::new(plinth);
    command
        .args(arguments)
        .env("HOME", home)
        .env("PLINTH_CACHE", home.join("cache"))
        .stdout(Stdio::null())
        .stderr(Stdio::piped());
    let started = Instant::now();
    let mut child = command.spawn()?;
    let status_file = format!("/proc/{}/status", child.id());
    let mut kib = 0;
    while child.try_wait()?.is_none() {
        kib = fs::read_to_string(&status_file).ok().and_then(|status| high_water(&status)).unwrap_or(kib);
        std::thread::sleep(Duration::from_millis(3));
    }
    let wall = started.elapsed();
    let output = child.wait_with_output()?;
    if output.status.success() {
        return Ok(Cost { wall, mib: kib / 1024 });
    }
    Err(format!("plinth {}: {}", arguments.join(" "), String::from_utf8_lossy(&output.stderr)).into())
}

fn high_water(status: &str) -> Option<u64> {
    status.lines().find_map(|line| line.strip_prefix("VmHWM:"))?.trim().split(' ').next()?.parse().ok()
}

fn write_channel(folder: &Path, references: usize, images: Option<&str>) -> Answer<()> {
    fs::create_dir(folder.join("local"))?;
    let definition = |n: usize| {
        format!(
            "apiVersion: kro.run/v1alpha1\nkind: ResourceGraphDefinition\nmetadata: {{name: part-{n}}}\nspec: {{schema: {{kind: Part{n}, apiVersion: v1}}}}\n"
        )
    };
    fs::write(folder.join("local/rgd.yaml"), (0..4).map(definition).collect::<Vec<_>>().join("---\n"))?;
    let mut components = Vec::new();
    let mut targets = Vec::new();
    for n in 0..references {
        let (name, image) = (format!("acme.example/bench/child-{n}"), format!("image-{n}"));
        if images.is_none() {
            write_image(&folder.join("local").join(&image), n)?;
        }
        let file = |name: &str, compress: bool| {
            json!({"name": name, "type": "yaml", "version": "1.0.0", "relation": "local",
                "input": {"type": "file", "path": "rgd.yaml", "mediaType": "application/x-yaml", "compress": compress}})
        };
        let image = match images {
            None => {
                json!({"name": "image", "type": "ociImage", "version": "1.0.0", "relation": "local", "input": {"type": "ociLayout", "path": image}})
            }
            Some(host) => {
                let reference = format!("http://{host}/bench/bench/{image}:1.0.0");
                json!({"name": "image", "type": "ociImage", "version": "1.0.0", "access": {"type": "ociArtifact", "imageReference": reference}})
            }
        };
        components.push(component(&name, &[file("manifest", false), file("manifest-gz", true), image], &[]));
        targets.push(json!({"name": format!("child-{n}"), "componentName": name, "version": "1.0.0"}));
    }
    components.push(component("acme.example/bench/channel", &[], &targets));
    write_constructor(folder, &components)
}

fn component(name: &str, resources: &[serde_json::Value], references: &[serde_json::Value]) -> serde_json::Value {
    json!({"name": name, "version": "1.0.0", "provider": {"name": "acme.example"}, "resources": resources, "componentReferences": references})
}

fn write_constructor(folder: &Path, components: &[serde_json::Value]) -> Answer<()> {
    Ok(fs::write(folder.join("local/channel.yaml"), json!({"components": components}).to_string())?)
}

/// An OCI layout with one layer.
fn write_image(folder: &Path, n: usize) -> Answer<()> {
    const LAYER: u64 = 256 << 10;
    let blobs = folder.join("blobs/sha256");
    fs::create_dir_all(&blobs)?;
    let put = |bytes: &[u8], kind: &str| -> Answer<serde_json::Value> {
        let hex = Sha256::digest(bytes).iter().fold(String::new(), |text, byte| format!("{text}{byte:02x}"));
        fs::write(blobs.join(&hex), bytes)?;
        Ok(json!({"mediaType": kind, "digest": format!("sha256:{hex}"), "size": bytes.len()}))
    };
    let mut layer = Vec::new();
    Noise::new(n as u64 + 1).write(&mut layer, LAYER)?;
    let layer = put(&layer, "application/vnd.oci.image.layer.v1.tar")?;
    let config = put(format!("{{\"os\":\"linux\",\"n\":{n}}}").as_bytes(), "application/vnd.oci.image.config.v1+json")?;
    let kind = "application/vnd.oci.image.manifest.v1+json";
    let manifest = json!({"schemaVersion": 2, "mediaType": kind, "config": config, "layers": [layer]});
    let mut entry = put(manifest.to_string().as_bytes(), kind)?;
    entry["annotations"] = json!({"org.opencontainers.image.ref.name": format!("bench/image-{n}:1.0.0")});
    fs::write(folder.join("oci-layout"), r#"{"imageLayoutVersion": "1.0.0"}"#)?;
    Ok(fs::write(folder.join("index.json"), json!({"schemaVersion": 2, "manifests": [entry]}).to_string())?)
}

/// A static executable, as far as its header says.
fn write_program(path: &Path) -> Answer<()> {
    let mut bytes = vec![0; 4096];
    bytes[..6].copy_from_slice(&[0x7f, b'E', b'L', b'F', 2, 1]);
    bytes[18] = 0x3e;
    Ok(fs::write(path, bytes)?)
}

fn write_noise(path: &Path, bytes: u64) -> Answer<()> {
    let mut file = io::BufWriter::with_capacity(1 << 20, fs::File::create(path)?);
    Noise::new(7).write(&mut file, bytes)?;
    Ok(file.flush()?)
}

/// Numbers that no compressor finds a pattern in (xorshift).
struct Noise(u64);

impl Noise {
    fn new(seed: u64) -> Self {
        Self(seed.wrapping_mul(0x9e37_79b9_7f4a_7c15) | 1)
    }

    fn write(&mut self, into: &mut impl Write, bytes: u64) -> io::Result<()> {
        let mut left = bytes;
        while left > 0 {
            self.0 ^= self.0 << 13;
            self.0 ^= self.0 >> 7;
            self.0 ^= self.0 << 17;
            let word = self.0.to_le_bytes();
            let count = left.min(8);
            into.write_all(&word[..usize::try_from(count).unwrap_or(8)])?;
            left -= count;
        }
        Ok(())
    }
}

fn say(line: &str) {
    // Nobody reads this where standard error is closed.
    let _ = writeln!(io::stderr(), "{line}");
}
