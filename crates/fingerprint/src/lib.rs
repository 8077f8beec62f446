//! Error text to normal form, fingerprint, title and category.
