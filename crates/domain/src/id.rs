//! Identifiers: UUIDs, with a separate type for each kind.

use std::{fmt, str::FromStr};

use serde::{Deserialize, Serialize};
use uuid::Uuid;

macro_rules! id {
    ($(#[$meta:meta])* $name:ident) => {
        $(#[$meta])*
        #[derive(Debug, Clone, Copy, PartialEq, Eq, PartialOrd, Ord, Hash, Serialize, Deserialize)]
        #[serde(transparent)]
        pub struct $name(pub Uuid);

        #[cfg(feature = "openapi")]
        impl utoipa::PartialSchema for $name {
            fn schema() -> utoipa::openapi::RefOr<utoipa::openapi::Schema> {
                crate::schema::text("uuid", "019aa3f4-5b1c-7def-8a3b-0123456789ab")
            }
        }

        #[cfg(feature = "openapi")]
        impl utoipa::ToSchema for $name {}

        impl fmt::Display for $name {
            fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
                self.0.hyphenated().fmt(f)
            }
        }

        impl FromStr for $name {
            type Err = NotAnId;

            /// Accepts only the text of `Display`: lower case, hyphenated.
            fn from_str(text: &str) -> Result<Self, Self::Err> {
                let id = Uuid::try_parse(text).map_err(|_| NotAnId)?;
                let mut canonical = Uuid::encode_buffer();
                if id.hyphenated().encode_lower(&mut canonical) == text { Ok(Self(id)) } else { Err(NotAnId) }
            }
        }
    };
}

id!(
    /// An organization, the owner of projects and read keys.
    OrganizationId
);
id!(
    /// A project of an organization.
    ProjectId
);
id!(
    /// A shard of a run. A run's own id is that of its first shard; every shard's id names the run.
    RunId
);
id!(
    /// A session of the pages. It is random.
    SessionId
);
id!(
    /// A key's public identifier (never the key itself).
    KeyId
);

/// The error of text that is not an identifier in canonical form.
#[derive(Debug, Clone, Copy, PartialEq, Eq, thiserror::Error)]
#[error("expected an id such as 019aa3f4-5b1c-7def-8a3b-0123456789ab")]
pub struct NotAnId;

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn only_the_canonical_text_is_an_id() {
        let text = "019aa3f4-5b1c-7def-8a3b-0123456789ab";
        assert_eq!(text.parse::<RunId>().unwrap().to_string(), text);
        for other in [
            "019AA3F4-5B1C-7DEF-8A3B-0123456789AB",
            "019aa3f45b1c7def8a3b0123456789ab",
            "{019aa3f4-5b1c-7def-8a3b-0123456789ab}",
            "",
            "1",
        ] {
            assert_eq!(other.parse::<RunId>(), Err(NotAnId), "{other}");
        }
    }
}
