//! MD5 (RFC 1321), which kro offers as a hash; no security rests on it here.

/// Bits that each step rotates by, four for each round.
const ROTATIONS: [[u32; 4]; 4] = [[7, 12, 17, 22], [5, 9, 14, 20], [4, 11, 16, 23], [6, 10, 15, 21]];

/// The digest of `input`.
pub(super) fn md5(input: &[u8]) -> [u8; 16] {
    let mut message = input.to_vec();
    message.push(0x80);
    while message.len() % 64 != 56 {
        message.push(0);
    }
    message.extend((input.len() as u64).wrapping_mul(8).to_le_bytes());
    let mut state = [0x6745_2301_u32, 0xefcd_ab89, 0x98ba_dcfe, 0x1032_5476];
    for block in message.chunks_exact(64) {
        absorb(&mut state, block);
    }
    let mut digest = [0; 16];
    for (part, word) in digest.chunks_exact_mut(4).zip(state) {
        part.copy_from_slice(&word.to_le_bytes());
    }
    digest
}

fn absorb(state: &mut [u32; 4], block: &[u8]) {
    let word =
        |index: usize| u32::from_le_bytes([block[4 * index], block[4 * index + 1], block[4 * index + 2], block[4 * index + 3]]);
    let [mut a, mut b, mut c, mut d] = *state;
    for step in 0..64 {
        let (mixed, index) = match step / 16 {
            0 => ((b & c) | (!b & d), step),
            1 => ((d & b) | (!d & c), (5 * step + 1) % 16),
            2 => (b ^ c ^ d, (3 * step + 5) % 16),
            _ => (c ^ (b | !d), 7 * step % 16),
        };
        let sum = a.wrapping_add(mixed).wrapping_add(constant(step)).wrapping_add(word(index));
        (a, d, c, b) = (d, c, b, b.wrapping_add(sum.rotate_left(ROTATIONS[step / 16][step % 4])));
    }
    for (old, new) in state.iter_mut().zip([a, b, c, d]) {
        *old = old.wrapping_add(new);
    }
}

/// The integer part of `2^32 · |sin(step + 1)|`.
#[expect(clippy::cast_possible_truncation, clippy::cast_sign_loss, clippy::cast_precision_loss, reason = "the RFC defines it so")]
fn constant(step: usize) -> u32 {
    (((step + 1) as f64).sin().abs() * 4_294_967_296.0) as u32
}

#[cfg(test)]
mod tests {
    use super::md5;

    #[test]
    fn gives_the_digests_of_the_rfc() {
        let hex = |input: &str| format!("{:032x}", u128::from_be_bytes(md5(input.as_bytes())));
        assert_eq!(hex(""), "d41d8cd98f00b204e9800998ecf8427e");
        assert_eq!(hex("abc"), "900150983cd24fb0d6963f7d28e17f72");
        assert_eq!(hex("message digest"), "f96b697d7cb7938d525a2f31aaf161d0");
        let digits = "12345678901234567890123456789012345678901234567890123456789012345678901234567890";
        assert_eq!(hex(digits), "57edf4a22be3c955ac49da2e2107b67a");
    }
}
