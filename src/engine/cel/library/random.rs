//! kro's functions that give the same for the same input: random, hash, omit.

use cel::common::types::CelBytes;
use sha2::{Digest, Sha256};

use super::{
    Entry,
    arguments::{Arguments, Outcome, fail, give, give_int, give_text, int, text},
    md5::md5,
    opaque::{Omit, OmitMark},
    ours,
};
use crate::{cel::budget::spend, naming};

pub(super) fn entries() -> Vec<Entry> {
    vec![
        ours("random.seededString", &["random.seededString(int, string) -> string"], seeded_string),
        ours("random.seededInt", &["random.seededInt(int, int, string) -> int"], seeded_int),
        ours("hash.fnv64a", &["hash.fnv64a(string) -> bytes"], fnv64a),
        ours("hash.sha256", &["hash.sha256(string) -> bytes"], sha256),
        ours("hash.md5", &["hash.md5(string) -> bytes"], md5_of),
        ours("omit", &["omit() -> dyn"], omit),
    ]
}

/// kro.md section 4: letter `i` is the big-endian number at byte `4i mod 32` of SHA-256(seed), modulo 36.
fn seeded_string<'b, 'v>(arguments: Arguments<'b, 'v>) -> Outcome<'b, 'v> {
    const LETTERS: &[u8; 36] = b"0123456789abcdefghijklmnopqrstuvwxyz";
    let Some(length) = usize::try_from(int(&arguments, 0)?).ok().filter(|length| *length > 0) else {
        return fail("random.seededString length must be positive");
    };
    spend(length as u64 / 64)?;
    let digest = Sha256::digest(text(&arguments, 1)?.as_bytes());
    let letter = |index: usize| {
        let at = 4 * index % 32;
        let number = u32::from_be_bytes([digest[at], digest[at + 1], digest[at + 2], digest[at + 3]]);
        char::from(LETTERS[number as usize % 36])
    };
    give_text((0..length).map(letter).collect::<String>())
}

fn seeded_int<'b, 'v>(arguments: Arguments<'b, 'v>) -> Outcome<'b, 'v> {
    let (least, bound) = (int(&arguments, 0)?, int(&arguments, 1)?);
    if least >= bound {
        return fail("random.seededInt min must be less than max");
    }
    let digest = Sha256::digest(text(&arguments, 2)?.as_bytes());
    let mut first = [0; 8];
    first.copy_from_slice(&digest[..8]);
    let offset = u64::from_be_bytes(first) % bound.abs_diff(least);
    give_int(least.wrapping_add_unsigned(offset))
}

fn fnv64a<'b, 'v>(arguments: Arguments<'b, 'v>) -> Outcome<'b, 'v> {
    let hash = naming::fnv64a(text(&arguments, 0)?);
    give(CelBytes::from(hash.to_be_bytes().to_vec()))
}

fn sha256<'b, 'v>(arguments: Arguments<'b, 'v>) -> Outcome<'b, 'v> {
    give(CelBytes::from(Sha256::digest(text(&arguments, 0)?.as_bytes()).to_vec()))
}

fn md5_of<'b, 'v>(arguments: Arguments<'b, 'v>) -> Outcome<'b, 'v> {
    give(CelBytes::from(md5(text(&arguments, 0)?.as_bytes()).to_vec()))
}

fn omit<'b, 'v>(_: Arguments<'b, 'v>) -> Outcome<'b, 'v> {
    let omit: Omit = super::opaque::Opaque(OmitMark);
    give(omit)
}
