//! Numbered pages, for lists that are computed as a whole, and the position in the runs list.

use serde::{Deserialize, Serialize};

use crate::timestamp::Timestamp;

/// The number of entries per page.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Hash, Default)]
pub enum PerPage {
    /// The default.
    #[default]
    Ten,
    /// 25 entries.
    TwentyFive,
    /// 50 entries.
    Fifty,
}

impl PerPage {
    /// The page size `count`; none unless it is 10, 25 or 50.
    pub const fn of(count: i64) -> Option<Self> {
        match count {
            10 => Some(Self::Ten),
            25 => Some(Self::TwentyFive),
            50 => Some(Self::Fifty),
            _ => None,
        }
    }

    /// The number of entries.
    pub const fn count(self) -> u32 {
        match self {
            Self::Ten => 10,
            Self::TwentyFive => 25,
            Self::Fifty => 50,
        }
    }
}

/// The position of a page in a list that is computed as a whole.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Serialize, Deserialize)]
#[cfg_attr(feature = "openapi", derive(utoipa::ToSchema))]
#[serde(rename_all = "camelCase")]
pub struct Page {
    /// This page's number, from 1.
    #[cfg_attr(feature = "openapi", schema(minimum = 1))]
    pub page: u64,
    /// Entries per page.
    #[cfg_attr(feature = "openapi", schema(minimum = 1))]
    pub per_page: u32,
    /// Entries of the whole list.
    pub total: u64,
    /// Pages of the whole list, at least 1.
    #[cfg_attr(feature = "openapi", schema(minimum = 1))]
    pub page_count: u64,
}

impl Page {
    /// The page `requested` (from 1) of a list of `total` entries. A page past the end becomes the last page.
    pub fn of(requested: u64, per_page: PerPage, total: u64) -> Self {
        Self::of_size(requested, per_page.count(), total)
    }

    /// The page `requested` (from 1) of a list of `total` entries with this page size. A page past the end becomes the
    /// last page.
    pub fn of_size(requested: u64, per_page: u32, total: u64) -> Self {
        let page_count = total.div_ceil(u64::from(per_page.max(1))).max(1);
        Self {
            page: requested.clamp(1, page_count),
            per_page,
            total,
            page_count,
        }
    }

    /// The entries of this page, of those of the whole list.
    pub fn part<T>(&self, list: impl IntoIterator<Item = T>) -> impl Iterator<Item = T> {
        let (first, most) = self.bounds();
        list.into_iter().skip(first).take(most)
    }

    /// The index of its first entry in the whole list, and the most entries of it.
    pub fn bounds(&self) -> (usize, usize) {
        let saturated = |number| usize::try_from(number).unwrap_or(usize::MAX);
        (saturated(self.offset()), saturated(u64::from(self.per_page)))
    }

    /// The number of entries before this page.
    pub fn offset(&self) -> u64 {
        (self.page - 1) * u64::from(self.per_page)
    }
}

/// The direction in which the runs list is read from a position.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Default)]
pub enum Direction {
    /// Older runs.
    #[default]
    Next,
    /// Newer runs.
    Prev,
}

/// A position in the runs list, whose order is (startedAt, runNumber), newest first.
#[derive(Debug, Clone, Copy, PartialEq, Eq, PartialOrd, Ord)]
pub struct RunPosition {
    /// The run's start.
    pub started_at: Timestamp,
    /// The run's number, the tie-break.
    pub number: i32,
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_page_past_the_end_is_the_last() {
        let page = Page::of(u64::MAX, PerPage::Ten, 21);
        assert_eq!((page.page, page.page_count, page.offset()), (3, 3, 20));
        assert_eq!(Page::of(5, PerPage::Fifty, 0).page, 1);
    }
}
