//! The sample distribution that the binary carries.

use std::{fs, io, path::Path};

include!(concat!(env!("OUT_DIR"), "/sample.rs"));

/// What it is called where a SOURCE is shown.
pub(crate) const NAME: &str = "open-control-plane-kind (bundled)";

/// Writes its files into a folder, where they are a SOURCE.
pub(crate) fn unpack(folder: &Path) -> io::Result<()> {
    for (name, text) in FILES {
        let path = folder.join(name);
        if let Some(parent) = path.parent() {
            fs::create_dir_all(parent)?;
        }
        fs::write(path, text)?;
    }
    Ok(())
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn it_is_the_one_in_the_repository() {
        let folder = tempfile::tempdir().unwrap();
        unpack(folder.path()).unwrap();
        let original = Path::new(env!("CARGO_MANIFEST_DIR")).join("../../distributions/open-control-plane-kind");
        for name in ["channel.yaml", "instance.yaml", "scenario.yaml", "rgds/openmcp-operator.yaml"] {
            let read = |folder: &Path| fs::read_to_string(folder.join(name)).unwrap();
            assert_eq!(read(folder.path()), read(&original), "{name}");
        }
    }
}
