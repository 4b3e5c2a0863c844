//! The descriptor layer: its content says whether it is compressed, an archive or text (ocm.md 1 and 3.3); media types are written wrongly.

use std::io::Read;

use bytes::Bytes;

use crate::ctf::archive::gunzip_bytes;
use crate::descriptor::Descriptor;
use crate::error::RepositoryError;

/// Reads a descriptor, at most `limit` bytes of it; `what` names the component version in errors.
pub(super) fn decode(media_type: &str, bytes: &Bytes, limit: u64, what: &str) -> Result<Descriptor, RepositoryError> {
    let plain = gunzip_bytes(bytes, what, limit)?;
    let text = match (is_tar(&plain), media_type.contains("+tar")) {
        (true, _) => descriptor_in_tar(&plain, what)?,
        // Very old archives have no magic.
        (false, true) => descriptor_in_tar(&plain, what).or_else(|error| if is_text(&plain) { Ok(plain) } else { Err(error) })?,
        (false, false) => plain,
    };
    Descriptor::read(&text).map_err(|error| RepositoryError::malformed(what, error))
}

fn is_tar(bytes: &[u8]) -> bool {
    bytes.get(257..262) == Some(b"ustar".as_slice())
}

fn is_text(bytes: &[u8]) -> bool {
    !bytes.contains(&0) && std::str::from_utf8(bytes).is_ok()
}

fn descriptor_in_tar(bytes: &[u8], what: &str) -> Result<Bytes, RepositoryError> {
    const ENTRIES: usize = 16;
    let malformed = |reason: String| RepositoryError::malformed(what, reason);
    let mut archive = tar::Archive::new(bytes);
    let entries = archive.entries().map_err(|error| malformed(error.to_string()))?;
    for entry in entries.take(ENTRIES) {
        let mut entry = entry.map_err(|error| malformed(format!("its descriptor layer is no tar: {error}")))?;
        let name = String::from_utf8_lossy(&entry.path_bytes()).into_owned();
        if name.trim_start_matches("./").trim_start_matches('/') == "component-descriptor.yaml"
            && entry.header().entry_type().is_file()
        {
            // The layer is bounded, and a tar holds no more than it weighs.
            let mut text = Vec::new();
            entry.read_to_end(&mut text).map_err(|error| malformed(error.to_string()))?;
            return Ok(text.into());
        }
    }
    Err(malformed("its descriptor layer holds no component-descriptor.yaml".to_owned()))
}

#[cfg(test)]
mod tests {
    use super::*;

    const TEXT: &str = "meta: {schemaVersion: v2}\ncomponent: {name: acme.example/x, version: 1.0.0, provider: acme, resources: [], sources: []}\n";
    const TAR: &str = "application/vnd.ocm.software.component-descriptor.v2+yaml+tar";
    const YAML: &str = "application/vnd.ocm.software.component-descriptor.v2+yaml";

    fn tar_of(name: &str, header: &mut tar::Header) -> Vec<u8> {
        let mut tar = tar::Builder::new(Vec::new());
        header.set_size(TEXT.len() as u64);
        tar.append_data(header, name, TEXT.as_bytes()).unwrap();
        tar.into_inner().unwrap()
    }

    fn gzip(bytes: &[u8]) -> Vec<u8> {
        let mut encoder = flate2::write::GzEncoder::new(Vec::new(), flate2::Compression::fast());
        std::io::Write::write_all(&mut encoder, bytes).unwrap();
        encoder.finish().unwrap()
    }

    #[test]
    fn content_counts_whatever_the_media_type_says() {
        let ustar = tar_of("component-descriptor.yaml", &mut tar::Header::new_ustar());
        let gnu = tar_of("./component-descriptor.yaml", &mut tar::Header::new_gnu());
        let old = tar_of("component-descriptor.yaml", &mut tar::Header::new_old());
        for (media_type, bytes) in [
            (TAR, ustar.clone()),
            (YAML, ustar.clone()),
            (TAR, gnu),
            (TAR, old),
            (TAR, gzip(&ustar)),
            ("application/vnd.ocm.software.component-descriptor.v2+yaml+tar+gzip", gzip(&ustar)),
            (TAR, TEXT.as_bytes().to_vec()),
            (YAML, TEXT.as_bytes().to_vec()),
            (YAML, gzip(TEXT.as_bytes())),
            (YAML, format!("\u{feff}{TEXT}").into_bytes()),
            (YAML, format!("---\n{TEXT}").into_bytes()),
            (YAML, TEXT.replace('\n', "\r\n").into_bytes()),
        ] {
            let read = decode(media_type, &bytes.into(), 1 << 20, "x");
            assert_eq!(read.unwrap_or_else(|error| panic!("{media_type}: {error}")).name, "acme.example/x");
        }
        let empty = tar::Builder::new(Vec::new()).into_inner().unwrap();
        for bytes in [empty, tar_of("other.yaml", &mut tar::Header::new_ustar()), vec![0; 700], Vec::new(), vec![0x1f, 0x8b, 0]] {
            assert!(decode(TAR, &bytes.into(), 1 << 20, "x").is_err());
        }
    }
}
