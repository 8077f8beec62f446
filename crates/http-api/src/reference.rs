//! The description of the API, for programs and for people.
//!
//! A test generates both from what the routes declare, and fails if either is out of date.

/// The OpenAPI document.
pub(crate) const DOCUMENT: &str = include_str!("../../../docs/openapi.json");

/// The description as a page without external resources. The page works without its script.
pub(crate) const PAGE: &str = include_str!("../../../docs/reference.html");

/// The page's content security policy: only its own styles, and its own script by its hash.
pub(crate) const PAGE_POLICY: &str = "default-src 'none'; img-src data:; style-src 'unsafe-inline'; script-src 'sha256-epVDKAZKhsgMisbB3MjWrPHa8GZOEWJ1ovS/JOyX55s='";

#[cfg(test)]
mod tests {
    use base64::{Engine as _, prelude::BASE64_STANDARD};
    use sha2::{Digest as _, Sha256};

    use super::*;

    #[test]
    fn the_content_security_policy_allows_the_script_of_the_page() {
        let (_, script) = PAGE.split_once("<script>").unwrap();
        let (script, _) = script.split_once("</script>").unwrap();
        let hash = BASE64_STANDARD.encode(Sha256::digest(script));
        let source = format!("script-src 'sha256-{hash}'");
        assert!(PAGE_POLICY.ends_with(&source), "{source}");
    }
}
