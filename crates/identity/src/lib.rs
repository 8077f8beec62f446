//! Tokens of OpenID Connect: the verifier, the issuers' keys, sign-in at providers, and the operator's `identity.toml`.
//!
//! [`Verifier`] is the one place that decides whether a token is genuine. It serves uploads of CI jobs and sign-in. It
//! opens connections to issuers that the operator trusts, and to no others.

mod file;
mod issuer;
mod keys;
mod sign_in;
mod verifier;

pub use assay_outbound::FileError;
pub use file::{Access, IdentityFile, Provider};
pub use issuer::{Client, Discovered};
pub use sign_in::Providers;
pub use verifier::Verifier;
