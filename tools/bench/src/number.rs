//! Converts between counts and measurements.

/// A count as a measurement.
#[expect(
    clippy::as_conversions,
    reason = "counts here lie far below 2^52, where this is exact"
)]
pub(crate) fn float(count: impl TryInto<u64>) -> f64 {
    count.try_into().unwrap_or(u64::MAX) as f64
}

/// The count nearest to a measurement; 0 if it is not a number.
#[expect(clippy::as_conversions, reason = "the conversion is meant to saturate")]
pub(crate) fn whole(measured: f64) -> u64 {
    measured.round() as u64
}

/// The same for counts of 32 bits.
pub(crate) fn small(measured: f64) -> u32 {
    u32::try_from(whole(measured)).unwrap_or(u32::MAX)
}

/// The percentile (0 to 1) of ascending samples; none without samples.
pub(crate) fn percentile<T: Copy>(ascending: &[T], share: f64) -> Option<T> {
    let last = ascending.len().checked_sub(1)?;
    let index = usize::try_from(whole(float(last) * share)).unwrap_or(last);
    ascending.get(index.min(last)).copied()
}

/// The median of some measurements.
pub(crate) fn median(mut samples: Vec<f64>) -> Option<f64> {
    samples.sort_by(f64::total_cmp);
    percentile(&samples, 0.5)
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn percentiles_are_samples() {
        let samples: Vec<u32> = (1..=101).collect();
        assert_eq!(percentile(&samples, 0.5), Some(51));
        assert_eq!(percentile(&samples, 0.99), Some(100));
        assert_eq!(percentile(&samples, 1.0), Some(101));
        assert_eq!(percentile::<u32>(&[], 0.5), None);
        assert_eq!(median(vec![3.0, 1.0, 2.0]), Some(2.0));
    }
}
