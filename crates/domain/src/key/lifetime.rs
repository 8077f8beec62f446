//! The lifetime of a read key.

use std::{fmt, str::FromStr};

use crate::timestamp::Timestamp;

/// A read key's lifetime, chosen at creation. There is no renewal.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum Lifetime {
    /// 30 days.
    Thirty,
    /// 60 days.
    Sixty,
    /// 90 days.
    Ninety,
    /// 180 days.
    HundredEighty,
}

impl Lifetime {
    /// Every lifetime, the shortest first.
    pub const ALL: [Self; 4] = [Self::Thirty, Self::Sixty, Self::Ninety, Self::HundredEighty];

    /// The number of days.
    pub const fn days(self) -> i64 {
        match self {
            Self::Thirty => 30,
            Self::Sixty => 60,
            Self::Ninety => 90,
            Self::HundredEighty => 180,
        }
    }

    /// The expiry of a key created at `created`.
    pub const fn expiry(self, created: Timestamp) -> Timestamp {
        created.plus_days(self.days())
    }
}

impl fmt::Display for Lifetime {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        self.days().fmt(f)
    }
}

/// The error of a number of days that is not a permitted lifetime.
#[derive(Debug, Clone, Copy, PartialEq, Eq, thiserror::Error)]
#[error("expected one of 30, 60, 90, 180")]
pub struct NotALifetime;

impl FromStr for Lifetime {
    type Err = NotALifetime;

    /// Parses the number of days.
    fn from_str(days: &str) -> Result<Self, Self::Err> {
        let named = Self::ALL
            .into_iter()
            .find(|lifetime| lifetime.to_string() == days);
        named.ok_or(NotALifetime)
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn every_lifetime_reads_back_and_counts_days_of_24_hours() {
        let created_at = Timestamp::from_unix_ms(0);
        for lifetime in Lifetime::ALL {
            assert_eq!(lifetime.to_string().parse(), Ok(lifetime));
            assert_eq!(
                lifetime.expiry(created_at).unix_ms(),
                lifetime.days() * 86_400_000
            );
        }
        for bad in ["", "0", "31", "+30", " 30", "30.0", "-30"] {
            assert_eq!(bad.parse::<Lifetime>(), Err(NotALifetime), "{bad}");
        }
    }
}
