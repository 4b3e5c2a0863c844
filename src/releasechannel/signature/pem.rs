//! The value of a signature: hex, or PEM with the certificates of the signer.

use base64::Engine;
use base64::engine::general_purpose::STANDARD;

use crate::descriptor::Signature;
use crate::digest::unhex;

const LIMIT: usize = 1 << 20;
const CERTIFICATES: usize = 16;

/// A signature in its parts.
#[derive(Debug)]
pub(super) struct Parts {
    pub(super) signature: Vec<u8>,
    /// DER, the signer's first.
    pub(super) certificates: Vec<Vec<u8>>,
}

impl Parts {
    pub(super) fn read(signature: &Signature) -> Result<Self, String> {
        if signature.value.len() > LIMIT {
            return Err("the signature is larger than a mebibyte".to_owned());
        }
        match signature.media_type.as_str() {
            "application/vnd.ocm.signature.rsa"
            | "application/vnd.ocm.signature.rsa.pss"
            | "application/vnd.ocm.signature.rsa.pkcs1v15" => {
                let bytes = unhex(signature.value.trim()).ok_or_else(|| "the signature is not hex".to_owned())?;
                Ok(Self { signature: bytes, certificates: Vec::new() })
            }
            "application/x-pem-file" => pem(&signature.value, &signature.algorithm),
            other => Err(format!("the media type `{other}` of the signature is not one that plinth reads")),
        }
    }
}

fn pem(text: &str, algorithm: &str) -> Result<Parts, String> {
    let mut parts = Parts { signature: Vec::new(), certificates: Vec::new() };
    for block in blocks(text)? {
        match block.label.as_str() {
            "SIGNATURE" => {
                if block.algorithm.is_some_and(|said| said != algorithm) {
                    return Err("the PEM block names another algorithm than the signature".to_owned());
                }
                parts.signature = block.content;
            }
            "CERTIFICATE" if parts.certificates.len() < CERTIFICATES => parts.certificates.push(block.content),
            "CERTIFICATE" => return Err(format!("the signature has more than {CERTIFICATES} certificates")),
            _ => {}
        }
    }
    if parts.signature.is_empty() { Err("the PEM text has no block SIGNATURE".to_owned()) } else { Ok(parts) }
}

/// One block of a PEM text.
#[derive(Debug)]
pub(super) struct Block {
    pub(super) label: String,
    pub(super) algorithm: Option<String>,
    pub(super) content: Vec<u8>,
}

/// Reads all blocks, with headers (which rustls' reader does not know).
pub(super) fn blocks(text: &str) -> Result<Vec<Block>, String> {
    let mut blocks = Vec::new();
    let mut lines = text.lines().map(str::trim);
    while let Some(line) = lines.next() {
        let Some(label) = line.strip_prefix("-----BEGIN ").and_then(|rest| rest.strip_suffix("-----")) else { continue };
        let end = format!("-----END {label}-----");
        let (mut encoded, mut algorithm, mut is_closed) = (String::new(), None, false);
        for line in lines.by_ref() {
            if line == end {
                is_closed = true;
                break;
            }
            match line.split_once(':') {
                Some(("Signature Algorithm", value)) => algorithm = Some(value.trim().to_owned()),
                Some(_) => {}
                None => encoded.push_str(line),
            }
        }
        let content = STANDARD.decode(&encoded).ok().filter(|_| is_closed);
        let content = content.ok_or_else(|| format!("the PEM block {} is broken", label.chars().take(40).collect::<String>()))?;
        blocks.push(Block { label: label.to_owned(), algorithm, content });
    }
    Ok(blocks)
}
