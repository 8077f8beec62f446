//! The period of a request.

use serde::{Serialize, Serializer};

use crate::{plan::Plan, timestamp::Timestamp};

/// The lengths of a period: 7, 30 or 90 days.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Default)]
pub enum Days {
    /// A week.
    Seven,
    /// The default.
    #[default]
    Thirty,
    /// Within the Pro plan only.
    Ninety,
}

impl Days {
    /// Every length, ascending.
    pub const ALL: [Self; 3] = [Self::Seven, Self::Thirty, Self::Ninety];

    /// The lengths within the plan's retention, ascending.
    pub fn of_plan(plan: Plan) -> impl Iterator<Item = Self> {
        let retention_days = plan.retention_days();
        Self::ALL
            .into_iter()
            .filter(move |days| days.count() <= retention_days)
    }

    /// The period of `days` days; none unless it is 7, 30 or 90 and within the plan's retention.
    pub fn within(plan: Plan, days: i64) -> Option<Self> {
        Self::of_plan(plan).find(|length| length.count() == days)
    }

    /// The number of days.
    pub const fn count(self) -> i64 {
        match self {
            Self::Seven => 7,
            Self::Thirty => 30,
            Self::Ninety => 90,
        }
    }
}

impl Serialize for Days {
    fn serialize<S: Serializer>(&self, serializer: S) -> Result<S::Ok, S::Error> {
        self.count().serialize(serializer)
    }
}

/// A period ending now. A run belongs to it if it started within `from..=to`.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Serialize)]
#[cfg_attr(feature = "openapi", derive(utoipa::ToSchema))]
pub struct Period {
    /// Its length in days of 24 hours.
    #[cfg_attr(feature = "openapi", schema(value_type = i64, minimum = 0))]
    pub days: Days,
    /// Its start, inclusive.
    pub from: Timestamp,
    /// Its end: the time of the request.
    pub to: Timestamp,
}

impl Period {
    /// The period of `days` that ends at `now`.
    pub const fn ending(now: Timestamp, days: Days) -> Self {
        Self {
            days,
            from: now.plus_days(-days.count()),
            to: now,
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn periods_stay_within_the_plan() {
        assert_eq!(Days::within(Plan::Standard, 90), None);
        assert_eq!(Days::within(Plan::Pro, 90), Some(Days::Ninety));
        assert_eq!(Days::within(Plan::Pro, 14), None);
        assert_eq!(Days::within(Plan::Standard, 30), Some(Days::Thirty));
    }
}
