//! Products of hundreds of likelihoods, which would underflow an `f64`, without logarithms.
#![expect(
    clippy::indexing_slicing,
    reason = "the index runs over the grid, which is the length of every array"
)]

use std::array::from_fn;

use crate::model::{GRID, PerRate};

/// A product for each rate: a mantissa from 1 to below 2 (apart from the latest factors), and an exponent of two.
#[derive(Debug, Clone)]
pub(crate) struct ScaledProduct {
    numbers: PerRate,
    powers: [i64; GRID],
}

/// The bits of an `f64`'s exponent.
const EXPONENT: u64 = 0x7ff << MANTISSA;
const MANTISSA: u32 = 52;
/// The exponent bits of 1.0.
const BIAS: i64 = 1023;

impl ScaledProduct {
    /// The empty product.
    pub(crate) const ONE: Self = Self {
        numbers: [1.0; GRID],
        powers: [0; GRID],
    };

    /// Multiplies each product by a factor. The factors between two calls of [`ScaledProduct::settle`] must stay in the
    /// range of an `f64`.
    #[inline]
    pub(crate) fn multiply(&mut self, factors: &PerRate) {
        for (number, factor) in self.numbers.iter_mut().zip(factors) {
            *number *= factor;
        }
    }

    /// Multiplies each product by another one.
    pub(crate) fn multiply_all(&mut self, other: &Self) {
        self.multiply(&other.numbers);
        for (power, other) in self.powers.iter_mut().zip(&other.powers) {
            *power += other;
        }
        self.settle();
    }

    /// Divides each product by another one.
    pub(crate) fn divide_all(&mut self, other: &Self) {
        self.multiply(&other.numbers.map(|number| 1.0 / number));
        for (power, other) in self.powers.iter_mut().zip(&other.powers) {
            *power -= other;
        }
        self.settle();
    }

    /// Moves the mantissas' exponents into the separate ones, which makes room for further factors.
    pub(crate) fn settle(&mut self) {
        for (number, power) in self.numbers.iter_mut().zip(&mut self.powers) {
            let bits = number.to_bits();
            *power += exponent(bits);
            *number = f64::from_bits(bits & !EXPONENT | 1.0_f64.to_bits());
        }
    }

    /// The posterior of each rate, if this is the likelihood of the results under it, and the logarithm of the results'
    /// marginal likelihood.
    pub(crate) fn posterior(mut self, prior: &PerRate) -> (PerRate, f64) {
        self.settle();
        let peak = self.powers.iter().copied().max().unwrap_or(0);
        let weights: PerRate = from_fn(|k| prior[k] * self.numbers[k] * power_of_two(self.powers[k] - peak));
        let total: f64 = weights.iter().sum();
        (
            weights.map(|weight| weight / total),
            total.ln() + logarithm_of_power(peak),
        )
    }
}

fn exponent(bits: u64) -> i64 {
    i64::try_from((bits & EXPONENT) >> MANTISSA).map_or(0, |exponent| exponent - BIAS)
}

#[expect(
    clippy::as_conversions,
    clippy::cast_precision_loss,
    reason = "the exponent of the likelihood of a window is far below 2^52"
)]
fn logarithm_of_power(power: i64) -> f64 {
    power as f64 * std::f64::consts::LN_2
}

/// Zero if it underflows.
fn power_of_two(power: i64) -> f64 {
    u64::try_from(power + BIAS).map_or(0.0, |exponent| f64::from_bits(exponent << MANTISSA))
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::model::prior;

    #[test]
    fn products_of_any_length_keep_their_proportions() {
        let mut product = ScaledProduct::ONE;
        for step in 1..=10_000 {
            product.multiply(&from_fn(|k| if k == 3 { 1e-5 } else { 0.999e-5 }));
            if step % 32 == 0 {
                product.settle();
            }
        }
        let mut twice = product.clone();
        twice.multiply_all(&product);
        let mut once = twice.clone();
        once.divide_all(&product);
        let (_, log) = once.posterior(&[1.0; GRID].map(|one| one / 13.0));
        let mean = (1.0 + 12.0 * 0.999_f64.powf(1e4)) / 13.0;
        let expected = 10_000.0 * 1e-5_f64.ln() + mean.ln();
        assert!((log - expected).abs() < 1e-6, "{log} {expected}");
        let prior = prior(0.06, 0.001);
        for (product, factors) in [(product, 1e4), (twice, 2e4)] {
            let others = prior.iter().sum::<f64>() - prior[3];
            let expected = prior[3] / (prior[3] + others * 0.999_f64.powf(factors));
            assert!((product.posterior(&prior).0[3] - expected).abs() < 1e-9);
        }
    }
}
