//! Bit-sliced counters.

use crate::participation::row::{Row, WORDS, is_empty};

/// One counter for each bit of a row, as bit planes: plane `i` holds bit `i` of each counter.
#[derive(Debug, Clone)]
pub(crate) struct Counter {
    planes: [Row; 32],
    /// The number of planes in use; higher planes are zero.
    used: u32,
}

impl Default for Counter {
    fn default() -> Self {
        Self {
            planes: [[0; WORDS]; 32],
            used: 0,
        }
    }
}

impl Counter {
    /// Adds one to the counters whose bit is set.
    pub(crate) fn add(&mut self, ones: &Row) {
        let mut ones = *ones;
        for (place, plane) in (1..).zip(&mut self.planes) {
            if is_empty(&ones) {
                return;
            }
            self.used = self.used.max(place);
            for (plane, ones) in plane.iter_mut().zip(&mut ones) {
                let carry = *plane & *ones;
                *plane ^= *ones;
                *ones = carry;
            }
        }
    }

    /// The value of the counter for bit `bit` of word `word`.
    pub(crate) fn of(&self, word: usize, bit: u32) -> u32 {
        let planes = (0..self.used).zip(&self.planes);
        planes
            .map(|(power, plane)| {
                plane
                    .get(word)
                    .map_or(0, |plane| u32::from(plane >> bit & 1 == 1) << power)
            })
            .sum()
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn counters_count_side_by_side() {
        let mut counter = Counter::default();
        for n in 0..1_000_u32 {
            let mut ones = [0; WORDS];
            ones[2] = 1 | u64::from(n % 3 == 0) << 17 | u64::from(n < 5) << 63;
            ones[7] = u64::from(n % 2 == 0);
            counter.add(&ones);
        }
        assert_eq!([0, 17, 63, 5].map(|bit| counter.of(2, bit)), [1_000, 334, 5, 0]);
        assert_eq!((counter.of(7, 0), counter.of(0, 0)), (500, 0));
    }
}
