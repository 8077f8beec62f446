//! Style sheet and script. Each address contains a hash of the content.

use std::sync::LazyLock;

use assay_markup::STYLE;
use sha2::{Digest as _, Sha256};

const SCRIPT: &str = include_str!("front.js");

/// A file that pages link to.
pub(crate) struct Asset {
    pub(crate) path: String,
    pub(crate) content: &'static str,
    pub(crate) media_type: &'static str,
}

impl Asset {
    fn new(content: &'static str, suffix: &str, media_type: &'static str) -> Self {
        let digest = Sha256::digest(content);
        let hash: String = digest.iter().take(8).map(|byte| format!("{byte:02x}")).collect();
        Self {
            path: format!("/assets/{hash}.{suffix}"),
            content,
            media_type,
        }
    }
}

/// The style of all pages.
pub(crate) fn style() -> &'static Asset {
    static ASSET: LazyLock<Asset> = LazyLock::new(|| Asset::new(STYLE, "css", "text/css; charset=utf-8"));
    &ASSET
}

/// The script of all pages. Pages work without it.
pub(crate) fn script() -> &'static Asset {
    static ASSET: LazyLock<Asset> =
        LazyLock::new(|| Asset::new(SCRIPT, "js", "text/javascript; charset=utf-8"));
    &ASSET
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn style_and_script_are_small() {
        let bytes = STYLE.len() + SCRIPT.len();
        assert!(bytes <= 24 * 1_024, "{bytes} bytes");
        assert!(SCRIPT.len() <= 10 * 1_024);
    }
}
