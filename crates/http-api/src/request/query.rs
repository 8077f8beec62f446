//! The parameters of a query, parsed strictly: an invalid value is rejected and never replaced by a default.

use std::ops::Deref;

use assay_answers::cursor;
use assay_domain::{
    page::{Direction, PerPage, RunPosition},
    period::{Days, Period},
    plan::Plan,
    project::NAME_CHARS,
    test::FileSelector,
    timestamp::Timestamp,
};
use assay_http::{Pairs, Unanswerable};
use validator::ValidateLength;

const CURSOR_CHARS: u64 = 64;

/// The parameters of one query, with the inputs of their rules. A handler reads them in the order of the documentation,
/// so that the error names the first invalid one in that order.
pub(crate) struct Query<'a> {
    pairs: &'a Pairs,
    plan: Plan,
    now: Timestamp,
}

impl Deref for Query<'_> {
    type Target = Pairs;

    fn deref(&self) -> &Pairs {
        self.pairs
    }
}

impl<'a> Query<'a> {
    pub(crate) const fn new(pairs: &'a Pairs, plan: Plan, now: Timestamp) -> Self {
        Self { pairs, plan, now }
    }

    /// `days`: 7, 30 (the default) or 90, within the plan's retention.
    pub(crate) fn period(&self) -> Result<Period, Unanswerable> {
        let bad = || Unanswerable::BadPeriod(self.plan);
        let count = match self.single("days").map_err(|_| bad())? {
            None => Some(Days::default().count()),
            // One spelling of each number: `07` and `+7` are invalid.
            Some(text) => text.parse().ok().filter(|count: &i64| count.to_string() == text),
        };
        let days = count
            .and_then(|count| Days::within(self.plan, count))
            .ok_or_else(bad)?;
        Ok(Period::ending(self.now, days))
    }

    /// A text of 1 to 200 characters.
    pub(crate) fn text(&self, name: &'static str) -> Result<Option<String>, Unanswerable> {
        self.pairs.text(name, NAME_CHARS)
    }

    /// `perPage`: 10 (the default), 25 or 50.
    pub(crate) fn per_page(&self) -> Result<PerPage, Unanswerable> {
        let name = self.given_of("perPage", "limit")?;
        let per_page = self.parse(name, "must be one of 10, 25, 50", |count| match count {
            "10" => Some(PerPage::Ten),
            "25" => Some(PerPage::TwentyFive),
            "50" => Some(PerPage::Fifty),
            _ => None,
        })?;
        Ok(per_page.unwrap_or_default())
    }

    /// `limit`: 10 (the default), 25, 50 or 200.
    pub(crate) fn limit(&self) -> Result<u32, Unanswerable> {
        let name = self.given_of("limit", "perPage")?;
        let limit = self.parse(name, "must be one of 10, 25, 50, 200", |count| match count {
            "10" => Some(10),
            "25" => Some(25),
            "50" => Some(50),
            "200" => Some(200),
            _ => None,
        })?;
        Ok(limit.unwrap_or(10))
    }

    /// The given one of two names for the number of entries. A list takes the other's name, too, because ignoring it would
    /// answer ten.
    fn given_of(&self, own: &'static str, other: &'static str) -> Result<&'static str, Unanswerable> {
        match (self.single(own)?, self.single(other)?) {
            (Some(_), Some(_)) => Err(Unanswerable::bad(
                other,
                &format!("means the same as {own}; give one of them"),
            )),
            (None, Some(_)) => Ok(other),
            (Some(_) | None, None) => Ok(own),
        }
    }

    /// `cursor` and `direction`: the position to read from, if any, and the direction.
    pub(crate) fn position(&self) -> Result<(Option<RunPosition>, Direction), Unanswerable> {
        let position = self.parse(
            "cursor",
            "must be a nextCursor or prevCursor of the runs list",
            |text| {
                text.validate_length(Some(1), Some(CURSOR_CHARS), None)
                    .then(|| cursor::decode(text))
                    .flatten()
            },
        )?;
        let direction = self.parse("direction", "must be one of next, prev", |word| match word {
            "next" => Some(Direction::Next),
            "prev" => Some(Direction::Prev),
            _ => None,
        })?;
        match (position, direction.unwrap_or_default()) {
            (None, Direction::Prev) => Err(Unanswerable::bad(
                "direction",
                "can be prev only together with cursor",
            )),
            (position, direction @ (Direction::Next | Direction::Prev)) => Ok((position, direction)),
        }
    }

    /// `filePath`: empty for a test without a file. Without the parameter, the file does not matter.
    pub(crate) fn file(&self) -> Result<FileSelector, Unanswerable> {
        Ok(match self.single("filePath")? {
            None => FileSelector::Any,
            Some("") => FileSelector::Exactly(None),
            Some(file) => FileSelector::Exactly(Some(file.to_owned())),
        })
    }
}

#[cfg(test)]
mod tests;
