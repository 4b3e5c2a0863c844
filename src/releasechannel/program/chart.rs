//! What travels beside plinth's image: its chart, and the kinds that the chart brings, for who applies them without Helm.

use std::collections::BTreeMap;

use crate::assembly::Packed;
use crate::ctf::Contents;
use crate::error::RepositoryError;
use crate::tarball::{gzip, tar};

/// Name and folder of the chart.
const NAME: &str = "plinth";
/// Where its kinds are.
const CRDS: &str = "crds/";
/// Media type of a packed chart.
pub(crate) const HELM: &str = "application/vnd.cncf.helm.chart.content.v1.tar+gzip";
/// Media type of a folder.
pub(crate) const TAR: &str = "application/x-tar";

/// A chart: its files by their paths below it. Without files there is none.
#[derive(Clone, Debug, Default, PartialEq, Eq)]
pub struct Chart(pub BTreeMap<String, String>);

impl Chart {
    /// The resources that come of it, each with its name and its type, as `distributions/plinth/channel.yaml` has them.
    pub(super) fn packed(&self, contents: &mut Contents) -> Result<Vec<(&'static str, &'static str, Packed)>, RepositoryError> {
        if self.0.is_empty() {
            return Ok(Vec::new());
        }
        let failed = |error| RepositoryError::malformed("the chart of plinth", error);
        let whole = self.0.iter().map(|(path, text)| (format!("{NAME}/{path}"), 0o644, text));
        let crds = self.0.iter().filter_map(|(path, text)| Some((path.strip_prefix(CRDS)?.to_owned(), 0o644, text)));
        let (whole, crds) = (gzip(&tar(whole).map_err(failed)?), tar(crds).map_err(failed)?);
        Ok(vec![("chart", "helmChart", blob(whole, HELM, contents)), ("crds", "directoryTree", blob(crds, TAR, contents))])
    }
}

fn blob(bytes: Vec<u8>, media_type: &str, contents: &mut Contents) -> Packed {
    let size = bytes.len() as u64;
    let digest = contents.add_blob(bytes);
    Packed { digest, media_type: media_type.to_owned(), size, reference_name: None, manifests: Vec::new() }
}
