//! Computes the normal form, fingerprint, title and category of an error text.
//!
//! Pure and versioned: the same error gives the same [`ErrorClass`] on every machine while [`VERSION`] is unchanged.
//! The steps, which `docs/fingerprints.md` describes:
//!
//! 1. colours and control characters, then code frames, stack lines and logs are removed (`cut`);
//! 2. exception type, matcher and locator are read (`origin`);
//! 3. actual values are masked (`received`), then all other changing parts (`mask`);
//! 4. a text without words of its own gets the first own frame of its stack (`frame`);
//! 5. type or matcher, locator, masked text and frame together are hashed, and determine category and title.
//!
//! Time and memory are bounded for texts of any length, and no pattern backtracks.

mod category;
mod cut;
mod frame;
mod literal;
mod mask;
mod normal;
mod origin;
mod pattern;
mod received;
mod text;
mod title;
mod value;

use assay_domain::{
    attempt::ErrorDetail,
    signature::{Classifier, ErrorClass},
};
use sha2::{Digest, Sha256};

pub use normal::{NormalForm, normal_form};

/// The version of the algorithm. Every change that could give any text another fingerprint increases it.
pub const VERSION: u16 = 2;

/// The class of an error text; none if it is empty.
///
/// The message is used. The stack replaces a message without information ("Failed", a panic's location), or one that is
/// only the beginning of the stack's matcher. It also provides the exception type if the message has none.
pub fn classify(error: &ErrorDetail) -> Option<ErrorClass> {
    if !error.has_text() {
        return None;
    }
    let form = normal::of_error(error.message.as_deref(), error.stack.as_deref());
    Some(ErrorClass {
        fingerprint: fingerprint(&form),
        version: VERSION,
        title: title::of(&form),
        category: category::of(&form),
    })
}

/// The algorithm of this version: a failed attempt is classified by its first error with text.
#[derive(Debug, Clone, Copy, Default)]
pub struct Fingerprinter;

impl Classifier for Fingerprinter {
    fn classify(&self, errors: &[ErrorDetail]) -> Option<ErrorClass> {
        errors.iter().find_map(classify)
    }
}

/// The first 32 hexadecimal digits of SHA-256 over version, origin, locator, text and frame, each ended by a zero byte.
fn fingerprint(form: &NormalForm) -> String {
    let mut hash = Sha256::new();
    for part in [
        VERSION.to_string().as_str(),
        &form.origin,
        form.locator.as_deref().unwrap_or_default(),
        &form.text,
        form.frame.as_deref().unwrap_or_default(),
    ] {
        hash.update(part);
        hash.update([0]);
    }
    hash.finalize()
        .iter()
        .take(16)
        .map(|byte| format!("{byte:02x}"))
        .collect()
}
