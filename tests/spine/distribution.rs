//! The sample distribution, changed as a test needs it.

use std::{
    fs,
    path::{Path, PathBuf},
};

use plinth_support::Ctf;
use tempfile::TempDir;

use crate::plinth::plinth;

/// The component that is the channel.
pub(crate) const PLATFORM: &str = "github.com/openmcp-project/open-control-plane-platform";
const OPERATOR_RGD: &str = "rgds/openmcp-operator.yaml";
const PLATFORM_RGD: &str = "rgds/open-control-plane-platform.yaml";

/// A copy of the sample in a folder of its own.
pub(crate) struct Distribution {
    folder: TempDir,
}

impl Distribution {
    pub(crate) fn sample() -> Self {
        Self::at(&Path::new(env!("CARGO_MANIFEST_DIR")).join("distributions/open-control-plane-kind"))
    }

    /// A copy of the one in this folder.
    pub(crate) fn at(original: &Path) -> Self {
        let folder = TempDir::with_prefix("plinth-distribution-").unwrap();
        copy(original, folder.path());
        Self { folder }
    }

    /// The sample with the two graphs that the project's document prints, cut out of it; `None` where it is absent.
    pub(crate) fn of_the_document() -> Option<Self> {
        let (operator, platform) = graphs_of_the_document()?;
        let distribution = Self::sample();
        fs::write(distribution.file(OPERATOR_RGD), operator).unwrap();
        fs::write(distribution.file(PLATFORM_RGD), platform).unwrap();
        Some(distribution)
    }

    /// The document's where it is there, else our own, saying so.
    pub(crate) fn of_the_document_or_sample() -> Self {
        Self::of_the_document().unwrap_or_else(|| {
            eprintln!("not run: the document's own graphs (PLINTH_DATA has none); the sample's instead");
            Self::sample()
        })
    }

    /// Replaces text in one of its files; gives line and column of the first place, from 1.
    pub(crate) fn edit(&self, file: &str, from: &str, to: &str) -> (usize, usize) {
        let text = fs::read_to_string(self.file(file)).unwrap();
        let at = text.find(from).unwrap_or_else(|| panic!("{file} has no {from:?}"));
        fs::write(self.file(file), text.replacen(from, to, 1)).unwrap();
        let before = &text[..at];
        (before.matches('\n').count() + 1, at - before.rfind('\n').map_or(0, |end| end + 1) + 1)
    }

    /// Makes the next release of it, v0.0.5, with this version of the operator.
    pub(crate) fn next(&self, version: &str) {
        for (from, to) in [
            ("openmcp-operator\n    version: v0.19.1".to_owned(), format!("openmcp-operator\n    version: {version}")),
            ("images/openmcp-operator:v0.19.1".to_owned(), format!("images/openmcp-operator:{version}")),
            ("openmcp-operator-rgd\n    version: v0.0.2".to_owned(), "openmcp-operator-rgd\n    version: v0.0.3".to_owned()),
            ("openmcp-operator, version: v0.19.1}".to_owned(), format!("openmcp-operator, version: {version}}}")),
            ("openmcp-operator-rgd, version: v0.0.2}".to_owned(), "openmcp-operator-rgd, version: v0.0.3}".to_owned()),
            (
                "open-control-plane-platform\n    version: v0.0.4".to_owned(),
                "open-control-plane-platform\n    version: v0.0.5".to_owned(),
            ),
        ] {
            self.edit("channel.yaml", &from, &to);
        }
        self.edit(OPERATOR_RGD, "semver: v0.19.1", &format!("semver: {version}"));
    }

    pub(crate) fn file(&self, name: &str) -> PathBuf {
        self.folder.path().join(name)
    }

    /// Its folder as a SOURCE.
    pub(crate) fn source(&self) -> String {
        self.folder.path().display().to_string()
    }

    /// Packs it as `plinth channel pack` does; the archive's form follows from its name.
    pub(crate) async fn pack(&self, archive: &Path) -> String {
        let archive = archive.display().to_string();
        plinth(&["channel", "pack", &self.source(), "-f", &archive]).await.with_code(0);
        archive
    }

    /// Packs it into a folder inside its own, whose blobs can be damaged.
    pub(crate) async fn unpacked(&self) -> Ctf {
        let folder = self.folder.path().join("unpacked");
        self.pack(&folder).await;
        Ctf::open(&folder)
    }
}

fn copy(from: &Path, to: &Path) {
    for entry in fs::read_dir(from).unwrap() {
        let entry = entry.unwrap();
        let target = to.join(entry.file_name());
        if entry.file_type().unwrap().is_dir() {
            fs::create_dir(&target).unwrap();
            copy(&entry.path(), &target);
        } else {
            fs::copy(entry.path(), target).unwrap();
        }
    }
}

/// The folder of shared corpora (contracts 27).
pub(crate) fn data() -> Option<PathBuf> {
    let default = Path::new(env!("CARGO_MANIFEST_DIR")).join("../shared/data");
    let folder = std::env::var_os("PLINTH_DATA").map_or(default, PathBuf::from);
    folder.is_dir().then_some(folder)
}

fn graphs_of_the_document() -> Option<(String, String)> {
    let mut documents = fs::read_dir(data()?.join("../seeds")).ok()?.filter_map(|entry| Some(entry.ok()?.path()));
    let document = documents.find(|path| path.file_name().is_some_and(|name| name.to_string_lossy().starts_with("004")))?;
    let text = fs::read_to_string(document).ok()?;
    let graphs: Vec<_> =
        text.match_indices("apiVersion: kro.run/v1alpha1\nkind: Resource").map(|(at, _)| cut(&text[at..])).collect();
    let [operator, platform] = graphs.try_into().expect("the document prints two graphs");
    Some((operator, platform))
}

/// A YAML document at the start of a text ends where prose begins.
fn cut(text: &str) -> String {
    let is_yaml = |line: &&str| {
        line.is_empty() || line.starts_with([' ', '#']) || line.split_once(':').is_some_and(|(key, _)| !key.contains(' '))
    };
    text.lines().take_while(is_yaml).fold(String::new(), |yaml, line| yaml + line + "\n")
}
