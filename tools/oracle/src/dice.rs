//! Repeatable random numbers: a seed gives the same numbers on every machine and in every version.

/// A SplitMix64 generator.
pub struct Dice(u64);

impl Dice {
    /// The generator of a seed and a purpose, so that one part of a world does not change another.
    pub fn new(seed: u64, purpose: &str) -> Self {
        let salt = purpose.bytes().fold(0xcbf2_9ce4_8422_2325_u64, |hash, byte| {
            (hash ^ u64::from(byte)).wrapping_mul(0x0100_0000_01b3)
        });
        Self(seed ^ salt)
    }

    /// Any 64 bits.
    pub fn bits(&mut self) -> u64 {
        self.0 = self.0.wrapping_add(0x9e37_79b9_7f4a_7c15);
        let mut z = self.0;
        z = (z ^ (z >> 30)).wrapping_mul(0xbf58_476d_1ce4_e5b9);
        z = (z ^ (z >> 27)).wrapping_mul(0x94d0_49bb_1331_11eb);
        z ^ (z >> 31)
    }

    /// A number of `low..=high`.
    pub fn between(&mut self, low: i64, high: i64) -> i64 {
        low + (self.bits() % (high - low + 1) as u64) as i64
    }

    /// True with this probability in percent.
    pub fn percent(&mut self, chance: i64) -> bool {
        self.between(0, 99) < chance
    }

    /// One of several.
    pub fn pick<'a, T>(&mut self, items: &'a [T]) -> &'a T {
        &items[self.between(0, items.len() as i64 - 1) as usize]
    }

    /// Hexadecimal digits with a decimal digit among them, as in every real id of this length.
    pub fn hex(&mut self, digits: usize) -> String {
        let mut text: String = (0..digits)
            .map(|_| char::from_digit((self.bits() % 16) as u32, 16).unwrap())
            .collect();
        text.replace_range(0..1, &self.between(1, 9).to_string());
        text
    }

    /// A UUID in text.
    pub fn uuid(&mut self) -> String {
        let hex = self.hex(32);
        format!(
            "{}-{}-4{}-a{}-{}",
            &hex[..8],
            &hex[8..12],
            &hex[13..16],
            &hex[17..20],
            &hex[20..]
        )
    }
}
