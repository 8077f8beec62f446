//! The plans of organizations.

use crate::vocabulary::vocabulary;

vocabulary!(
    /// An organization's plan, which sets the retention.
    Plan {
        /// No read API; results are kept as under Standard.
        Free = "free",
        /// The read API over 60 days of results.
        Standard = "standard",
        /// The read API over 90 days of results.
        Pro = "pro",
    }
);

impl Plan {
    /// The days of results that the plan shows. No route shows older ones.
    pub const fn retention_days(self) -> i64 {
        match self {
            Self::Free | Self::Standard => 60,
            Self::Pro => 90,
        }
    }

    /// Whether the plan includes the read API.
    pub const fn has_read_api(self) -> bool {
        match self {
            Self::Free => false,
            Self::Standard | Self::Pro => true,
        }
    }
}
