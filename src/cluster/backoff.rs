//! Growing delays with jitter, computed and not drawn: the same seed and attempt give the same delay (contracts 23).

use std::time::Duration;

/// How delays grow.
#[derive(Clone, Copy, Debug, PartialEq)]
pub struct Backoff {
    /// Before the second attempt.
    pub first: Duration,
    /// Longest delay, jitter aside.
    pub max: Duration,
    /// Part of the delay that jitter adds at most, 0 for none.
    pub jitter: f64,
}

impl Backoff {
    /// For requests to an API server: 200 ms, doubling up to 30 s, a quarter of jitter.
    pub const REQUESTS: Self = Self { first: Duration::from_millis(200), max: Duration::from_secs(30), jitter: 0.25 };

    /// The delay after failed attempt number `attempt` (the first is 1). `seed` tells callers apart, so that they do not come
    /// back at the same moment.
    pub fn delay(&self, attempt: u32, seed: u64) -> Duration {
        let doublings = attempt.saturating_sub(1).min(32);
        let grown = self.first.checked_mul(1_u32.checked_shl(doublings).unwrap_or(u32::MAX)).unwrap_or(self.max).min(self.max);
        grown + grown.mul_f64(self.jitter * unit(seed ^ u64::from(attempt).rotate_left(32)))
    }
}

/// A seed from any text, such as a key's printed form.
pub fn seed_of(text: &str) -> u64 {
    // FNV-1a: stable between processes and releases, which std's hasher does not promise.
    text.bytes().fold(0xcbf2_9ce4_8422_2325, |hash, byte| (hash ^ u64::from(byte)).wrapping_mul(0x0100_0000_01b3))
}

/// A number in 0..1 from a seed (the mixing function of SplitMix64).
fn unit(seed: u64) -> f64 {
    let mut mixed = seed.wrapping_add(0x9e37_79b9_7f4a_7c15);
    mixed = (mixed ^ (mixed >> 30)).wrapping_mul(0xbf58_476d_1ce4_e5b9);
    mixed = (mixed ^ (mixed >> 27)).wrapping_mul(0x94d0_49bb_1331_11eb);
    let high = u32::try_from((mixed ^ (mixed >> 31)) >> 32).expect("the upper half of 64 bits fits 32");
    f64::from(high) / (f64::from(u32::MAX) + 1.0)
}

#[cfg(test)]
mod tests {
    use proptest::prelude::*;

    use super::*;

    #[test]
    fn delays_double_up_to_the_maximum() {
        let plain = Backoff { jitter: 0.0, ..Backoff::REQUESTS };
        let delays: Vec<u128> = [1, 2, 3, 8, 9, 40, u32::MAX].map(|attempt| plain.delay(attempt, 0).as_millis()).into();
        assert_eq!(delays, [200, 400, 800, 25_600, 30_000, 30_000, 30_000]);
    }

    proptest! {
        #[test]
        fn jitter_stays_in_its_part(attempt in 1_u32.., seed: u64) {
            let delay = Backoff::REQUESTS.delay(attempt, seed);
            let base = Backoff { jitter: 0.0, ..Backoff::REQUESTS }.delay(attempt, seed);
            prop_assert!(delay >= base && delay <= base.mul_f64(1.250_000_1));
            prop_assert_eq!(delay, Backoff::REQUESTS.delay(attempt, seed));
        }
    }
}
