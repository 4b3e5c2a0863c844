//! Archives whose bytes follow from their files alone: no time, no owner.

use std::io::{self, Write};

use flate2::{Compression, GzBuilder};

/// A tar of these files, in this order: path, mode, content.
pub(crate) fn tar<T: AsRef<[u8]>>(files: impl IntoIterator<Item = (String, u32, T)>) -> io::Result<Vec<u8>> {
    let mut tar = tar::Builder::new(Vec::new());
    for (path, mode, content) in files {
        let content = content.as_ref();
        let mut header = tar::Header::new_ustar();
        header.set_size(content.len() as u64);
        header.set_mode(mode);
        header.set_mtime(0);
        tar.append_data(&mut header, &path, content)?;
    }
    tar.into_inner()
}

/// Compressed.
pub(crate) fn gzip(bytes: &[u8]) -> Vec<u8> {
    let mut encoder = GzBuilder::new().mtime(0).write(Vec::new(), Compression::default());
    encoder.write_all(bytes).and_then(|()| encoder.finish()).expect("writing to memory does not fail")
}
