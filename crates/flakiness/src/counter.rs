//! Counting by words.

/// Sixty-four counters side by side: plane `i` holds bit `i` of each.
#[derive(Debug, Default)]
pub(crate) struct Counter {
    planes: [u64; 32],
    /// Planes that were ever carried into; those above are zero.
    used: u32,
}

impl Counter {
    /// Adds one to the counters whose bit is set.
    pub(crate) fn add(&mut self, mut ones: u64) {
        for (place, plane) in (1..).zip(&mut self.planes) {
            if ones == 0 {
                return;
            }
            self.used = self.used.max(place);
            let carry = *plane & ones;
            *plane ^= ones;
            ones = carry;
        }
    }

    /// The counter of a bit.
    pub(crate) fn of(&self, bit: u32) -> u32 {
        (0..self.used)
            .zip(&self.planes)
            .map(|(power, plane)| u32::from(plane >> bit & 1 == 1) << power)
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
            counter.add(1 | u64::from(n % 3 == 0) << 17 | u64::from(n < 5) << 63);
        }
        assert_eq!(
            (counter.of(0), counter.of(17), counter.of(63), counter.of(5)),
            (1_000, 334, 5, 0)
        );
    }
}
