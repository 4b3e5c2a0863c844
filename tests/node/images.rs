//! The sample's channel with images that a node can run, and plinth's own component in it.

use std::{fs, io::Write, path::Path};

use crate::distribution::Distribution;

/// plinth as a component of the channel, and the image that holds pods open.
const OWN: &str = r#"
  - name: plinth.dev/plinth
    version: v0.1.0
    provider: {name: plinth.dev}
    resources:
      - name: image
        type: ociImage
        version: v0.1.0
        input: {type: executable, path: bin/plinth, name: "plinth.dev/plinth:v0.1.0"}
"#;
const PAUSE: &str = r#"
components:
  - name: plinth.test/pause
    version: v1.0.0
    provider: {name: plinth.test}
    resources:
      - {name: image, type: ociImage, input: {type: executable, path: bin/pause, name: "plinth.test/pause:v1"}}
"#;

/// Folders that archives are made of.
pub(crate) struct Images {
    /// The sample, whose operator is the stand-in.
    pub(crate) sample: Distribution,
    /// The same with plinth's own component.
    pub(crate) whole: Distribution,
    /// The release after that: another image of the operator.
    pub(crate) next: Distribution,
    /// What the node itself needs.
    pub(crate) pause: Distribution,
}

impl Images {
    pub(crate) fn make() -> Self {
        let sample = sample();
        let (whole, next) = (sample_with_plinth(), sample_with_plinth());
        next.next("v0.19.2");
        // Bytes after a program's end make another image, and the same program.
        fs::OpenOptions::new().append(true).open(next.file("bin/openmcp-operator")).unwrap().write_all(b"v0.19.2").unwrap();
        let pause = Distribution::sample();
        fs::write(pause.file("channel.yaml"), PAUSE).unwrap();
        for file in ["instance.yaml", "scenario.yaml"] {
            fs::remove_file(pause.file(file)).unwrap();
        }
        add_program(&pause, "pause", "pause");
        Self { sample, whole, next, pause }
    }
}

/// Every image that the channel names is made here. The stand-in does not start the providers, so that theirs have nothing to do.
fn sample() -> Distribution {
    let distribution = Distribution::sample();
    let channel = distribution.file("channel.yaml");
    let mut text = fs::read_to_string(&channel).unwrap();
    let references: Vec<String> =
        text.split("imageReference: \"").skip(1).map(|rest| rest.split('"').next().unwrap().to_owned()).collect();
    for reference in references {
        let (_, name) = reference.split_once('/').unwrap();
        let program = name.rsplit('/').next().unwrap().split(':').next().unwrap();
        let access = format!("access: {{type: ociArtifact, imageReference: \"{reference}\"}}");
        let input = format!("input: {{type: executable, path: bin/{program}, name: \"{name}\"}}");
        assert!(text.contains(&access), "{access}");
        text = text.replace(&access, &input).replace("relation: external", "relation: local");
        add_program(&distribution, if program == "openmcp-operator" { "stand-in-operator" } else { "pause" }, program);
    }
    fs::write(channel, text).unwrap();
    distribution
}

fn sample_with_plinth() -> Distribution {
    let distribution = sample();
    let platform = "  # The platform.";
    distribution.edit("channel.yaml", platform, &format!("{OWN}\n{platform}"));
    let last = "platform-service-dns, version: v0.0.5}\n    resources";
    let own = "platform-service-dns, version: v0.0.5}\n      - {name: plinth, componentName: plinth.dev/plinth, version: v0.1.0}\n    resources";
    distribution.edit("channel.yaml", last, own);
    add_program(&distribution, "plinth", "plinth");
    distribution
}

/// Puts a program that Cargo built into `bin/`, under this name.
fn add_program(distribution: &Distribution, program: &str, name: &str) {
    let built = Path::new(env!("CARGO_BIN_EXE_plinth")).with_file_name(program);
    let folder = distribution.file("bin");
    fs::create_dir_all(&folder).unwrap();
    fs::copy(&built, folder.join(name)).unwrap_or_else(|error| panic!("{}: {error} (./dev node builds it)", built.display()));
}
