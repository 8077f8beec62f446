//! Fixed identifiers and times of the seed.

use assay_domain::timestamp::Timestamp;

pub(crate) const NOW: Timestamp = Timestamp::from_unix_ms(1_795_200_363_120);

pub(crate) const ORGANIZATION: &str = "019aa3f4-0000-7000-8000-000000000001";
pub(crate) const OTHER_ORGANIZATION: &str = "019aa3f4-0000-7000-8000-000000000002";
pub(crate) const PROJECT: &str = "019aa3f4-0000-7000-8000-000000000011";
pub(crate) const OTHER_PROJECT: &str = "019aa3f4-0000-7000-8000-000000000012";
pub(crate) const NO_PROJECT: &str = "019aa3f4-0000-7000-8000-000000000013";
pub(crate) const RUN: &str = "019aa3f4-0000-7000-8000-000000000021";
pub(crate) const SHARD: &str = "019aa3f4-0000-7000-8000-000000000022";
pub(crate) const NO_RUN: &str = "019aa3f4-0000-7000-8000-000000000023";
pub(crate) const FINGERPRINT: &str = "0123456789abcdef0123456789abcdef";

/// A name with all characters that a path must encode.
pub(crate) const TEST: &str = "webkit > api/cart.spec.ts > basket > pays 100% of ü+";
pub(crate) const TEST_ENCODED: &str =
    "webkit%20%3E%20api%2Fcart.spec.ts%20%3E%20basket%20%3E%20pays%20100%25%20of%20%C3%BC+";
pub(crate) const FILE: &str = "api/cart.spec.ts";
/// A name that exists with a file and without one.
pub(crate) const TWICE: &str = "twice";
