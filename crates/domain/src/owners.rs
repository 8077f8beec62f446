//! Who owns the tests: the checkout's owners file, and its answer about a test.

mod candidates;
mod lookup;
mod rules;

use serde::{Deserialize, Serialize};

use candidates::Candidates;
pub use lookup::{Lookup, Owners, PLACES};
pub use rules::{Problem, Rules};

/// The owners file of a checkout, such as `.github/CODEOWNERS`, with the files that it is about.
#[derive(Debug, Clone, PartialEq, Eq, Default)]
pub struct OwnersFile {
    /// Its path in the checkout. Empty if the checkout has no owners file.
    pub path: String,
    /// Its text.
    pub text: String,
    /// The files of the checkout, one path per line, relative to its root. Empty if they are unknown.
    pub files: String,
}

impl OwnersFile {
    /// The most bytes of its text.
    pub const MOST_TEXT_BYTES: usize = 256 << 10;
    /// The most bytes of the list of files.
    pub const MOST_FILES_BYTES: usize = 4 << 20;
    /// The longest path, in characters.
    pub const LONGEST_PATH: usize = 300;
}

/// The owners of a test's file.
#[derive(Debug, Clone, PartialEq, Eq, Default, Serialize, Deserialize)]
#[cfg_attr(feature = "openapi", derive(utoipa::ToSchema))]
#[serde(rename_all = "camelCase")]
pub struct Ownership {
    /// Its owners as the owners file names them, such as `@org/team`; empty if it has none.
    #[cfg_attr(feature = "openapi", schema(max_items = 50))]
    pub owners: Vec<String>,
    /// Whether its owners are unclear: several files of the checkout may be meant, with different owners, or the rules take
    /// too long. Then `owners` is empty.
    pub owners_ambiguous: bool,
}

impl Ownership {
    /// The groups that it counts for: its owners, or else [`OwnerFilter::UNOWNED`].
    pub fn groups(&self) -> impl Iterator<Item = &str> {
        let unowned = self.owners.is_empty().then_some(OwnerFilter::UNOWNED);
        self.owners.iter().map(String::as_str).chain(unowned)
    }

    /// Whether this is one of its owners. Handles and addresses are compared without case.
    pub fn has(&self, owner: &str) -> bool {
        self.owners.iter().any(|own| own.eq_ignore_ascii_case(owner))
    }
}

/// Selects tests by owner.
#[derive(Debug, Clone, PartialEq, Eq)]
pub enum OwnerFilter {
    /// Tests of this owner.
    Of(String),
    /// Tests without an owner.
    Unowned,
}

impl OwnerFilter {
    /// The word for tests without an owner. No owner is named so, because each name has an `@`.
    pub const UNOWNED: &'static str = "unowned";

    /// The filter of a text.
    pub fn of(text: &str) -> Self {
        match text {
            Self::UNOWNED => Self::Unowned,
            owner => Self::Of(owner.to_owned()),
        }
    }

    /// Whether a test with these owners is selected.
    pub fn selects(&self, ownership: &Ownership) -> bool {
        match self {
            Self::Of(owner) => ownership.has(owner),
            Self::Unowned => ownership.owners.is_empty(),
        }
    }

    /// Its text.
    pub fn as_str(&self) -> &str {
        match self {
            Self::Of(owner) => owner,
            Self::Unowned => Self::UNOWNED,
        }
    }
}
