//! Numbers from a seed.

use std::time::Duration;

/// SplitMix64: the same seed gives the same numbers on every machine.
#[derive(Clone, Debug)]
pub(crate) struct Random(u64);

impl Random {
    pub(crate) fn new(seed: u64) -> Self {
        Self(seed)
    }

    /// Another sequence, so that what one part draws does not move what another part gets.
    pub(crate) fn fork(&mut self) -> Self {
        Self(self.number())
    }

    pub(crate) fn number(&mut self) -> u64 {
        self.0 = self.0.wrapping_add(0x9e37_79b9_7f4a_7c15);
        let mut mixed = self.0;
        mixed = (mixed ^ (mixed >> 30)).wrapping_mul(0xbf58_476d_1ce4_e5b9);
        mixed = (mixed ^ (mixed >> 27)).wrapping_mul(0x94d0_49bb_1331_11eb);
        mixed ^ (mixed >> 31)
    }

    /// A number from `low` to below `high`.
    pub(crate) fn between(&mut self, low: u64, high: u64) -> u64 {
        low + self.number() % (high - low)
    }

    /// True in so many of a thousand cases.
    pub(crate) fn chance(&mut self, per_mille: u64) -> bool {
        self.number() % 1000 < per_mille
    }

    pub(crate) fn pick<T: Copy>(&mut self, from: &[T]) -> T {
        from[usize::try_from(self.between(0, from.len() as u64)).unwrap()]
    }

    pub(crate) fn millis(&mut self, low: u64, high: u64) -> Duration {
        Duration::from_millis(self.between(low, high))
    }
}
