//! What an image needs to know of an executable.

use std::fs::File;
use std::io::{self, Read, Seek, SeekFrom};

/// The architecture of a static ELF executable, as images name it; why it cannot run in an image with nothing else in it.
pub(super) fn architecture(file: &mut File) -> io::Result<Result<&'static str, String>> {
    const HEADER: usize = 64;
    const INTERPRETER: u32 = 3;
    let mut header = [0; HEADER];
    if file.read(&mut header)? < HEADER || header[..6] != [0x7f, b'E', b'L', b'F', 2, 1] {
        return Ok(Err("it is not an executable for Linux of 64 bits".to_owned()));
    }
    let number = |at: usize, length: usize| header[at..at + length].iter().rev().fold(0, |all, byte| all << 8 | u64::from(*byte));
    let architecture = match number(18, 2) {
        0x3e => "amd64",
        0xb7 => "arm64",
        other => return Ok(Err(format!("its architecture (ELF machine {other}) is not one that images are made for"))),
    };
    let (start, entry, count) = (number(32, 8), number(54, 2), number(56, 2));
    for index in 0..count {
        let mut kind = [0; 4];
        file.seek(SeekFrom::Start(start.saturating_add(index * entry)))?;
        file.read_exact(&mut kind)?;
        if u32::from_le_bytes(kind) == INTERPRETER {
            return Ok(Err("it is not a static build: it needs libraries that an image of one file does not have".to_owned()));
        }
    }
    Ok(Ok(architecture))
}
