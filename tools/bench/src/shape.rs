//! The size and the shape of a data set.

use std::str::FromStr;

use clap::Args;
use serde::{Deserialize, Serialize};

use crate::number::small;

/// Options of `generate`.
#[derive(Debug, Clone, PartialEq, Args, Serialize, Deserialize)]
#[command(next_help_heading = "The data set")]
pub(crate) struct Shape {
    /// Projects: a large one, one in which every test fails sometimes, and small ones
    #[arg(long, value_name = "N", default_value_t = 5, value_parser = clap::value_parser!(u32).range(1..))]
    pub(crate) projects: u32,
    /// Tests of the large project; a small one has a 25th
    #[arg(long, value_name = "N", default_value_t = 5_000, value_parser = clap::value_parser!(u32).range(1..))]
    pub(crate) tests: u32,
    /// Runs per day of the large project; a small one has a seventh
    #[arg(long, value_name = "N", default_value_t = 70.0, value_parser = positive)]
    pub(crate) runs_per_day: f64,
    /// Days of history
    #[arg(long, value_name = "N", default_value_t = 90.0, value_parser = positive)]
    pub(crate) days: f64,
    /// Days of history of the project in which every test fails sometimes; 0 for no such project
    #[arg(long, value_name = "N", default_value_t = 14.0, value_parser = any)]
    pub(crate) storm_days: f64,
    /// Share of the tests that fail sometimes
    #[arg(long, value_name = "SHARE", default_value_t = 0.05, value_parser = share)]
    pub(crate) failing: f64,
    /// Share of the large project's tests that exist from its first day; the others are added until 20 days before the
    /// end
    #[arg(long, value_name = "SHARE", default_value_t = 0.5, value_parser = share)]
    pub(crate) first_tests: f64,
    /// Branches of the large project in addition to its stable one
    #[arg(long, value_name = "N", default_value_t = 400)]
    pub(crate) branches: u32,
    /// Share of the runs that arrive in four shards
    #[arg(long, value_name = "SHARE", default_value_t = 0.03, value_parser = share)]
    pub(crate) sharded: f64,
    /// The same seed gives the same data
    #[arg(long, value_name = "N", default_value_t = 1)]
    pub(crate) seed: u64,
}

impl Shape {
    /// The shape with about this multiple of the results. Its square root scales the tests and the runs.
    pub(crate) fn scaled(&self, size: Size) -> Self {
        let side = size.0.sqrt();
        Self {
            tests: small(f64::from(self.tests) * side).max(1),
            runs_per_day: self.runs_per_day * side,
            ..self.clone()
        }
    }

    /// The number of the large project's runs.
    pub(crate) fn runs(&self) -> u32 {
        small(self.runs_per_day * self.days).max(1)
    }
}

/// A fraction of the full size, such as `1/16`.
#[derive(Debug, Clone, Copy, PartialEq)]
pub(crate) struct Size(pub(crate) f64);

impl FromStr for Size {
    type Err = String;

    fn from_str(text: &str) -> Result<Self, Self::Err> {
        let (above, below) = text.split_once('/').unwrap_or((text, "1"));
        let number = |text: &str| {
            text.trim()
                .parse::<f64>()
                .ok()
                .filter(|number| *number > 0.0 && number.is_finite())
        };
        match (number(above), number(below)) {
            (Some(above), Some(below)) => Ok(Self(above / below)),
            (_, _) => Err("expected a size such as 1, 1/4 or 0.1".to_owned()),
        }
    }
}

impl Size {
    /// The text for a folder's name.
    pub(crate) fn folder(self) -> String {
        format!("size-{}", self.name().replace('/', "-"))
    }

    /// The text for people.
    pub(crate) fn name(self) -> String {
        if self.0 < 1.0 {
            format!("1/{}", small(1.0 / self.0))
        } else {
            self.0.to_string()
        }
    }
}

/// Parses a number above 0.
fn positive(text: &str) -> Result<f64, String> {
    number(text, f64::MIN_POSITIVE, 1e6)
}

/// Parses a number from 0.
fn any(text: &str) -> Result<f64, String> {
    number(text, 0.0, 1e6)
}

/// Parses a share from 0 to 1.
fn share(text: &str) -> Result<f64, String> {
    number(text, 0.0, 1.0)
}

fn number(text: &str, least: f64, most: f64) -> Result<f64, String> {
    let number = text.parse().ok().filter(|number| (least..=most).contains(number));
    number.ok_or_else(|| format!("expected a number from {least} to {most}"))
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_size_is_a_fraction() {
        assert_eq!("1/16".parse(), Ok(Size(0.0625)));
        assert_eq!("0.5".parse(), Ok(Size(0.5)));
        assert_eq!("1/16".parse::<Size>().unwrap().folder(), "size-1-16");
        assert_eq!("1/16".parse::<Size>().unwrap().name(), "1/16");
        assert_eq!("1".parse::<Size>().unwrap().name(), "1");
        for wrong in ["", "0", "1/0", "-1", "a", "1/16/2", "inf"] {
            assert!(wrong.parse::<Size>().is_err(), "{wrong}");
        }
    }
}
